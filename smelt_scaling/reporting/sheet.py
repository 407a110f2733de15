"""Every figure of a report on one sheet, to be looked at before it is sent."""

from __future__ import annotations

from pathlib import Path

from smelt_scaling.errors import StudyError
from smelt_scaling.reporting.page import files_of

__all__ = ["contact_sheet"]

#: Figures side by side, and how wide each is, inches.
ACROSS, WIDTH = 2, 6.9


def contact_sheet(folder: str | Path) -> Path:
    """Put all PNG figures of a report on one sheet, each under its name.

    Parameters
    ----------
    folder : str or Path
        A report.

    Returns
    -------
    Path
        ``contact_sheet.png`` in that folder.

    Raises
    ------
    StudyError
        If it holds no report, or no PNG figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.image import imread

    from smelt_scaling.reporting.figures.style import styled

    base = Path(folder)
    sheet = base / "contact_sheet.png"
    paths = list(files_of(base, ".png").values())
    if not paths:
        raise StudyError(f"{base}: holds no PNG figure for a contact sheet; draw them with --figures png")
    images = [imread(path) for path in paths]
    widest = max(image.shape[1] for image in images)  # all in one scale, as they will stand on a page
    rows = [images[first : first + ACROSS] for first in range(0, len(images), ACROSS)]
    heights = [max(WIDTH * image.shape[0] / widest for image in row) for row in rows]
    with styled():
        figure = Figure(figsize=(ACROSS * WIDTH, sum(heights) + 0.3 * len(rows)), layout="constrained")
        grid = figure.subplots(len(rows), ACROSS, squeeze=False, height_ratios=heights)
        for ax in grid.flat:
            ax.set_axis_off()
        for ax, path, image in zip(grid.flat, paths, images, strict=False):
            ax.imshow(image)
            ax.set_xlim(0, widest)
            ax.set_anchor("NW")
            ax.set_title(path.relative_to(base).as_posix(), loc="left")
        figure.savefig(sheet, metadata={"Software": None})
    return sheet
