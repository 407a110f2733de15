"""Read the kinds of raw file that hold public data: CSV, tables printed in notebooks, pickled tables."""

from __future__ import annotations

import io
import json
import pickle
from html.parser import HTMLParser
from typing import Any

import pandas as pd


def read_csv(data: bytes) -> pd.DataFrame:
    """Parse a CSV with every number read to its nearest double; an empty cell is missing, 'none' is text."""
    text = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    return pd.DataFrame({name: parsed(text[name].tolist()) for name in text})


def parsed(cells: list[str]) -> list[Any]:
    """Return a column as integers, numbers, truth values or text, whichever all its cells are."""
    if set(cells) <= {"True", "False"}:
        return [cell == "True" for cell in cells]
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        pass
    try:
        return [float(cell or "nan") for cell in cells]
    except ValueError:
        return cells


class _Table(HTMLParser):
    """Cells of the first HTML table of a notebook output, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data.strip()


def notebook_table(data: bytes, source: str) -> pd.DataFrame:
    """Return the HTML table that the code cell holding ``source`` printed, all cells as text."""
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] == "code" and source in "".join(cell["source"]):
            for output in cell["outputs"]:
                if "text/html" in output.get("data", {}):
                    parser = _Table()
                    parser.feed("".join(output["data"]["text/html"]))
                    head, *body = (row for row in parser.rows if row)
                    return pd.DataFrame(body, columns=head).iloc[:, 1:]
    raise ValueError(f"no cell with {source!r} prints a table")


def unpickle_table(data: bytes) -> pd.DataFrame:
    """Return a pickled DataFrame without running anything else that the file may ask for."""
    return _TableUnpickler(io.BytesIO(data)).load()


class _TableUnpickler(pickle.Unpickler):
    """Reads a pickled DataFrame and nothing else: any other class in the file is refused."""

    ALLOWED = frozenset(
        {
            ("builtins", "slice"),
            ("numpy", "dtype"),
            ("numpy", "ndarray"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.numeric", "_frombuffer"),
            ("pandas._libs.internals", "_unpickle_block"),
            ("pandas.core.frame", "DataFrame"),
            ("pandas.core.indexes.base", "Index"),
            ("pandas.core.indexes.base", "_new_Index"),
            ("pandas.core.indexes.multi", "MultiIndex"),
            ("pandas.core.internals.managers", "BlockManager"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"the file asks for {module}.{name}, which is no part of a table")
        return super().find_class(module, name)
