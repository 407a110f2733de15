"""Scores drawn from a stated truth, to try things on and to measure how often a test is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from smelt_scaling.analyses.calibration.sigmoid import Sigmoid
from smelt_scaling.endpoints import Endpoints

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate_scores"]


def simulate_scores(
    endpoints: Endpoints,
    truth: Mapping[str, Sigmoid],
    *,
    sd: float,
    cell_share: float = 0.5,
    excess: Mapping[str, float] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw scores of endpoints: a sigmoid of the loss, an excess of some architectures, and noise.

    Parameters
    ----------
    endpoints : Endpoints
        Runs with their losses.
    truth : mapping of str to Sigmoid
        Metric -> its score at a loss, for every architecture alike.
    sd : float
        Standard deviation of a score about it.
    cell_share : float
        Share of that variance that all endpoints of a cell of an architecture have in common, in [0, 1].
    excess : mapping of str to float, optional
        Architecture -> what its scores lie above the sigmoid.
    seed : int
        Seed of the noise.

    Returns
    -------
    DataFrame
        ``arch, scale, cell, F, S, D, loss, metric, score``.

    Examples
    --------
    >>> from smelt_scaling.papers.example import example_endpoints
    >>> truth = {"core": Sigmoid(floor=0.05, span=0.6, slope=4.5, midpoint=1.75, sign=1)}
    >>> len(simulate_scores(example_endpoints(), truth, sd=0.01))
    144
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = endpoints.to_frame()
    frame = frame[[name for name in ("arch", "scale", "cell", "F", "S", "D", "loss") if name in frame]]
    labels, _ = endpoints.cells()
    keys = np.char.add(np.char.add(np.asarray(frame["arch"], dtype=np.str_), "/"), np.asarray(labels))
    _, cell = np.unique(keys, return_inverse=True)
    raised = np.array([(excess or {}).get(arch, 0.0) for arch in frame["arch"]])
    parts = []
    for metric, sigmoid in truth.items():
        shared = np.sqrt(cell_share) * rng.standard_normal(cell.max() + 1)[cell]
        noise = sd * (shared + np.sqrt(1 - cell_share) * rng.standard_normal(len(frame)))
        parts.append(
            frame.assign(metric=metric, score=sigmoid.score(frame["loss"]) + sigmoid.sign * raised + noise)
        )
    return pd.concat(parts, ignore_index=True)
