"""The example set: 144 endpoints **simulated** from the published SMELT surfaces on the paper's own grid.

The paper published no endpoint losses. What is real here is the design (configurations, token horizons) and
the two surfaces; the losses are those surfaces plus noise of the published size. A study of this set
demonstrates the tool and says nothing new about the architectures.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.accounting import Lengths
from smelt_scaling.accounting.grid import GridModel, Schedule, grid_columns
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.papers import Paper, load_paper
from smelt_scaling.papers.models import DOCUMENT_LENGTH, paper_models
from smelt_scaling.synth import simulate

__all__ = ["EXAMPLE_SEED", "example_endpoints", "write_example"]

#: Seed of the shipped set: the first one, not one chosen for its result.
EXAMPLE_SEED = 0

#: A fit of 6 coefficients to 72 endpoints shrinks the residuals: sd = rmse * sqrt(72 / (72 - 6)).
_SD_OVER_RMSE = 1.044

#: What the example holds of a grid, besides losses.
_COLUMNS = ("arch", "scale", "cell", "trunk", "run", "F", "S", "D", "N", "N_act")

#: Losses keep this many decimals, as a log would print them; platforms differ far below that.
_DECIMALS = 6


def example_endpoints(seed: int = EXAMPLE_SEED) -> Endpoints:
    """Simulate the example set: 12 sparse cells x 6 horizons x 2 architectures.

    Noise on the loss scale has standard deviation 1.044 x the published rmse of each architecture; half of
    its variance is shared by a cell's horizons, and the two architectures' cell effects have correlation 0.5.

    Parameters
    ----------
    seed : int
        Seed of the noise.

    Returns
    -------
    Endpoints
        Columns ``arch, scale, cell, trunk, run, F, S, D, loss, N, N_act, source``; ``F``, ``N`` and ``N_act``
        are what the printed configurations imply, ``S`` is as printed, ``source`` says ``simulated``.

    Examples
    --------
    >>> e = example_endpoints()
    >>> len(e), e.archs, [note.code for note in e.notes]
    (144, ('baseline', 'smelt'), ['simulated'])
    """
    paper = load_paper("smelt")
    rmse = paper.tables["coefficients"]
    sd = {
        arch: _SD_OVER_RMSE * float(rmse.select(arch=arch).numbers("rmse")[0]) for arch in rmse.column("arch")
    }
    drawn = simulate(
        paper.surfaces, example_design(paper), sd=sd, cell_share=0.5, pair_correlation=0.5, seed=seed
    )
    columns = {**drawn.columns, "loss": drawn.loss.round(_DECIMALS)}
    return replace(drawn, columns=columns, source="<example>")


def example_design(paper: Paper) -> dict[str, NDArray[Any]]:
    """Return the paper's fitted grid as columns of length 144, without losses."""
    models, schedule, lengths = paper_grid(paper)
    columns = grid_columns(models, schedule, convention="smelt", lengths=lengths)
    kept = {name: columns[name] for name in _COLUMNS}
    return kept | {"source": np.full(len(kept["arch"]), "simulated")}


def paper_grid(paper: Paper) -> tuple[list[GridModel], Schedule, Lengths]:
    """Return the models that a paper fitted, its schedule, and its documents."""
    recipe = paper.tables["recipe"]

    def quantity(name: str) -> float:
        return float(recipe.select(quantity=name).numbers("value")[0])

    schedule = Schedule(
        steps=tuple(int(step) for step in recipe.select(quantity="branch_start").column("value")),
        sequences=int(quantity("sequences_per_step")),
        sequence_length=int(quantity("context_length")),
        branch_tokens=quantity("branch_tokens"),
    )
    models = [
        GridModel(arch=model.arch, scale=model.scale, cell=model.cell, config=model.config, S=model.S)
        for model in paper_models(paper).values()
        # the paper leaves the tier of S = 0 out of its fits
        if model.tier != "0%" and model.config is not None
    ]
    return models, schedule, DOCUMENT_LENGTH


def write_example(path: str | Path, seed: int = EXAMPLE_SEED) -> Path:
    """Write the example set as a parquet file that says in its metadata, too, that it is simulated.

    Parameters
    ----------
    path : str or Path
        File to write; an existing one is replaced.
    seed : int
        Seed of the noise.

    Returns
    -------
    Path
        The file written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    endpoints = example_endpoints(seed)
    columns = endpoints.columns
    # types are spelled out and nothing is compressed, so that the bytes depend on as few versions as can be
    types = {
        name: pa.string() if values.dtype.kind == "U" else pa.float64() for name, values in columns.items()
    }
    table = pa.table({name: pa.array(columns[name].tolist(), type=types[name]) for name in columns})
    about = {
        "status": "simulated",
        "description": "Simulated from the published SMELT surfaces plus noise; not measurements",
        "seed": str(seed),
        "digest": endpoints.digest,
    }
    table = table.replace_schema_metadata({f"smelt_scaling.{key}": value for key, value in about.items()})
    path = Path(path)
    pq.write_table(table, path, compression="none")
    return path
