"""Long tables: one row per endpoint and key of a family, such as the losses of every domain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import UsageError
from smelt_scaling.ingest.selection import Pick, Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_family", "long_table"]


def check_family(pattern: str) -> str:
    """Return a pattern of keys if it has one ``*``, which stands for the member.

    Raises
    ------
    UsageError
        Otherwise.
    """
    if pattern.count("*") != 1:
        raise UsageError(f"--long {pattern}: a family of keys has one * for its member, as in eval/*/loss")
    return pattern


def long_table(frame: pd.DataFrame, chosen: Sequence[tuple[Run, Pick]], pattern: str) -> pd.DataFrame:
    """Return what every member of a family said at each endpoint.

    Parameters
    ----------
    frame : DataFrame
        The endpoints, row by row those of ``chosen``.
    chosen : sequence of (Run, Pick)
        Where they come from.
    pattern : str
        Keys, with one ``*`` for the member.

    Returns
    -------
    DataFrame
        The columns of the endpoints, ``member`` (what the ``*`` stands for), ``value`` (as logged), and ``value_step``:
        the step at which it was logged, which may lie before the endpoint. Members that a run never logs have no row.
    """
    import pandas as pd

    member = re.compile(translate(check_family(pattern)).replace(".*", "(.*)", 1))
    rows: list[dict[str, Any]] = []
    for row, (_, pick) in zip(frame.to_dict("records"), chosen, strict=True):
        for key in sorted(pick.lasts):
            match = member.match(key)
            last = pick.lasts[key]
            if match and last.value == last.value and not last.broken:
                rows.append(
                    {
                        **{str(k): v for k, v in row.items()},
                        "member": match[1],
                        "value": last.value,
                        "value_step": last.step,
                    }
                )
    return pd.DataFrame(rows, columns=[*frame.columns, "member", "value", "value_step"])
