"""The bootstrap itself: the distribution of the gain, and of the exponents that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import (
    COLUMN,
    MARKERS,
    PAGE,
    TARGET,
    arch_colours,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GainReplicates", "draw_ellipse", "draw_histogram", "draws_figure"]

Array = NDArray[np.float64]
#: 95 % of a bivariate normal lie within this squared Mahalanobis distance: chi-square with 2 degrees of freedom.
CHI2 = 5.991464547107979
#: An ellipse needs more points than this.
FEW = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class GainReplicates:
    """Replicates of one gain.

    Parameters
    ----------
    gains : (draws,) array
        Fractions; NaN where unreachable.
    point, ends : float or None
        Estimate, and ends of its interval; None where unreachable.
    headline : str
        What the gain is, such as "1e21 FLOPs, S = 0.947".
    """

    gains: Array
    point: float | None
    ends: tuple[float | None, float | None]
    headline: str


def draw_histogram(
    gains: Array, ax: Axes, *, point: float | None, ends: tuple[float | None, float | None]
) -> None:
    """Draw replicates of a gain; how many are unreachable is written beside them.

    Parameters
    ----------
    gains : (draws,) array
        Fractions; NaN where unreachable.
    ax : Axes
        Where.
    point, ends : float or None
        Estimate, and ends of its interval; not drawn where None or NaN.
    """
    reached = gains[np.isfinite(gains)]
    if len(reached):
        ax.hist(reached, bins=40, color=TARGET, alpha=0.35, density=False)
    for at, style in ((point, "-"), *((end, "--") for end in ends)):
        if at is not None and np.isfinite(at):
            ax.axvline(at, color=TARGET, linestyle=style, linewidth=1.2 if style == "-" else 0.8)
    ax.axvline(0.0, color="black", linewidth=0.6)
    percent_axis(ax, "")
    ax.xaxis.set_major_formatter(ax.yaxis.get_major_formatter())
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.set_xlabel("compute saved")
    ax.set_ylabel("replicates")
    lost = len(gains) - len(reached)
    if lost:
        ax.annotate(
            f"{lost} of {len(gains)}\nunreachable",
            (0.98, 0.95),
            xycoords="axes fraction",
            ha="right",
            va="top",
        )


def draw_ellipse(x: Array, y: Array, ax: Axes, colour: str) -> None:
    """Draw the ellipse that holds 95 % of a normal with the mean and covariance of the points."""
    centre = np.array([x.mean(), y.mean()])
    value, vector = np.linalg.eigh(np.cov(x, y))
    angle = np.linspace(0.0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)]) * np.sqrt(CHI2 * np.maximum(value, 0.0))[:, None]
    ax.plot(*(centre[:, None] + vector @ circle), color=colour, linewidth=0.9)


def draws_figure(
    gain: GainReplicates | None,
    pairs: Mapping[str, tuple[Array, Array, float, float]],
    *,
    names: tuple[str, str],
    reference: str | None,
) -> Drawing:
    """Draw the replicates of one gain, if there is one, and of two parameters per architecture.

    Parameters
    ----------
    gain : GainReplicates, optional
        Left panel.
    pairs : mapping of str to (x, y, x of the fit, y of the fit)
        Architecture -> replicates of two parameters and their point estimates.
    names : (str, str)
        The two parameters.
    reference : str, optional
        Reference architecture.
    """
    figure, axes = new_figure(1 if gain is None else 2, width=COLUMN if gain is None else PAGE, height=2.4)
    if gain is not None:
        draw_histogram(gain.gains, axes[0], point=gain.point, ends=gain.ends)
        axes[0].set_title(gain.headline)
    ax = axes[-1]
    colours = arch_colours(list(pairs), reference)
    for number, (arch, colour) in enumerate(colours.items()):
        x, y, at_x, at_y = pairs[arch]
        finite = np.isfinite(x) & np.isfinite(y)
        ax.plot(x[finite], y[finite], ".", markersize=1.2, color=colour, alpha=0.25)
        if finite.sum() > FEW:
            draw_ellipse(x[finite], y[finite], ax, colour)
        ax.plot(
            [at_x],
            [at_y],
            marker=MARKERS[number % len(MARKERS)],
            color=colour,
            markeredgecolor="black",
            markeredgewidth=0.5,
            markersize=5,
            label=arch,
            linestyle="none",
        )
    ax.set_xlabel(f"parameter {names[0]}")
    ax.set_ylabel(f"parameter {names[1]}")
    ax.legend(loc="best")
    count = len(next(iter(pairs.values()))[0])
    rows: list[dict[str, Any]] = [{"replicate": i} for i in range(count)]
    columns = {} if gain is None else {"gain": gain.gains}
    for arch, (x, y, _, _) in pairs.items():
        columns |= {f"{names[0]}_{arch}": x, f"{names[1]}_{arch}": y}
    for name, values in columns.items():
        for row, value in zip(rows, values.tolist(), strict=True):
            row[name] = value if np.isfinite(value) else None
    left = (
        "Left: replicates of the gain, its estimate and the ends of its interval (dashed). Right: replicates"
    )
    return Drawing(
        name="draws",
        figure=figure,
        rows=rows,
        caption=(
            f"{'Replicates' if gain is None else left} of two parameters, and the ellipse that would hold 95 % of a "
            "normal."
        ),
    )
