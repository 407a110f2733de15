"""Many worlds, each fitted and resampled as a user would: resumable, in a file of one line per chunk of worlds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage_worlds import ARCHS, NOISES, QUANTITIES, endpoints, estimated
from benchmarks.recorder import timed

Array = NDArray[np.float64]

INTERVALS = ("percentile", "jackknife-t", "wild-cr3")
LEVEL = 0.95
#: (B + 1) * 0.025 is the whole number 10, so that each tail holds 2.5 % exactly.
REPLICATES = 399
SEED = 0
CHUNK = 10
#: A user's fit starts from 64 points. These end in the same optimum, which a test checks, in half the time.
STARTS = 16

#: The options of a fit, by the name that the tables give them.
OBJECTIVES: dict[str, dict[str, Any]] = {
    "default": {},
    "delta inf": {"delta": float("inf")},
    "delta auto": {"delta": "auto"},
    "raw": {"residual": "raw"},
}


@dataclass(frozen=True, order=True)
class Setting:
    """One row of the tables: a kind of world and what is done to it; the first ``wild`` worlds get wild draws, too."""

    noise: str
    objective: str = "default"
    replicates: int = REPLICATES
    wild: int = 0


MAIN = tuple(Setting(noise, wild=300) for noise in ("half", "rows", "most"))
VARIANTS = (
    *(Setting(noise, wild=300) for noise in ("half, skewed", "most, skewed")),
    *(Setting(noise) for noise in ("half, drift", "rows, drift")),
    *(Setting(noise, "delta inf") for noise in ("rows", "half", "most")),
    *(Setting(noise, "delta auto") for noise in ("rows", "half", "most")),
    *(Setting(noise) for noise in ("half, unpaired", "half, paired", "rows, heavy", "half, heavy")),
    *(Setting(noise, "raw") for noise in ("rows", "half", "most")),
    *(Setting(noise) for noise in ("most, unpaired", "most, paired", "half, one drifts")),
)
#: The first of all with more replicates: what their number does.
FINER = Setting("half", replicates=1999)

#: What to do in which order, as (setting, worlds): what matters most is there first, and all grows together.
STEPS: tuple[tuple[Setting, int], ...] = (
    *((one, 200) for one in MAIN),
    *((one, 50) for one in VARIANTS[:10]),
    (FINER, 30),
    *((one, 50) for one in VARIANTS[10:]),
    *((one, 350) for one in MAIN),
    *((one, 100) for one in (*VARIANTS, FINER)),
    *((one, upto) for upto in (500, 1000) for one in MAIN),
    *((one, upto) for upto in (200, 300, 500, 1000) for one in VARIANTS),
)


def one_world(setting: Setting, index: int, seed: int = SEED) -> dict[str, Any]:
    """Fit and resample one world.

    Returns
    -------
    dict
        ``ends``: kind of interval -> [lower ends, upper ends] in the order of the quantities, None where there is none;
        a kind that was not asked for is not there. ``point``: the estimates. ``certified``: both point fits.
        ``refits``: share of certified replicates. ``unreachable``: share of replicates, by quantity.
    """
    from smelt_scaling import fit
    from smelt_scaling.analyses.view import ends, view_of

    study = fit(
        endpoints(NOISES[setting.noise], index, seed),
        bootstrap=setting.replicates,
        wild=index < setting.wild,
        starts=STARTS,
        seed=index,
        **OBJECTIVES[setting.objective],
    )
    sides = view_of(study).sides
    point = estimated({arch: sides[arch].surface for arch in ARCHS})
    found: dict[str, Any] = {}
    unreachable = np.zeros(len(QUANTITIES))
    for kind in INTERVALS if index < setting.wild else INTERVALS[:2]:
        replicates = {arch: sides[arch].replicates(kind) for arch in ARCHS}  # type: ignore[arg-type]
        if any(draws is None for draws in replicates.values()):
            found[kind] = None
            continue
        drawn = estimated({arch: draws.surface for arch, draws in replicates.items() if draws is not None})
        pair = ends(point, drawn, kind, LEVEL)  # type: ignore[arg-type]
        found[kind] = None if pair is None else [_digits(end) for end in pair]
        if kind == "percentile":
            unreachable = np.isinf(drawn).mean(axis=0)
    return {
        "index": index,
        "ends": found,
        "point": _digits(point),
        "certified": study.certified,
        "refits": study.bootstrap.certified_share,
        "unreachable": _digits(unreachable),
    }


def _digits(values: Array) -> list[float]:
    """Return numbers with as many digits as a coverage needs; infinite ones and NaN as JSON of Python has them."""
    return [float(f"{value:.8g}") for value in values]


def chunks(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a file; a line cut short by an interruption is passed over."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def read_chunks(path: Path, seed: int = SEED) -> dict[Setting, dict[int, dict[str, Any]]]:
    """Return the worlds of a seed that a file holds, by setting and index."""
    worlds: dict[Setting, dict[int, dict[str, Any]]] = {}
    for chunk in chunks(path):
        if chunk["seed"] == seed:
            setting = Setting(*(chunk[name] for name in ("noise", "objective", "replicates", "wild")))
            worlds.setdefault(setting, {}).update({world["index"]: world for world in chunk["worlds"]})
    return worlds


def cpu_seconds(path: Path) -> float:
    """Return what the worlds of a file took."""
    return float(sum(chunk["cpu"] for chunk in chunks(path)))


def versions(path: Path) -> set[str]:
    """Return the versions of the package that a file was measured with."""
    return {chunk["version"] for chunk in chunks(path)}


def run(
    path: Path,
    steps: Iterable[tuple[Setting, int]] = STEPS,
    *,
    seed: int = SEED,
    progress: Callable[[str, int, int], None] | None = None,
) -> None:
    """Measure the worlds that are missing, a chunk at a time, each appended to the file when it is done.

    Parameters
    ----------
    path : Path
        The file; a chunk it holds is not measured again.
    steps : iterable of (Setting, int)
        How many worlds of what, in order.
    seed : int
        Seed of the worlds.
    progress : callable, optional
        Called with what is being done, worlds done and worlds in all.
    """
    from smelt_scaling import __version__

    known, asked = read_chunks(path, seed), tuple(steps)
    total = sum({setting: upto for setting, upto in asked}.values())
    missing = list(_missing(known, asked))
    done = total - sum(len(indices) for _, indices in missing)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.read_text(encoding="utf-8").endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")  # behind a line that an interruption cut short
    for setting, indices in missing:
        if progress is not None:
            progress(f"{setting.noise}, {setting.objective}", done, total)
        worlds, clock = timed(lambda s=setting, i=indices: [one_world(s, index, seed) for index in i])
        chunk = {
            **asdict(setting),
            "seed": seed,
            "version": __version__,
            "cpu": round(clock.cpu, 2),
            "worlds": worlds,
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(chunk) + "\n")
        done += len(indices)
    if progress is not None:
        progress("done", done, total)


def _missing(
    known: dict[Setting, dict[int, dict[str, Any]]], steps: tuple[tuple[Setting, int], ...]
) -> Iterator[tuple[Setting, list[int]]]:
    """Yield the chunks to do, in order."""
    planned = {setting: set(worlds) for setting, worlds in known.items()}
    for setting, upto in steps:
        have = planned.setdefault(setting, set())
        left = [index for index in range(upto) if index not in have]
        have.update(left)
        yield from ((setting, left[lo : lo + CHUNK]) for lo in range(0, len(left), CHUNK))
