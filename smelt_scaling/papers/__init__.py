"""Published coefficients and tables, as data files with their source; fitting never reads them.

Published coefficients are a `Surface` like fitted ones, so every analysis runs on them without data or a fit: those
of a paper that is shipped, or of a table that somebody typed from another.
"""

from __future__ import annotations

from smelt_scaling.papers.bundled import PAPERS, Paper, load_paper
from smelt_scaling.papers.published import read_published
from smelt_scaling.papers.tables import Table, parse_number, rounding

__all__ = ["PAPERS", "Paper", "Table", "load_paper", "parse_number", "read_published", "rounding"]
