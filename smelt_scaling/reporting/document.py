"""What every human format shows: grids of cells under a title, with footnotes. No numbers are computed here."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Cell", "Document", "Grid"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell.

    Parameters
    ----------
    point : str
        The value as printed; aligned on the right where the column holds numbers.
    beside : str
        What stands right of it: an interval or a mark.
    """

    point: str
    beside: str = ""

    def __str__(self) -> str:
        return f"{self.point} {self.beside}" if self.beside else self.point


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One table.

    Parameters
    ----------
    heading : str
        Stands above it; empty for the only table of a document.
    headers : tuple of str
        Column heads.
    numeric : tuple of bool
        Which columns hold numbers.
    rows : tuple of tuple of Cell
        As many cells per row as headers.
    remarks : tuple of str
        One per row, empty where there is none; a last column where there is room, a line below the row in plain text.
    remark_header : str
        Head of that column.
    remark_mark : str
        What a remark below a row begins with.
    side_by_side : bool
        Whether each column is a thing of its own; where the table is too wide it is cut into blocks of whole columns.
    redundant : tuple of bool
        Columns that follow from others, left out where the page is narrow; none by default.
    """

    headers: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heading: str = ""
    remarks: tuple[str, ...] = ()
    remark_header: str = ""
    remark_mark: str = "†"
    side_by_side: bool = False
    redundant: tuple[bool, ...] = ()

    def at_most(self, columns: int) -> Grid:
        """Return the grid with so many columns, as far as leaving out redundant ones goes, the last first."""
        keep = list(range(len(self.headers)))
        for j in sorted((j for j, over in enumerate(self.redundant) if over), reverse=True):
            if len(keep) > columns:
                keep.remove(j)
        return replace(
            self,
            headers=tuple(self.headers[j] for j in keep),
            numeric=tuple(self.numeric[j] for j in keep),
            rows=tuple(tuple(row[j] for j in keep) for row in self.rows),
            redundant=tuple(self.redundant[j] for j in keep) if self.redundant else (),
        )

    def with_remark_column(self) -> Grid:
        """Return the grid with its remarks as a last column; itself if there are none."""
        if not any(self.remarks):
            return self
        rows = zip(self.rows, self.remarks, strict=True)
        return Grid(
            heading=self.heading,
            headers=(*self.headers, self.remark_header),
            numeric=(*self.numeric, False),
            rows=tuple((*cells, Cell(point=remark)) for cells, remark in rows),
        )


@dataclass(frozen=True, kw_only=True)
class Document:
    """A result for people.

    Parameters
    ----------
    title : str
        What the numbers are.
    caption : tuple of str
        Sentences below the title: interval, law, units.
    grids : tuple of Grid
        Tables, in order.
    footnotes : tuple of str
        Explanations of the marks used.
    """

    title: str
    caption: tuple[str, ...]
    grids: tuple[Grid, ...]
    footnotes: tuple[str, ...] = ()
