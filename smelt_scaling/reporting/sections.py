"""The sections of a report: each asks one analysis and writes its table, its figures and its part of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.analyses import allocate, ce_gain
from smelt_scaling.analyses.budgets import budgets_or_default
from smelt_scaling.analyses.curves import frontier_curve, gain_curve, residual_rows, surface_grid
from smelt_scaling.analyses.diagnostics import headline_of
from smelt_scaling.analyses.frames import notes_of
from smelt_scaling.analyses.side import IntervalKind
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import Note, SmeltScalingError, StudyError
from smelt_scaling.formatting import format_number, format_quantity
from smelt_scaling.papers import Paper
from smelt_scaling.reporting.figures.drawing import Drawing, write_drawing
from smelt_scaling.reporting.figures.registry import SAVED_FIGURES
from smelt_scaling.reporting.markdown import escape_markdown
from smelt_scaling.reporting.raw import TABLES, to_csv
from smelt_scaling.reporting.records import frame_of_record, read_record
from smelt_scaling.reporting.tables import render_frame, render_study
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from smelt_scaling.reporting.figures.draws import GainReplicates

__all__ = ["TABLE_FORMATS", "Sections"]

#: Formats of a table -> how its file ends.
TABLE_FORMATS = {"latex": "tex", "md": "md", "html": "html", "csv": "csv"}


@dataclass(kw_only=True)
class Sections:
    """The sections of a report, each a method that writes its files."""

    source: Study | Paper
    out: Path
    target: str | None
    reference: str | None
    level: float
    interval: IntervalKind
    formats: tuple[str, ...]
    tables: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)

    def gain(self, budgets: list[float], sparsities: Sequence[float] | None) -> None:
        """Write the table of gains."""
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
        self.take("gain", "ce-gain", frame)

    def optima(self, budgets: list[float], sparsities: Sequence[float] | None) -> None:
        """Write the table of compute-optimal sizes and tokens."""
        chosen, _ = budgets_or_default(budgets, self.source)
        frame = allocate(self.source, chosen, sparsities=sparsities, level=self.level, interval=self.interval)
        self.take("optima", "allocate", frame)

    def coefficients(self) -> None:
        """Write the table of fitted coefficients."""
        assert isinstance(self.source, Study)
        texts = {ending: render_study(self.source, form) for form, ending in TABLE_FORMATS.items()}
        self._write({f"coefficients.{ending}": text for ending, text in texts.items()})
        self.tables.append("coefficients")
        self.pages.append(texts["md"])

    def gain_curve(self, budgets: Sequence[float]) -> None:
        """Draw gains over budgets."""
        from smelt_scaling.reporting.figures.gain import gain_figure

        frame = gain_curve(
            self.source,
            named=budgets,
            target=self.target,
            reference=self.reference,
            level=self.level,
            interval=self.interval,
        )
        self._figure(gain_figure(frame))

    def frontier(self, budgets: Sequence[float]) -> None:
        """Draw losses and tokens per parameter along the frontier."""
        from smelt_scaling.reporting.figures.frontier import frontier_figure, tokens_figure

        frame = frontier_curve(self.source, named=budgets, level=self.level, interval=self.interval)
        runs = None
        if isinstance(self.source, Study):
            runs = residual_rows(self.source).rename(columns={"sparsity": "tier_sparsity"})
        reference = self._reference()
        self._figure(frontier_figure(frame, runs, reference=reference))
        self._figure(tokens_figure(frame, reference=reference))

    def surface(self) -> None:
        """Draw the surfaces at the middle sparsity."""
        from smelt_scaling.reporting.figures.surface import surface_figure

        view = view_of(self.source)
        grid = view.sparsity_grid(None, tuple(view.sides.values()))
        middle = sorted(grid, key=lambda s: s or 0.0)[len(grid) // 2]
        frames = [surface_grid(self.source, arch, middle) for arch in view.sides]
        runs = residual_rows(self.source) if isinstance(self.source, Study) else None
        self._figure(surface_figure(frames, runs))

    def residuals(self) -> None:
        """Draw predicted against measured losses."""
        from smelt_scaling.reporting.figures.residuals import residual_figure

        assert isinstance(self.source, Study)
        self._figure(residual_figure(residual_rows(self.source), reference=self._reference()))

    def replicates(self) -> None:
        """Draw the replicates of the headline gain and of two parameters."""
        from smelt_scaling.reporting.figures.draws import draws_figure

        assert isinstance(self.source, Study)
        study = self.source
        if study.draws is None:
            raise StudyError(f"no replicates: {study.bootstrap.reason}")
        powers = study.law.exponents
        names = (powers[0], powers[-1]) if len(powers) > 1 else (study.law.parameters[0], powers[0])
        at = [study.law.parameters.index(name) for name in names]
        pairs = {
            arch: (*study.draws[arch].surface.coef[:, at].T, *study[arch].surface.coef[at].tolist())
            for arch in study.archs
        }
        self._figure(draws_figure(self._gain_replicates(), pairs, names=names, reference=self._reference()))

    def _gain_replicates(self) -> GainReplicates | None:
        """Return the replicates of the headline; None where there is no pair, or no gain of it."""
        from smelt_scaling.reporting.figures.draws import GainReplicates

        study = self.source
        assert isinstance(study, Study)
        assert study.draws is not None
        try:
            headline, _ = headline_of(study, target=self.target, reference=self.reference)
            pair = (headline.target, headline.reference)
            (row,) = ce_gain(
                study,
                headline.budget,
                target=pair[0],
                reference=pair[1],
                sparsities=headline.sparsity,
                level=self.level,
                interval=self.interval,
            ).to_dict(orient="records")
        except SmeltScalingError:  # the section of the gain says why
            return None
        draws = {arch: study.draws[arch].surface for arch in pair}
        m = headline.of_surfaces(draws, study.settings.flops_per_param)
        where = f"{format_quantity(headline.budget)} FLOPs"
        if headline.sparsity is not None:
            where += f", S = {format_number(headline.sparsity, 3)}"
        return GainReplicates(
            gains=np.where(np.isfinite(m), -np.expm1(-m), np.nan),
            point=row["gain"],
            ends=(row["gain_lo"], row["gain_hi"]),
            headline=where,
        )

    def saved(self, command: str, folder: str | Path | None) -> None:
        """Take up what another command wrote."""
        if folder is None:
            self.absent[command] = (
                "no folder of results was named; commands write them with -o DIR, and --with DIR takes them up"
            )
            return
        path = Path(folder) / f"{command}.json"
        if not path.is_file():
            self.absent[command] = (
                f"{folder} holds no such result; write it there with -o {folder}, and report again"
            )
            return
        frame = frame_of_record(read_record(path, command))
        try:
            self.take(command, command, frame)
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
        ) as error:  # whatever a file may hold
            raise StudyError(
                f"{path}: its rows are not those of {command}; write it again with this version"
            ) from error

    def _reference(self) -> str | None:
        from smelt_scaling.analyses.pairing import pair_names

        try:
            return pair_names(view_of(self.source).sides, self.target, self.reference)[1]
        except SmeltScalingError:
            return None

    def take(self, name: str, command: str, frame: pd.DataFrame) -> None:
        """Write a result: its table in every format, each further table of it as CSV, and its figures."""
        notes = notes_of(frame)
        texts = {
            f"{name}.{ending}": render_frame(command, frame, form, notes=notes)
            for form, ending in TABLE_FORMATS.items()
        }
        texts |= {f"{name}-{key}.csv": to_csv(rows) for key, rows in _further(frame).items()}
        drawings = [drawing for draw in SAVED_FIGURES.get(command, ()) for drawing in draw(frame)]
        page = render_frame(command, frame, "md", notes=())  # caveats stand once, at the end of the page
        self._write(texts)
        self.notes += notes
        self.tables.append(name)
        self.pages.append(page)
        for drawing in drawings:
            self._figure(drawing)

    def _write(self, texts: Mapping[str, str]) -> None:
        folder = self.out / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            self.files.append(folder / name)

    def _figure(self, drawing: Drawing) -> None:
        self.files += write_drawing(drawing, self.out / "figures", self.formats)
        self.figures.append(drawing.name)
        if not self.formats:
            return
        image = f"figures/{drawing.name}.{'svg' if 'svg' in self.formats else self.formats[0]}"
        self.pages.append(f"![{drawing.name}]({image})\n\n{escape_markdown(drawing.caption)}\n")


def _further(frame: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Return the tables that stand beside the rows of a result, each with every key in every row."""
    held = {key: frame.attrs[key] for key in TABLES if isinstance(frame.attrs.get(key), list)}
    parts = frame.attrs.get("parts")
    if isinstance(parts, Mapping):
        held |= {key: part["rows"] for key, part in parts.items()}
    found = {}
    for key, rows in held.items():
        if rows and all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            found[key] = [{name: row.get(name) for name in names} for row in rows]
    return found
