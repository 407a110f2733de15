"""Reporting: results as text, markdown, CSV, JSON and LaTeX, for people and for programs."""

from __future__ import annotations

from smelt_scaling.reporting.tables import FORMATS, render_frame, render_study, show_table

__all__ = ["FORMATS", "render_frame", "render_study", "show_table"]
