"""From a table to what a law is fitted to: one list of steps, each a pure function of columns and weights.

The endpoints stay as they are; a step changes what the fit sees of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, UsageError
from smelt_scaling.fitting.settings import FitSettings
from smelt_scaling.laws import effective_amount

__all__ = ["STEPS", "Seen", "prepare"]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What a fit sees of the endpoints of one architecture.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Columns of the law.
    weight : (n,) array
        Weight of each row in the objective.
    """

    columns: Mapping[str, Array]
    weight: Array


Step = Callable[[Seen, Endpoints, Labels, FitSettings], Seen]


def equal_cells(seen: Seen, endpoints: Endpoints, labels: Labels, settings: FitSettings) -> Seen:
    """Give every label the same total weight, shared among its rows in proportion to their own weights.

    The weights of an architecture still add up to what they were, so that objectives keep their size.
    """
    if settings.cell_weights != "equal":
        return seen
    _, cell = np.unique(labels, return_inverse=True)
    total = np.bincount(cell, seen.weight)
    share = seen.weight / np.where(total > 0, total, 1.0)[cell]
    return replace(seen, weight=share * (seen.weight.sum() / np.count_nonzero(total)))


def fresh_equivalents(seen: Seen, endpoints: Endpoints, labels: Labels, settings: FitSettings) -> Seen:
    """Put effective tokens in place of D, where runs pass over their unique tokens several times.

    Raises
    ------
    UsageError
        If the law holds no D.
    DataError
        If unique tokens are missing, or more than tokens.
    """
    if settings.data_law != "repeated":
        return seen
    if "D" not in seen.columns:
        raise UsageError(
            "--data-law repeated: the law holds no D, whose repeated tokens it would discount; leave it out"
        )
    if "unique_tokens" not in endpoints:
        raise DataError(
            f"{endpoints.source}: no column unique_tokens, which --data-law repeated needs; name it with "
            "--map unique_tokens=COLUMN, or leave the option out"
        )
    unique, D = endpoints["unique_tokens"], endpoints.D
    # data written in two places may differ in the last digits
    for bad, what in ((np.isnan(unique), "missing"), (unique > D * (1 + 1e-6), "above column D")):
        if bad.any():
            raise DataError(
                f"{endpoints.source}: column unique_tokens, {int(bad.sum())} of {len(D)} values {what}: --data-law "
                "repeated needs the unique tokens that each run has seen; for a single pass write D"
            )
    return replace(seen, columns={**seen.columns, "D": effective_amount(D, unique, settings.repeat_constant)})


#: In the order in which they are taken.
STEPS: tuple[Step, ...] = (fresh_equivalents, equal_cells)


def prepare(
    columns: Mapping[str, Array], endpoints: Endpoints, labels: Labels, settings: FitSettings
) -> Seen:
    """Return the columns of a law and the weights after every step that the settings ask for.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Columns of the law, as the table has them.
    endpoints : Endpoints
        The endpoints of one architecture.
    labels : (n,) array of str
        Their resampling labels.
    settings : FitSettings
        What is asked for.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"cell": ["x", "x", "y"], "F": [6e9] * 3, "D": [1e10, 2e10, 1e10], "loss": [3.0, 2.75, 3.0]})
    >>> prepare({"D": runs.D}, runs, runs.cells()[0], FitSettings(cell_weights="equal")).weight.tolist()
    [0.75, 0.75, 1.5]
    """
    seen = Seen(columns=columns, weight=endpoints.weight)
    for step in STEPS:
        seen = step(seen, endpoints, labels, settings)
    return seen
