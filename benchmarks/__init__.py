"""Benchmarks: one file per claim, a common recorder, and a page made from what was recorded.

Each benchmark module has a ``TITLE``, ``measure(...) -> dict`` of plain JSON values, and ``page(values) -> str``, the
Markdown of its section. ``python benchmarks/run.py`` measures, records and rewrites ``docs/benchmarks.md``.
"""

from __future__ import annotations
