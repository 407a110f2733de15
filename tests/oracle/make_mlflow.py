"""An MLflow file store written by MLflow itself, and what its client says it holds."""

from __future__ import annotations

import math
import os
from pathlib import Path

START = 1_700_000_000_000  # milliseconds since 1970
#: Run -> (status it ends with, metrics as (key, value, milliseconds since 1970, step)).
RUNS: dict[str, tuple[str, list[tuple[str, float, int, int]]]] = {
    "dense: 200M": (
        "FINISHED",
        [("train/loss", 2.0 + 3.0 / (1 + step), START + 1000 * step, step) for step in range(31)]
        + [
            ("eval/c4/loss", 2.1 + 3.0 / (1 + step), 1_700_000_000_500 + 1000 * step, step)
            for step in range(0, 31, 10)
        ],
    ),
    "restarted": (
        "FINISHED",
        [("loss", 3.0 - 0.1 * step, START + 1000 * step, step) for step in range(10)]
        + [("loss", 3.05 - 0.1 * step, START + 100_000 + 1000 * step, step) for step in range(5, 12)],
    ),
    "diverged": (
        "FAILED",
        [
            ("loss", value, START + step, step)
            for step, value in enumerate((3.0, math.inf, math.nan, -math.inf))
        ],
    ),
    "going on": ("RUNNING", [("loss", 2.5, START, 7)]),
    "killed": ("KILLED", [("loss", 2.25, START, 3)]),
    "thrown away": ("FINISHED", [("loss", 9.0, START, 3)]),
}


def make(folder: Path) -> None:
    """Write one experiment."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
    experiment = client.create_experiment("sweep", artifact_location="file:///runs/artifacts")
    for number, (name, (status, metrics)) in enumerate(RUNS.items()):
        start = START + number
        run = client.create_run(
            experiment, start_time=start, run_name=name, tags={"note": "two\nlines: of it"}
        )
        logged = [Metric(key, value, time, step) for key, value, time, step in metrics]
        client.log_batch(run.info.run_id, metrics=logged, params=[Param("layers", "12"), Param("seed", "3")])
        if status != "RUNNING":
            client.set_terminated(run.info.run_id, status, end_time=start + 100_000)
        if name == "thrown away":
            client.delete_run(run.info.run_id)


def answers(folder: Path) -> dict[str, dict[str, object]]:
    """Return what MLflow reads: run -> its status and start, and the values of each metric as [step, value]."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.entities import ViewType
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("sweep")
    found: dict[str, dict[str, object]] = {}
    for run in client.search_runs([experiment.experiment_id], run_view_type=ViewType.ACTIVE_ONLY):
        found[run.info.run_name] = {
            "id": run.info.run_id,
            "status": run.info.status,
            "start_time": run.info.start_time,
            "metrics": {
                key: [
                    [metric.step, metric.value if math.isfinite(metric.value) else str(metric.value)]
                    for metric in client.get_metric_history(run.info.run_id, key)
                ]
                for key in run.data.metrics
            },
        }
    return found
