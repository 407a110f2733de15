"""One emitter for every result: a frame or a study in, text of the format asked for out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from smelt_scaling._json import dumps
from smelt_scaling.analyses.design import PARTS
from smelt_scaling.analyses.diagnostics.diagnosis import part_frame
from smelt_scaling.analyses.frames import notes_of
from smelt_scaling.errors import CAPTIONED, Note, UsageError
from smelt_scaling.reporting.budgets import flops_document, grid_document, match_document
from smelt_scaling.reporting.design import design_document
from smelt_scaling.reporting.diagnostics.document import diagnosis_document
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.downstream import downstream_document
from smelt_scaling.reporting.html import to_html
from smelt_scaling.reporting.latex import to_latex
from smelt_scaling.reporting.layouts import LAYOUTS
from smelt_scaling.reporting.markdown import to_markdown
from smelt_scaling.reporting.measured_layouts import MEASURED_LAYOUTS
from smelt_scaling.reporting.plans import plan_document
from smelt_scaling.reporting.raw import frame_record, plain_rows, to_csv
from smelt_scaling.reporting.split_layouts import SPLIT_LAYOUTS
from smelt_scaling.reporting.study_table import coefficient_rows, study_document
from smelt_scaling.reporting.text import to_text

if TYPE_CHECKING:
    import pandas as pd

    from smelt_scaling.study import Study

__all__ = ["FORMATS", "render_frame", "render_study", "show_table"]

FORMATS = ("table", "md", "csv", "json", "latex", "html")


def render_frame(
    command: str,
    frame: pd.DataFrame,
    form: str = "table",
    *,
    notes: Sequence[Note] | None = None,
    settings: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    part: str | None = None,
) -> str:
    """Write the result of an analysis.

    Parameters
    ----------
    command : str
        The analysis, named as its command: ``ce-gain``, ``allocate``, ``downstream``, ``check`` ...
    frame : DataFrame
        What it returned.
    form : {"table", "md", "csv", "json", "latex", "html"}
        Text, markdown and LaTeX are rounded for people; CSV and JSON carry every field at full precision.
    notes, settings : optional
        Those of ``frame.attrs`` by default.
    provenance : mapping, optional
        Where the numbers come from; in JSON only.
    part : str, optional
        One table of a result of several (``check``): "design", which are its rows, or a key of ``frame.attrs``. JSON
        holds all of them.

    Returns
    -------
    str
        Ends with a line break.

    Raises
    ------
    UsageError
        For an unknown command, format or part.

    Examples
    --------
    >>> from smelt_scaling.analyses import ce_gain
    >>> from smelt_scaling.papers import load_paper
    >>> table = ce_gain(load_paper("smelt"), 1e21, target="smelt", reference="baseline", sparsities=0.947)
    >>> print(render_frame("ce-gain", table).splitlines()[0])
    Compute saved by smelt relative to baseline at equal loss
    """
    notes = notes_of(frame) if notes is None else notes
    if form == "csv":
        if part is not None and "parts" in frame.attrs:
            return to_csv(plain_rows(part_frame(frame, part)))
        return to_csv(frame.attrs[part] if part in PARTS else plain_rows(frame))
    if form == "json":
        record = frame_record(
            command,
            frame,
            settings=frame.attrs.get("settings", {}) if settings is None else settings,
            notes=notes,
            provenance=provenance or {},
        )
        return dumps(record)
    layouts = (
        LAYOUTS
        | MEASURED_LAYOUTS
        | SPLIT_LAYOUTS
        | {"check": partial(design_document, part=part), "downstream": downstream_document}
        | {"diagnose": partial(diagnosis_document, part=part)}
        | {"flops": flops_document, "match": match_document, "grid": grid_document}
        | {
            "check": partial(design_document, part=part),
            "downstream": downstream_document,
            "plan": plan_document,
        }
    )
    if command not in layouts:
        raise UsageError(f"command {command!r} has no table; choose from {', '.join(layouts)}")
    return _written(layouts[command](frame), form, notes)


#: A column that only the frame of one analysis has -> that analysis.
_TELLING = {
    "remedy": "diagnose",
    "forward_flops": "flops",
    "toml": "match",
    "step": "grid",
    "bucket": "lengths",
    "gap": "shots",
    "delta": "ablations",
    "reduction_per_flop": "plan",
    "domain": "domains",
    "group": "sources",
    "deviation": "fairness",
    "gain": "ce-gain",
    "tokens_per_param": "allocate",
    "unidentified": "check",
    "published": "reproduce",
    "residual": "downstream",
    "loss": "predict",
    "share_above_control": "probes",
}


def show_table(frame: pd.DataFrame, form: str = "table", part: str | None = None) -> str:
    """Return the result of an analysis as the command line prints it.

    Parameters
    ----------
    frame : DataFrame
        What `ce_gain` or another analysis returned.
    form : {"table", "md", "csv", "json", "latex", "html"}
        As ``--format``.
    part : str, optional
        As ``--show`` of ``check``: one of the tables of a design report.

    Returns
    -------
    str
        Ends with a line break.

    Raises
    ------
    UsageError
        If the frame is not the result of an analysis, or the format is unknown.

    Examples
    --------
    >>> from smelt_scaling import ce_gain, load_paper
    >>> table = ce_gain(load_paper("smelt"), 1e21, target="smelt", reference="baseline", sparsities=0.947)
    >>> print(show_table(table).splitlines()[0])
    Compute saved by smelt relative to baseline at equal loss
    """
    command = next((name for column, name in _TELLING.items() if column in frame.columns), None)
    if command is None or not frame.attrs:
        raise UsageError(
            "this frame is not the result of an analysis, or has lost its settings (pandas drops them when frames are "
            "joined); pass what ce_gain or another analysis returned"
        )
    return render_frame(command, frame, form, part=part)


def render_study(study: Study, form: str = "md", *, provenance: Mapping[str, Any] | None = None) -> str:
    """Write a study: coefficients for people, the documented JSON of ``fit``, or coefficients as CSV.

    Raises
    ------
    UsageError
        For an unknown format.
    """
    if form == "csv":
        return to_csv(coefficient_rows(study))
    if form == "json":
        record = study.to_dict()
        return dumps({**record, "provenance": {**record["provenance"], **(provenance or {})}})
    return _written(study_document(study), form, study.all_notes)


def _written(document: Document, form: str, notes: Sequence[Note]) -> str:
    captioned = tuple(note.message for note in notes if note.code in CAPTIONED)
    document = replace(document, caption=(*captioned, *document.caption))
    notes = [note for note in notes if note.code not in CAPTIONED]
    if form == "table":
        return to_text(document)
    if form == "md":
        return to_markdown(document, notes)
    if form == "latex":
        return to_latex(document, notes)
    if form == "html":
        return to_html(document, notes)
    raise UsageError(f"format {form!r} is unknown; choose from {', '.join(FORMATS)}")
