"""What the second visit of looped layers does: two visits compared, pooled and set against chance."""

from __future__ import annotations

from smelt_scaling.analyses.probes.catalogue import PROBE_COLUMNS, PROBES
from smelt_scaling.analyses.probes.cosines import attention_cosine_rows, write_cosine_rows
from smelt_scaling.analyses.probes.declaration import Probe
from smelt_scaling.analyses.probes.norms import norm_rows
from smelt_scaling.analyses.probes.positions import position_rows
from smelt_scaling.analyses.probes.report import probe_report
from smelt_scaling.analyses.probes.routing import overlap_tail, routing_rows
from smelt_scaling.analyses.probes.sinks import sink_rows
from smelt_scaling.analyses.probes.writer import ProbeWriter

__all__ = [
    "PROBES",
    "PROBE_COLUMNS",
    "Probe",
    "ProbeWriter",
    "attention_cosine_rows",
    "norm_rows",
    "overlap_tail",
    "position_rows",
    "probe_report",
    "routing_rows",
    "sink_rows",
    "write_cosine_rows",
]
