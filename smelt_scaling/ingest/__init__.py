"""Readers: from files that other programs wrote to checked endpoints."""

from __future__ import annotations

from smelt_scaling.ingest.families import check_family
from smelt_scaling.ingest.found import LogEndpoints
from smelt_scaling.ingest.logs import read_logs
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.runtable import read_run_table
from smelt_scaling.ingest.scan import ScannedLogs, scan_logs
from smelt_scaling.ingest.selection import Rules
from smelt_scaling.ingest.tidy import read_endpoints

__all__ = [
    "READERS",
    "LogEndpoints",
    "Rules",
    "ScannedLogs",
    "check_family",
    "read_endpoints",
    "read_logs",
    "read_run_table",
    "scan_logs",
]
