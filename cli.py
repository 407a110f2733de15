"""Run the command line from a checkout: ``python cli.py --help``."""

from smelt_scaling.cli import main

if __name__ == "__main__":
    main()
