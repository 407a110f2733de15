"""The probes and the columns of their one long table, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smelt_scaling.analyses.probes.cosines import ATTENTION_COSINE, WRITE_COSINE
from smelt_scaling.analyses.probes.declaration import Probe
from smelt_scaling.analyses.probes.norms import WRITE_NORM
from smelt_scaling.analyses.probes.positions import TOP_K
from smelt_scaling.analyses.probes.routing import ROUTING
from smelt_scaling.analyses.probes.sinks import SINK

__all__ = ["APART", "BY", "KEY", "PROBES", "PROBE_COLUMNS", "ProbeColumn"]

PROBES: dict[str, Probe] = {
    probe.name: probe for probe in (ROUTING, WRITE_NORM, WRITE_COSINE, ATTENTION_COSINE, TOP_K, SINK)
}


@dataclass(frozen=True, kw_only=True)
class ProbeColumn:
    """One column of the long table.

    Parameters
    ----------
    kind : {"text", "number"}
        Labels stay as they are written.
    description : str
        What it holds.
    required : bool
        Whether every table has it, with a value in every row (``value`` may be missing).
    rule : str
        What its numbers obey, in words; a missing one is allowed.
    least, strict, whole : float, bool, bool
        The same for the machine.
    """

    kind: Literal["text", "number"]
    description: str
    required: bool = False
    rule: str = ""
    least: float = float("-inf")
    strict: bool = False
    whole: bool = False


def _words(description: str, required: bool = False) -> ProbeColumn:
    return ProbeColumn(kind="text", description=description, required=required)


def _count(description: str, least: float) -> ProbeColumn:
    rule = f"a whole number >= {least:g}"
    return ProbeColumn(kind="number", description=description, rule=rule, least=least, whole=True)


#: The schema, in order.
PROBE_COLUMNS: dict[str, ProbeColumn] = {
    "probe": _words(f"name of the probe: {', '.join(PROBES)}", True),
    "cell": _words("experimental unit: one (scale, sparsity) design point; resampled", True),
    "doc": _words("document; equal names are the same document in every cell; resampled", True),
    "part": _words("component or stage of attention that was measured"),
    "visit": _words("visit, or the two that are compared: 2, 1-2"),
    "layer": _words("physical layer"),
    "head": _words("head, or group of heads for keys and values"),
    "position": _count("position in the document, from 0; for rows of single tokens", 0),
    "k": _count("number of experts or positions chosen per token", 1),
    "n": _count("number of experts to choose from", 1),
    "width": _count("number of dimensions of the vectors", 1),
    "value": ProbeColumn(
        kind="number", description="measured number; missing where it is undefined", required=True
    ),
    "chance": ProbeColumn(
        kind="number", description="chance of the row; computed where the column is absent"
    ),
    "control": ProbeColumn(kind="number", description="measured reference of the row"),
    "tokens": _count("number of tokens that the row is a mean of; 1 where the column is absent", 1),
    "undefined": _count("number of further tokens without a value", 0),
    "unnormalised": _count("number of rows of attention weights that do not sum to 1", 0),
    "scaled": _words("write norms: whether the writes hold the factor 1/r of a loop of r visits, yes or no"),
}

#: Columns that are never averaged over.
APART = ("probe", "part", "visit", "k", "n")
#: Columns that can be kept apart on request.
BY = ("cell", "layer", "head")
#: What names a row.
KEY = ("probe", "cell", "doc", "part", "visit", "layer", "head", "position")
