"""The bootstrap itself: the distribution of the gain, and of the exponents that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import MARKERS, PAGE, TARGET, arch_colours, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_ellipse", "draw_histogram", "draws_figure"]

Array = NDArray[np.float64]
#: 95 % of a bivariate normal lie within this squared Mahalanobis distance: chi-square with 2 degrees of freedom.
CHI2 = 5.991464547107979


def draw_histogram(gains: Array, ax: Axes, *, point: float, ends: tuple[float | None, float | None]) -> None:
    """Draw replicates of a gain, those that are unreachable in a bar at the right end.

    Parameters
    ----------
    gains : (draws,) array
        Fractions; NaN where unreachable.
    ax : Axes
        Where.
    point, ends : float
        Estimate, and ends of its interval.
    """
    reached = gains[np.isfinite(gains)]
    ax.hist(reached, bins=40, color=TARGET, alpha=0.35, density=False)
    ax.axvline(point, color=TARGET)
    for end in ends:
        if end is not None:
            ax.axvline(end, color=TARGET, linestyle="--", linewidth=0.8)
    ax.axvline(0.0, color="black", linewidth=0.6)
    percent_axis(ax, "")
    ax.xaxis.set_major_formatter(ax.yaxis.get_major_formatter())
    from matplotlib.ticker import ScalarFormatter

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
    gains: Array,
    point: float,
    ends: tuple[float | None, float | None],
    exponents: Mapping[str, tuple[Array, Array, float, float]],
    *,
    names: tuple[str, str],
    reference: str,
    headline: str,
) -> Drawing:
    """Draw the replicates of one gain, and of two exponents per architecture.

    Parameters
    ----------
    gains, point, ends
        As for `draw_histogram`.
    exponents : mapping of str to (x, y, x of the fit, y of the fit)
        Architecture -> replicates of two exponents and their point estimates.
    names : (str, str)
        The two exponents.
    reference : str
        Reference architecture.
    headline : str
        What the gain is, such as "1e21 FLOPs, S = 0.947".
    """
    figure, axes = new_figure(2, width=PAGE, height=2.4)
    draw_histogram(gains, axes[0], point=point, ends=ends)
    axes[0].set_title(headline)
    colours = arch_colours(list(exponents), reference)
    for number, (arch, colour) in enumerate(colours.items()):
        x, y, at_x, at_y = exponents[arch]
        axes[1].plot(x, y, ".", markersize=1.2, color=colour, alpha=0.25)
        draw_ellipse(x, y, axes[1], colour)
        axes[1].plot(
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
    axes[1].set_xlabel(f"exponent {names[0]}")
    axes[1].set_ylabel(f"exponent {names[1]}")
    axes[1].legend(loc="best")
    rows: list[dict[str, Any]] = [
        {"replicate": i, "gain": float(value) if np.isfinite(value) else None}
        for i, value in enumerate(gains)
    ]
    for arch, (x, y, _, _) in exponents.items():
        for row, a, b in zip(rows, x.tolist(), y.tolist(), strict=True):
            row |= {f"{names[0]}_{arch}": a, f"{names[1]}_{arch}": b}
    return Drawing(
        name="draws",
        figure=figure,
        rows=rows,
        caption=(
            "Left: replicates of the gain, its estimate and the ends of its interval (dashed). Right: replicates of "
            "two exponents with the ellipse that would hold 95 % of a normal."
        ),
    )
