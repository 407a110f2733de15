"""A study as what a paper needs: tables in every format, figures with the numbers they drew, one page that says all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling._json import dumps
from smelt_scaling.analyses import allocate, ce_gain
from smelt_scaling.analyses.budgets import budgets_or_default
from smelt_scaling.analyses.curves import frontier_curve, gain_curve, residual_rows, surface_grid
from smelt_scaling.analyses.diagnostics import headline_of
from smelt_scaling.analyses.frames import notes_of
from smelt_scaling.analyses.side import IntervalKind
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import Note, SmeltScalingError, StudyError, merge_notes
from smelt_scaling.formatting import format_number, format_quantity
from smelt_scaling.papers import Paper
from smelt_scaling.reporting.figures.drawing import FORMATS, Drawing, write_drawing
from smelt_scaling.reporting.figures.registry import SAVED_FIGURES
from smelt_scaling.reporting.figures.style import styled
from smelt_scaling.reporting.raw import to_csv
from smelt_scaling.reporting.records import frame_of_record, read_record
from smelt_scaling.reporting.study_table import coefficient_rows
from smelt_scaling.reporting.tables import render_frame, render_study
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Report", "build_report"]

#: Formats of a table -> how its file ends.
TABLE_FORMATS = {"latex": "tex", "md": "md", "html": "html", "csv": "csv"}
#: Analyses that a study folder may hold beside the study, in the order of a paper.
SAVED = (
    *("domains", "sources", "lengths", "shots", "downstream", "ablations", "probes"),
    *("diagnose", "plan", "flops", "match"),
)


@dataclass(kw_only=True)
class Report:
    """What was written.

    Parameters
    ----------
    folder : Path
        Where.
    tables, figures : list of str
        Names, in order.
    absent : dict of str to str
        Section -> why it is not there.
    notes : tuple of Note
        Caveats of every result in it.
    """

    folder: Path
    tables: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def build_report(
    source: Study | Paper,
    folder: str | Path,
    *,
    budgets: Sequence[float] = (),
    target: str | None = None,
    reference: str | None = None,
    sparsities: Sequence[float] | None = None,
    saved: str | Path | None = None,
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
    """
    out = Path(folder)
    report = Report(folder=out)
    steps: list[tuple[str, Callable[[], None]]] = []
    builder = _Builder(
        source=source,
        out=out,
        report=report,
        target=target,
        reference=reference,
        level=level,
        interval=interval,
        formats=tuple(formats),
    )
    steps += [
        ("gain", lambda: builder.gain(list(budgets), sparsities)),
        ("optima", lambda: builder.optima(list(budgets), sparsities)),
        ("gain curve", builder.gain_curve),
        ("frontier", builder.frontier),
        ("surface", builder.surface),
    ]
    if isinstance(source, Study):
        steps += [
            ("coefficients", builder.coefficients),
            ("residuals", builder.residuals),
            ("replicates", builder.replicates),
        ]
    else:
        report.absent |= dict.fromkeys(
            ("coefficients", "residuals", "replicates"), "published surfaces come without runs"
        )
    steps += [(name, lambda name=name: builder.saved(name, saved)) for name in SAVED]  # type: ignore[misc]
    with styled():
        for done, (name, make) in enumerate(steps):
            if progress is not None:
                progress(name, done, len(steps))
            try:
                make()
            except SmeltScalingError as error:
                report.absent[name] = str(error)
    if progress is not None:
        progress("", len(steps), len(steps))
    report.notes = merge_notes(builder.notes)
    _write_page(report, builder)
    _write_manifest(report, provenance or {})
    return report


@dataclass(kw_only=True)
class _Builder:
    """The sections of a report, each a method that writes its files."""

    source: Study | Paper
    out: Path
    report: Report
    target: str | None
    reference: str | None
    level: float
    interval: IntervalKind
    formats: tuple[str, ...]
    notes: list[Note] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)

    def gain(self, budgets: list[float], sparsities: Sequence[float] | None) -> None:
        chosen, notes = budgets_or_default(budgets, self.source)
        self.notes += notes
        frame = ce_gain(
            self.source,
            chosen,
            target=self.target,
            reference=self.reference,
            sparsities=sparsities,
            level=self.level,
            interval=self.interval,
        )
        self._table("gain", "ce-gain", frame)

    def optima(self, budgets: list[float], sparsities: Sequence[float] | None) -> None:
        chosen, _ = budgets_or_default(budgets, self.source)
        frame = allocate(self.source, chosen, sparsities=sparsities, level=self.level, interval=self.interval)
        self._table("optima", "allocate", frame)

    def coefficients(self) -> None:
        assert isinstance(self.source, Study)
        folder = self.out / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        for form in ("latex", "md", "html"):
            text = render_study(self.source, form)
            (folder / f"coefficients.{TABLE_FORMATS[form]}").write_text(text, encoding="utf-8")
        (folder / "coefficients.csv").write_text(to_csv(coefficient_rows(self.source)), encoding="utf-8")
        self.report.tables.append("coefficients")
        self.pages.append(render_study(self.source, "md"))

    def gain_curve(self) -> None:
        from smelt_scaling.reporting.figures.gain import gain_figure

        frame = gain_curve(
            self.source,
            target=self.target,
            reference=self.reference,
            level=self.level,
            interval=self.interval,
        )
        self._figure(gain_figure(frame))

    def frontier(self) -> None:
        from smelt_scaling.reporting.figures.frontier import frontier_figure, tokens_figure

        frame = frontier_curve(self.source, level=self.level, interval=self.interval)
        runs = None
        if isinstance(self.source, Study):
            runs = residual_rows(self.source).rename(columns={"sparsity": "tier_sparsity"})
        reference = self._reference()
        self._figure(frontier_figure(frame, runs, reference=reference))
        self._figure(tokens_figure(frame, reference=reference))

    def surface(self) -> None:
        from smelt_scaling.reporting.figures.surface import surface_figure

        view = view_of(self.source)
        grid = view.sparsity_grid(None, tuple(view.sides.values()))
        middle = sorted(grid, key=lambda s: s or 0.0)[len(grid) // 2]
        frames = [surface_grid(self.source, arch, middle) for arch in view.sides]
        runs = residual_rows(self.source) if isinstance(self.source, Study) else None
        self._figure(surface_figure(frames, runs))

    def residuals(self) -> None:
        from smelt_scaling.reporting.figures.residuals import residual_figure

        assert isinstance(self.source, Study)
        self._figure(residual_figure(residual_rows(self.source), reference=self._reference()))

    def replicates(self) -> None:
        from smelt_scaling.reporting.figures.draws import draws_figure

        assert isinstance(self.source, Study)
        study = self.source
        headline, _ = headline_of(study, target=self.target, reference=self.reference)
        if study.draws is None:
            raise StudyError(f"no replicates: {study.bootstrap.reason}")
        pair = (headline.target, headline.reference)
        draws = {arch: study.draws[arch].surface for arch in pair}
        m = headline.of_surfaces(draws, study.settings.flops_per_param)
        (row,) = ce_gain(
            study,
            headline.budget,
            target=pair[0],
            reference=pair[1],
            sparsities=headline.sparsity,
            level=self.level,
        ).to_dict(orient="records")
        first, second = study.law.exponents[0], study.law.exponents[-1]
        at = [study.law.parameters.index(name) for name in (first, second)]
        exponents = {
            arch: (
                draws[arch].coef[:, at[0]],
                draws[arch].coef[:, at[1]],
                float(study[arch].surface.coef[at[0]]),
                float(study[arch].surface.coef[at[1]]),
            )
            for arch in pair
        }
        where = f"{format_quantity(headline.budget)} FLOPs"
        if headline.sparsity is not None:
            where += f", S = {format_number(headline.sparsity, 3)}"
        self._figure(
            draws_figure(
                np.where(np.isfinite(m), -np.expm1(-m), np.nan),
                float("nan") if row["gain"] is None else row["gain"],
                (row["gain_lo"], row["gain_hi"]),
                exponents,
                names=(first, second),
                reference=headline.reference,
                headline=where,
            )
        )

    def saved(self, command: str, folder: str | Path | None) -> None:
        """Take up what another command wrote."""
        path = None if folder is None else Path(folder) / f"{command}.json"
        if path is None or not path.is_file():
            where = (
                "no folder of results was named" if folder is None else f"{folder} holds no {command}.json"
            )
            self.report.absent[command] = f"{where}; write it with: smelt-scaling {command} ... -o DIR"
            return
        frame = frame_of_record(read_record(path))
        self._table(command, command, frame)
        for draw in SAVED_FIGURES.get(command, ()):
            for drawing in draw(frame):
                self._figure(drawing)

    def _reference(self) -> str | None:
        from smelt_scaling.analyses.pairing import pair_names

        try:
            return pair_names(view_of(self.source).sides, self.target, self.reference)[1]
        except SmeltScalingError:
            return None

    def _table(self, name: str, command: str, frame: pd.DataFrame) -> None:
        folder = self.out / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        notes = notes_of(frame)
        self.notes += notes
        for form, ending in TABLE_FORMATS.items():
            text = render_frame(command, frame, form, notes=notes)
            (folder / f"{name}.{ending}").write_text(text, encoding="utf-8")
        self.report.tables.append(name)
        # caveats stand once, at the end of the page
        self.pages.append(render_frame(command, frame, "md", notes=()))

    def _figure(self, drawing: Drawing) -> None:
        write_drawing(drawing, self.out / "figures", self.formats)
        self.report.figures.append(drawing.name)
        if not self.formats:
            return
        image = f"figures/{drawing.name}.{'svg' if 'svg' in self.formats else self.formats[0]}"
        self.pages.append(f"![{drawing.name}]({image})\n\n{drawing.caption}\n")


def _write_page(report: Report, builder: _Builder) -> None:
    """Write ``report.md``: every table and figure in order, what is absent, and every caveat once."""
    lines = ["# Report", "", *builder.pages]
    if report.absent:
        lines += ["## Not in this report", ""]
        lines += [f"- {name}: {why}" for name, why in report.absent.items()]
    if report.notes:
        lines += ["", "## Notes", ""]
        lines += [f"- {note.severity} `{note.code}`: {note.message}" for note in report.notes]
    (report.folder / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_manifest(report: Report, provenance: Mapping[str, Any]) -> None:
    """Write ``manifest.json``: what was made from what, and a digest of every file."""
    from smelt_scaling.study.provenance import file_sha256

    files = sorted(
        path
        for path in report.folder.rglob("*")
        if path.is_file() and path.name != "manifest.json" and _ours(path, report)
    )
    record = {
        "schema_version": 1,
        "command": "report",
        "tables": report.tables,
        "figures": report.figures,
        "absent": report.absent,
        "files": {path.relative_to(report.folder).as_posix(): file_sha256(str(path)) for path in files},
        "provenance": dict(provenance),
    }
    (report.folder / "manifest.json").write_text(dumps(record), encoding="utf-8")


def _ours(path: Path, report: Report) -> bool:
    return path.name == "report.md" or path.stem in {*report.tables, *report.figures}
