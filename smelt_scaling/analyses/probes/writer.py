"""Collecting rows document by document into the long table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.probes.arrays import Row
from smelt_scaling.analyses.probes.catalogue import PROBE_COLUMNS, PROBES
from smelt_scaling.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ProbeWriter"]


class ProbeWriter:
    """Collects what the measures say of each document; holds a few numbers per document, no arrays of tokens.

    Examples
    --------
    >>> from smelt_scaling.analyses.probes import routing_rows
    >>> writer = ProbeWriter()
    >>> for doc, chosen in {"a": [[0], [1]], "b": [[1], [1]]}.items():
    ...     writer.add("routing", routing_rows(chosen, chosen, n=4), cell="600M S95", doc=doc, layer=3)
    >>> writer.frame()[["cell", "doc", "layer", "k", "n", "value", "control"]].values.tolist()
    [['600M S95', 'a', '3', 1, 4, 1.0, 0.625], ['600M S95', 'b', '3', 1, 4, 1.0, 0.625]]
    """

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._loads: dict[tuple[str, str, Any, Any], NDArray[np.float64]] = {}

    def add(self, probe: str, rows: Iterable[Row], *, cell: str, doc: Any, layer: Any = "") -> None:
        """Take the rows of one document.

        Parameters
        ----------
        probe : str
            Which probe.
        rows : iterable of dict
            What its measure returned.
        cell : str
            The (scale, sparsity) design point.
        doc : str or int
            The document.
        layer : str or int
            The physical layer, where the rows do not name it.

        Raises
        ------
        UsageError
            For an unknown probe.
        """
        if probe not in PROBES:
            raise UsageError(f"{probe!r}: no probe; use one of {', '.join(PROBES)}")
        for row in rows:
            named = {"probe": probe, "cell": str(cell), "doc": str(doc), "layer": str(layer), **row}
            named |= {name: str(named[name]) for name in ("layer", "head") if name in named}
            load = named.pop("load", None)
            if load is not None:
                key = named["load"] = (named["cell"], named["layer"], named["k"], named["n"])
                self._loads[key] = self._loads.get(key, 0.0) + load
            self._rows.append(named)

    def frame(self) -> pd.DataFrame:
        """Return the long table of all documents so far.

        The load-aware chance of a routing row, sum_e p1_e p2_e with p the share of the cell's tokens that go to expert
        e, is what permuting the tokens of one visit over the whole cell would leave.
        """
        import pandas as pd

        expected = {key: self._expected(load, key[2]) for key, load in self._loads.items()}
        rows = [{**row, "control": expected[row["load"]]} if "load" in row else row for row in self._rows]
        present = {name for row in rows for name in row}
        return pd.DataFrame(rows, columns=[name for name in PROBE_COLUMNS if name in present])

    @staticmethod
    def _expected(load: NDArray[np.float64], k: int) -> float:
        tokens = load.sum(axis=1) / k
        return float(np.dot(load[0] / tokens[0], load[1] / tokens[1]))
