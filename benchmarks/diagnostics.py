"""What looking at a gain from all sides costs: choices, everything left out in turn, the whole diagnosis."""

from __future__ import annotations

from typing import Any

from benchmarks.recorder import one_thread, table, timed

TITLE = "Diagnosing a gain"
GOALS = {"sensitivity": 10.0, "diagnose": 60.0}


def measure(replicates: int = 200, runs: int = 3) -> dict[str, Any]:
    """Time them at the 144 endpoints of the example; the fastest of some runs."""
    from smelt_scaling import ce_gain, diagnose, example_endpoints, fit
    from smelt_scaling.analyses.diagnostics import influence, sensitivity

    study = fit(example_endpoints(), bootstrap=replicates)
    asked = {"target": "smelt", "reference": "baseline"}
    calls = {
        "sensitivity": lambda: sensitivity(study, **asked),
        "influence": lambda: influence(study, **asked),
        "diagnose": lambda: diagnose(study, **asked),
        "ce_gain(sensitivity=True)": lambda: ce_gain(study, [1e20, 1e21], sensitivity=True, **asked),
    }
    found = {}
    with one_thread():
        for name, call in calls.items():
            clocks, rows = [], 0
            for _ in range(runs):
                frame, clock = timed(call)
                clocks.append(clock)
                rows = len(frame)
            best = min(clocks, key=lambda clock: clock.cpu)
            found[name] = {"rows": rows, "cpu": best.cpu, "wall": min(clock.wall for clock in clocks)}
    return {"endpoints": len(study.endpoints), "runs": runs, "calls": found}


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    text = (
        f"Point fits of {values['endpoints']} endpoints under every choice of the panel, with everything left out in "
        f"turn, the whole diagnosis, and other estimators beside a table of gains; fastest of {values['runs']} runs, "
        "on one core."
    )
    rows = [
        [
            f"`{name}`",
            f"{one['rows']}",
            f"{one['cpu']:.1f}",
            f"{one['wall']:.1f}",
            f"{GOALS[name]:g} s" if name in GOALS else "",
        ]
        for name, one in values["calls"].items()
    ]
    return "\n".join([text, "", table(["call", "rows", "CPU s", "wall s", "goal"], rows)])
