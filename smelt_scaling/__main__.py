"""Run the command line as ``python -m smelt_scaling``."""

from __future__ import annotations

from smelt_scaling.cli import main

if __name__ == "__main__":
    main()
