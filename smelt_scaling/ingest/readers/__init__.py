"""Log formats, recognised by content: the first reader of `READERS` that knows a file reads it.

A new format is one file with one `Reader`, and one line here. The order goes from formats with a signature to those
that look like others.
"""

from __future__ import annotations

from smelt_scaling.ingest.events import Reader
from smelt_scaling.ingest.readers.llmc import LLMC

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    "llmc": LLMC,
}
