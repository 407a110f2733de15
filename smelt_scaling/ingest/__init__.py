"""Readers: from files that other programs wrote to checked endpoints."""

from __future__ import annotations

from smelt_scaling.ingest.tidy import read_endpoints

__all__ = ["read_endpoints"]
