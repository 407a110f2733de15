"""One view of fitted, resampled and published surfaces, so that every analysis runs on any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._together import apart
from smelt_scaling.analyses.claims import coefficient_inputs, perturbed_surface, perturbed_values
from smelt_scaling.analyses.side import INTERVALS, SAMPLED, IntervalKind, Side
from smelt_scaling.analyses.throughput import throughput_of
from smelt_scaling.endpoints import default_sparsities
from smelt_scaling.errors import CAPTIONED, DataError, FrontierError, Note, UsageError
from smelt_scaling.fitting.residuals import repeats_of
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import AdditiveLaw, Surface
from smelt_scaling.papers import Paper
from smelt_scaling.resampling import jackknife_t_interval, percentile_interval
from smelt_scaling.study import Study

__all__ = [
    "INTERVALS",
    "IntervalKind",
    "Side",
    "View",
    "check_budgets",
    "common_window",
    "ends",
    "grid_of",
    "view_of",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Everything an analysis needs of a study or a paper.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    sides : mapping of str to Side
        Architectures, sorted.
    sparsities : array or None
        Default sparsities; None for laws without S.
    flops_per_param : float
        F = flops_per_param * N.
    no_draws, no_jackknife, no_wild : str
        Why there is no interval of that kind; empty if there is one.
    notes : tuple of Note
        Caveats that stay with every result.
    """

    law: AdditiveLaw
    sides: Mapping[str, Side]
    sparsities: Array | None
    flops_per_param: float
    no_draws: str
    no_jackknife: str
    no_wild: str
    notes: tuple[Note, ...]

    def why_none(self, kind: IntervalKind) -> str:
        """Return why there is no interval of a kind; empty if there is one."""
        return {"percentile": self.no_draws, "jackknife-t": self.no_jackknife, "wild-cr3": self.no_wild}.get(
            kind, ""
        )

    def side(self, arch: str) -> Side:
        """Return one architecture."""
        if arch not in self.sides:
            raise UsageError(f"architecture {arch!r} is not there; choose from {', '.join(self.sides)}")
        return self.sides[arch]

    def chosen(self, archs: str | Sequence[str] | None) -> tuple[Side, ...]:
        """Return the sides of the named architectures; all of them for None."""
        named = (archs,) if isinstance(archs, str) else tuple(archs or self.sides)
        return tuple(self.side(arch) for arch in named)

    @property
    def loss_unit(self) -> str:
        """Unit of the losses; of each architecture where they differ."""
        units = {side.loss_unit for side in self.sides.values()}
        if len(units) == 1:
            return units.pop()
        return ", ".join(f"{side.loss_unit} for {side.arch}" for side in self.sides.values())

    def frontier(self, surface: Surface) -> Frontier:
        """Return the frontier of a surface of this view."""
        return Frontier(surface, flops_per_param=self.flops_per_param)

    def sparsity_grid(self, sparsities: ArrayLike | None, sides: tuple[Side, ...]) -> list[float | None]:
        """Return the sparsities to evaluate: ``[None]`` for laws without S.

        Raises
        ------
        UsageError
            If a sparsity is not in [0, 1), or the law has no S.
        FrontierError
            If the exponent of 1-S is not identified and the sparsity is not the one that was run. Default sparsities
            at which a surface does not hold are passed over, if any is left.
        """
        if "S" not in self.law.columns:
            if sparsities is not None and np.size(sparsities):
                raise UsageError(
                    f"law {self.law.name}: it holds no S, so --sparsity says nothing; leave it out"
                )
            return [None]
        named = sparsities is not None and np.size(sparsities) > 0
        if not named and self.sparsities is None:
            raise UsageError(
                f"law {self.law.name}: nothing says at which S to compare; name one with --sparsity 0.947, or a column "
                "S in the table of coefficients"
            )
        given = np.atleast_1d(np.asarray(sparsities if named else self.sparsities, dtype=np.float64))
        if not named and not len(given):
            given = np.zeros(1)  # a table without S is at S = 0
        if not np.all((given > -0.05) & (given < 1)):
            wrong = given[~((given > -0.05) & (given < 1))][0]
            raise UsageError(f"sparsity {wrong:g}: a fraction in [0, 1) is needed, such as 0.95")
        for side in sides:
            fit_at = [s for s in given if side.holds_at(s)]
            if len(fit_at) < len(given) and (named or not fit_at):
                away = next(s for s in given if not side.holds_at(s))
                raise FrontierError(
                    f"{side.arch}: its runs have one sparsity, so the surface holds at S = {side.only_at['S']:.4g} "
                    f"only, not at {away:.4g}; add a second sparsity tier, or hold the exponent of 1-S with --pin"
                )
            given = np.array(fit_at)
        return [float(s) for s in given]

    def require_comparable(self, sides: tuple[Side, Side], *, force: bool = False) -> tuple[str, ...]:
        """Return in what the losses of two architectures differ, refusing the comparison unless it is forced.

        Raises
        ------
        DataError
            Naming the column and its value on each side. Different units of the loss cannot be forced.
        """
        one, other = sides
        differing = apart(one.measured_on, other.measured_on)
        for name in differing:
            here, there = (
                side.loss_unit if name == "loss_unit" else "+".join(side.measured_on[name]) for side in sides
            )
            where = f"{name} differs: {here} for {one.arch}, {there} for {other.arch}"
            if name == "loss_unit":
                raise DataError(f"{where}: numbers of two units have no gain; write both losses in one unit")
            if not force:
                per_byte = (
                    "give both in bits per byte (--unit loss=bpb)"
                    if name == "tokenizer"
                    else "evaluate both alike"
                )
                raise DataError(
                    f"{where}: the losses are not comparable, so there is no gain; {per_byte} and fit again, or add "
                    "--force to see the number marked"
                )
        return tuple(differing)

    def require_certified(self, sides: tuple[Side, ...], what: str) -> None:
        """Refuse a quantity of a fit that is not certified.

        Raises
        ------
        FrontierError
            Naming the architecture.
        """
        for side in sides:
            if not side.certified:
                raise FrontierError(
                    f"{side.arch}: no {what}, because the fit is not certified; try --starts thorough"
                )

    def require_frontier(self, sides: tuple[Side, ...]) -> None:
        """Refuse a frontier quantity of an unidentified or uncertified fit.

        Raises
        ------
        FrontierError
            With the parameters and the reason.
        """
        # an unfitted exponent of 1-S only ties the surface to its sparsity, which the grid has checked
        of_sparsity = {
            power.exponent
            for term in self.law.parsed.terms
            for power in term.powers
            if power.feature.names == ("S",)
        }
        for side in sides:
            hidden = {name: why for name, why in side.unidentified.items() if name not in of_sparsity}
            if hidden:
                name, why = next(iter(hidden.items()))
                raise FrontierError(
                    f"{side.arch}: no frontier, because {', '.join(hidden)} not identified ({name}: {why}); "
                    "add endpoints at another level, or hold a parameter with --pin"
                )
        self.require_certified(sides, "frontier")
        at = 0.0 if "S" in self.law.columns else None
        for side in sides:
            try:
                self.frontier(side.surface).loss(1e21, at)
            except FrontierError as error:
                raise FrontierError(
                    f"{side.arch}: {error}; ask predict for the loss at a point, or fit a law with an optimum, such as "
                    "--law additive"
                ) from error


def common_window(sides: Iterable[Side]) -> tuple[float, float] | None:
    """Return the budgets that the runs of every side cover; None if a window is not known.

    The lower end is above the upper one where they have no budget in common.
    """
    windows = [side.window.get("C") for side in sides]
    known = [window for window in windows if window is not None]
    if not known or len(known) < len(windows):
        return None
    return max(low for low, _ in known), min(high for _, high in known)


def check_budgets(budgets: ArrayLike) -> Array:
    """Return budgets as a flat array, each once and in the order given.

    Raises
    ------
    UsageError
        If there is none, or one is not positive and finite.
    """
    try:
        value = np.atleast_1d(np.asarray(budgets, dtype=np.float64)).ravel()
    except (OverflowError, ValueError, TypeError):
        raise UsageError(f"budget {budgets!r}: must be numbers of training FLOPs, such as 1e21") from None
    if not len(value):
        raise UsageError("budget: there is none; name training FLOPs, such as 1e21")
    if not np.all(good := (value > 0) & np.isfinite(value)):
        raise UsageError(
            f"budget {value[~good][0]:g}: training FLOPs must be positive and finite, such as 1e21"
        )
    return np.array(list(dict.fromkeys(value.tolist())))


def grid_of(budgets: Array, sparsities: list[float | None]) -> tuple[Array, Array | None]:
    """Return the budget and the sparsity of every row of a table, budgets first; None for laws without S."""
    budget = np.repeat(budgets, len(sparsities))
    if sparsities == [None]:
        return budget, None
    return budget, np.tile(np.array(sparsities, dtype=np.float64), len(budgets))


def view_of(source: Study | Paper) -> View:
    """Return the view of a study or a published paper."""
    if isinstance(source, Paper):
        return _paper_view(source)
    if not isinstance(source, Study):
        raise UsageError(
            f"source of type {type(source).__name__}: must be a study or a paper; fit(endpoints) makes a study, "
            "load_study(folder) and load_paper(name) read one"
        )
    # an interval of an ill-conditioned design means nothing, whichever way it is made
    refused = any(fit.intervals_refused for fit in source.fits.values())
    bootstrap = source.bootstrap
    why = bootstrap.reason if bootstrap.status == "refused" else "too many labels to leave each out"
    too_many = "" if source.jackknife is not None else why
    ill = "the design is too ill-conditioned for any interval"
    rows = source.endpoints.by_arch()
    by_tier = "S" in source.law.columns
    size = next((name for name in ("N", "N_act") if name in source.law.columns), "F")
    ratio = 1.0 if size == "F" else source.settings.flops_per_param
    sides = {
        arch: Side(
            arch=arch,
            surface=fit.surface,
            draws=source.draws[arch] if source.draws else None,
            jackknife=source.jackknife[arch] if source.jackknife and not refused else None,
            wild=source.wild[arch] if source.wild and not refused else None,
            window=fit.window,
            unidentified=fit.unidentified,
            only_at=fit.only_at,
            certified=fit.certificate.certified,
            measured_on=rows[arch].measured_on,
            repeats=repeats_of(rows[arch]),
            throughput=throughput_of(rows[arch], by_tier=by_tier, size=size, flops_per_size=ratio),
        )
        for arch, fit in source.fits.items()
    }
    return View(
        law=source.law,
        sides=sides,
        sparsities=default_sparsities(source.endpoints) if "S" in source.law.columns else None,
        flops_per_param=source.settings.flops_per_param,
        no_draws=ill if refused else source.bootstrap.reason,
        no_jackknife=ill if refused else too_many,
        no_wild=ill if refused else source.bootstrap.no_wild,
        notes=tuple(note for note in source.all_notes if _travels(note)),
    )


def _travels(note: Note) -> bool:
    """Whether a note of the study qualifies every number made from it."""
    return note.severity == "warning" or note.code in CAPTIONED or note.code == "flops_per_param"


def _paper_view(paper: Paper) -> View:
    laws = {surface.law.name: surface.law for surface in paper.surfaces.values()}
    if len(laws) != 1:
        raise UsageError(f"paper {paper.name}: its surfaces follow different laws ({', '.join(laws)})")
    (law,) = laws.values()
    sides = {
        arch: Side(
            arch=arch,
            surface=surface,
            draws=None,
            jackknife=None,
            window=paper.windows.get(arch, {}),
            unidentified={},
            only_at={},
            certified=True,
            measured_on={"loss_unit": (paper.loss_unit,)},
            rounded=_rounded(paper, arch),
        )
        for arch, surface in sorted(paper.surfaces.items())
    }
    return View(
        law=law,
        sides=sides,
        sparsities=paper.sparsities if "S" in law.columns else None,
        flops_per_param=paper.flops_per_param,
        no_draws="published coefficients come without draws",
        no_jackknife="published coefficients come without data",
        no_wild="published coefficients come without data",
        notes=paper.notes,
    )


def _rounded(paper: Paper, arch: str) -> Surface | None:
    """Return the printed coefficients with each alone moved by its rounding; None if the surface is another."""
    printed = paper.tables.get("coefficients")
    if printed is None or arch not in printed.column("arch"):
        return None
    stack = perturbed_surface(paper, perturbed_values(coefficient_inputs(paper, [arch])), arch)
    same = stack.law == paper.surfaces[arch].law and np.array_equal(stack.coef[0], paper.surfaces[arch].coef)
    return stack if same else None


def ends(point: Array, drawn: Array | None, kind: IntervalKind, level: float) -> tuple[Array, Array] | None:
    """Return interval ends of a quantity; ``drawn`` has replicates along its first axis.

    Raises
    ------
    UsageError
        If the level is not in (0, 1) or the kind is unknown.
    """
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    if kind not in INTERVALS:
        raise UsageError(f"interval {kind!r} is unknown; choose from {', '.join(INTERVALS)}")
    if drawn is None:
        return None
    return percentile_interval(drawn, level) if kind in SAMPLED else jackknife_t_interval(point, drawn, level)
