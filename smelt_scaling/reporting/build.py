"""A study as what a paper needs: tables in every format, figures with the numbers they drew, and one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.side import IntervalKind
from smelt_scaling.analyses.view import check_budgets, view_of
from smelt_scaling.errors import Note, SmeltScalingError, StudyError, UsageError, merge_notes
from smelt_scaling.papers import Paper
from smelt_scaling.papers.tables import parse_number
from smelt_scaling.reporting.figures.drawing import FORMATS
from smelt_scaling.reporting.figures.style import styled
from smelt_scaling.reporting.page import write_manifest, write_page
from smelt_scaling.reporting.sections import Sections
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Report", "build_published_report", "build_report"]

#: Analyses that a study folder may hold beside the study, in the order of a paper.
SAVED = (
    *("domains", "sources", "lengths", "shots", "downstream", "ablations", "probes"),
    *("diagnose", "plan", "flops", "match"),
)
#: Tables of papers whose column ``budget`` says where gains and optima are printed.
PRINTED_AT = ("ce_gain", "tpp", "allocations", "predictions")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was written.

    Parameters
    ----------
    folder : Path
        Where.
    tables, figures : tuple of str
        Names, in order.
    files : tuple of Path
        Every file of them, and ``report.md``.
    absent : mapping of str to str
        Section -> why it is not there.
    notes : tuple of Note
        Caveats of every result in it.
    """

    folder: Path
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    files: tuple[Path, ...]
    absent: Mapping[str, str]
    notes: tuple[Note, ...]


def build_report(
    source: Study | Paper,
    folder: str | Path,
    *,
    budgets: Sequence[float] = (),
    target: str | None = None,
    reference: str | None = None,
    sparsities: Sequence[float] | None = None,
    saved: str | Path | None = None,
    results: Mapping[str, pd.DataFrame] | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    formats: Sequence[str] = FORMATS,
    provenance: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Write tables and figures of a study.

    Parameters
    ----------
    source : Study or Paper
        Fitted or published surfaces.
    folder : str or Path
        Where; files of the same names are replaced.
    budgets : sequence of float
        Of the table of gains; powers of ten within the runs by default.
    target, reference, sparsities, level, interval
        As for `ce_gain`.
    saved : str or Path, optional
        Folder with results that other commands wrote with ``-o``; those there become sections.
    results : mapping of str to DataFrame, optional
        Results at hand, by their commands; they come first.
    formats : sequence of {"pdf", "svg", "png"}
        Of the figures.
    provenance : mapping, optional
        Where the numbers come from, for ``manifest.json``.
    progress : callable, optional
        Called with (section, sections done, sections in all).

    Returns
    -------
    Report
        Sections that cannot be made are named with the reason, and the others stand.

    Raises
    ------
    UsageError
        If an architecture that is named is not there, or a budget, sparsity or level is invalid.
    StudyError
        If ``saved`` is no folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from smelt_scaling import load_paper
    >>> with TemporaryDirectory() as folder:
    ...     report = build_report(load_paper("smelt"), folder, formats=())
    >>> report.tables, report.figures
    (('gain', 'optima'), ('gain', 'frontier', 'tokens', 'surface'))
    """
    view = view_of(source)
    for arch in filter(None, (target, reference)):
        view.side(arch)
    if budgets:
        check_budgets(budgets)
    if sparsities is not None:
        view.sparsity_grid(sparsities, ())
    if not 0 < level < 1:
        raise UsageError(f"level {level:g}: must lie between 0 and 1, such as 0.95")
    if saved is not None and not Path(saved).is_dir():
        raise StudyError(f"{saved}: is no folder; commands write results into one with -o DIR")
    out = Path(folder)
    sections = Sections(
        source=source,
        out=out,
        target=target,
        reference=reference,
        level=level,
        interval=interval,
        formats=tuple(formats),
    )
    steps: list[tuple[str, Callable[[], None]]] = [
        (name, lambda name=name, frame=frame: sections.take(name, name, frame))  # type: ignore[misc]
        for name, frame in (results or {}).items()
    ]
    steps += [
        ("gain", lambda: sections.gain(list(budgets), sparsities)),
        ("optima", lambda: sections.optima(list(budgets), sparsities)),
        ("gain curve", lambda: sections.gain_curve(budgets)),
        ("frontier", lambda: sections.frontier(budgets)),
        ("surface", sections.surface),
    ]
    if isinstance(source, Study):
        steps += [
            ("coefficients", sections.coefficients),
            ("residuals", sections.residuals),
            ("replicates", sections.replicates),
        ]
    else:
        sections.absent |= dict.fromkeys(
            ("coefficients", "residuals", "replicates"), "published surfaces come without runs"
        )
    steps += [(name, lambda name=name: sections.saved(name, saved)) for name in SAVED]  # type: ignore[misc]
    with styled():
        for done, (name, make) in enumerate(steps):
            if progress is not None:
                progress(name, done, len(steps))
            try:
                make()
            except SmeltScalingError as error:
                sections.absent[name] = str(error)
    if progress is not None:
        progress("", len(steps), len(steps))
    notes = merge_notes(sections.notes)
    out.mkdir(parents=True, exist_ok=True)
    page = write_page(out, sections.pages, sections.absent, notes)
    report = Report(
        folder=out,
        tables=tuple(sections.tables),
        figures=tuple(sections.figures),
        files=(*sections.files, page),
        absent=sections.absent,
        notes=notes,
    )
    write_manifest(report, provenance or {})
    return report


def build_published_report(
    paper: Paper,
    reproduction: pd.DataFrame,
    folder: str | Path,
    *,
    provenance: Mapping[str, Any] | None = None,
) -> Report:
    """Write what `reproduce` found, with gains, optima and figures at the budgets that the paper prints.

    Parameters
    ----------
    paper : Paper
        A published set.
    reproduction : DataFrame
        What `reproduce` returned for it.
    folder, provenance
        As for `build_report`.

    Returns
    -------
    Report
        As of `build_report`.
    """
    budgets = {
        parse_number(record["budget"])
        for table in paper.tables.values()
        if table.name in PRINTED_AT
        for record in table.records()
    }
    results = {"reproduce": reproduction}
    return build_report(paper, folder, budgets=sorted(budgets), results=results, provenance=provenance)
