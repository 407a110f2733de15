"""Write ``recorded/`` anew: files by the real producers, and what the real readers say of them.

Needs the packages of the extra ``oracle``: ``python tests/oracle/record.py``, with names of packages for only some.
Tests read the recorded files always, and new ones where these packages are installed.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
#: Module that makes and reads files -> the package that does it.
PRODUCERS = {
    "make_tensorboard": "tensorboard",
    "make_wandb": "wandb",
    "make_mlflow": "mlflow-skinny",
    "make_transformers": "transformers",
}


def main() -> None:
    """Make everything in an empty folder, and keep it."""
    wanted = sys.argv[1:] or list(PRODUCERS.values())
    for name, package in PRODUCERS.items():
        if package not in wanted:
            continue
        module = importlib.import_module(name)
        with tempfile.TemporaryDirectory() as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            module.make(made)
            said = {"made_by": f"{package} {version(package)}", "runs": module.answers(made)}
            for path in (made / "wandb").glob("*") if name == "make_wandb" else ():
                if not path.is_dir() or path.is_symlink():  # links to the last run and to its logs
                    path.unlink()
            shutil.rmtree(RECORDED / package, ignore_errors=True)
            shutil.copytree(made, RECORDED / package)
        text = json.dumps(said, indent=None, separators=(",", ":")) + "\n"
        (RECORDED / f"{package}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
