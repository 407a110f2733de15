"""How every figure looks: a column of a paper wide, in colours that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CELLS", "COLUMN", "PAGE", "REFERENCE", "TARGET", "arch_colours", "new_figure", "styled"]

#: Widths of one column and of a page of text, inches.
COLUMN, PAGE = 3.35, 6.9
#: Okabe and Ito 2008: told apart under every common colour blindness, and in grey by their lightness.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
)
REFERENCE, TARGET = BLUE, VERMILLION
CYCLE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Cells of a map, parted by white.
CELLS: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.6}

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine draws alike
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": True,  # a ground without an edge, so that hatching does not run through the words
    "legend.facecolor": "white",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.8,
    "legend.borderpad": 0.2,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
    "hatch.linewidth": 0.4,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # letters stay letters: journals refuse type 3 fonts
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "smelt-scaling",  # equal figures, equal bytes
    "axes.formatter.use_mathtext": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this style; settings of the caller are back afterwards."""
    import matplotlib

    settings: Any = {**matplotlib.rcParamsDefault, **RC, "backend": "agg"}
    with matplotlib.rc_context(settings):
        yield


def new_figure(
    panels: int = 1, *, width: float = COLUMN, height: float = 2.3, rows: int = 1, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes in reading order; no pyplot, so nothing global changes.

    Parameters
    ----------
    panels : int
        Number of axes, side by side in ``rows`` rows.
    width, height : float
        Inches.
    **subplots
        As for ``Figure.subplots``, such as ``sharey=True``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, -(-panels // rows), squeeze=False, **subplots).ravel().tolist()
    for spare in axes[panels:]:
        spare.set_visible(False)
    return figure, axes[:panels]


def arch_colours(archs: Sequence[str], reference: str | None = None) -> dict[str, str]:
    """Return a colour per architecture: blue for the reference, vermillion for the first other one.

    Examples
    --------
    >>> arch_colours(["smelt", "baseline"], reference="baseline")
    {'baseline': '#0072B2', 'smelt': '#D55E00'}
    """
    ordered = sorted(archs, key=lambda arch: (arch != reference, arch))
    return {arch: CYCLE[i % len(CYCLE)] for i, arch in enumerate(ordered)}
