"""How often nominal 95 % intervals hold the truth, in worlds that obey the fitted law and in worlds that do not.

It takes hours of one core and goes on where it stopped: ``python benchmarks/coverage.py FILE`` measures the worlds that
the file does not hold yet, with ``--record`` it records what the file holds and measures nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

if __name__ == "__main__":  # as a script, only its own folder is on the path
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage_runs import (
    FINER,
    INTERVALS,
    LEVEL,
    MAIN,
    REPLICATES,
    SEED,
    STARTS,
    STEPS,
    Setting,
    cpu_seconds,
    read_chunks,
    run,
    versions,
)
from benchmarks.coverage_worlds import GROUPS, NOISES, QUANTITIES, truth
from benchmarks.recorder import CHECKOUT, record, recorded, table

Array = NDArray[np.float64]
Row = Mapping[str, Any]

TITLE = "Coverage of intervals"
#: Where `benchmarks/run.py` keeps worlds between its runs; git ignores it.
SCRATCH = CHECKOUT / "reports" / "coverage.jsonl"
#: Coverage that intervals of a nominal 95 % aim at.
GOAL = 0.93
HEADERS = {"gamma": "γ", "ln TPP": "TPP"}
OBJECTIVE_TITLES = {
    "default": "default",
    "delta inf": "`--delta inf`",
    "delta auto": "`--delta auto`",
    "raw": "`--residual raw`",
}


# -- from worlds to coverage -------------------------------------------------------------------------------------------


def covered(worlds: list[dict[str, Any]], kind: str, true: Array) -> tuple[Array, Array]:
    """Return whether each world's interval holds the truth, and its width, shape (worlds, quantities); NaN for none.

    Worlds in which this kind was not asked for are left out. Widths of gains are those of the gain, as a fraction; an
    unreachable end stands for a gain of 1.
    """
    none = [[np.nan] * len(true)] * 2
    asked = [world["ends"][kind] or none for world in worlds if kind in world["ends"]]
    lo, hi = np.array(asked, dtype=np.float64).reshape(-1, 2, len(true)).swapaxes(0, 1)
    held = np.where(np.isnan(lo) | np.isnan(hi) | np.isnan(true), np.nan, (lo <= true) & (true <= hi))
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.where(_of("gain"), np.exp(-lo) - np.exp(-hi), hi - lo)
    return held, width


def _of(start: str) -> NDArray[np.bool_]:
    return np.array([group.startswith(start) for group in QUANTITIES.values()])


def summarise(worlds: list[dict[str, Any]], true: Array) -> dict[str, Any]:
    """Return what one setting shows.

    Returns
    -------
    dict
        ``certified``: share of worlds with both point fits certified. ``refits``: that of replicates. ``unreachable``:
        share of replicates, by group of gains. ``intervals``: by kind ``worlds``, ``lowest`` and ``highest`` (quantity,
        coverage) and by group ``coverage`` (mean over its quantities), ``error`` (its Monte-Carlo standard error),
        ``width`` (median), ``refused`` (share of worlds without such an interval). What has no truth is left out.
    """
    unreachable = np.array([world["unreachable"] for world in worlds]).mean(axis=0)
    of = {group: np.array([own == group for own in QUANTITIES.values()]) for group in GROUPS}
    result: dict[str, Any] = {
        "worlds": len(worlds),
        "certified": float(np.mean([world["certified"] for world in worlds])),
        "refits": float(np.mean([world["refits"] or 0.0 for world in worlds])),
        "unreachable": {
            group: float(unreachable[of[group]].mean()) for group in GROUPS if group[:4] == "gain"
        },
        "intervals": {},
    }
    for kind in INTERVALS:
        held, width = covered(worlds, kind, true)
        if np.isnan(held).all():
            continue
        index = np.array([world["index"] for world in worlds if kind in world["ends"]])
        groups = {group: _group(held[:, own], width[:, own], index) for group, own in of.items()}
        shares = {
            name: float(np.nanmean(column))
            for name, column in zip(QUANTITIES, held.T, strict=True)
            if not np.isnan(column).all()
        }
        ranked = sorted(shares.items(), key=lambda item: item[1])
        result["intervals"][kind] = {
            "worlds": len(held),
            "lowest": ranked[0],
            "highest": ranked[-1],
            "groups": {group: found for group, found in groups.items() if found},
        }
    return result


def _group(held: Array, width: Array, index: NDArray[np.intp]) -> dict[str, float] | None:
    """Return coverage of quantities that are reported together; None where none has a truth.

    Worlds of one number resemble each other whatever their noise, so they count as one in the standard error.
    """
    known = ~np.isnan(held).all(axis=0)
    given = ~np.isnan(held[:, known]).any(axis=1)
    if not known.any() or not given.any():
        return None
    by_world = held[given][:, known].mean(axis=1)
    alike = np.unique(index[given], return_inverse=True)[1]
    by_number = np.bincount(alike, by_world) / np.bincount(alike)
    return {
        "coverage": float(by_world.mean()),
        "error": float(by_number.std() / np.sqrt(len(by_number))),
        "width": float(np.median(width[given][:, known])),
        "refused": float(1 - given.mean()),
    }


def collect(path: Path, seed: int = SEED) -> dict[str, Any]:
    """Return what is recorded of a file of worlds."""
    found = read_chunks(path, seed)
    order = list(dict.fromkeys(setting for setting, _ in STEPS))
    rows = []
    for setting in sorted(found.keys() & set(order) - {FINER}, key=order.index):
        worlds = [found[setting][i] for i in sorted(found[setting])]
        named = {"noise": setting.noise, "objective": setting.objective}
        rows.append(named | _rounded(summarise(worlds, truth(NOISES[setting.noise]))))
    mains = {setting.noise: setting for setting in MAIN}
    pooled: dict[str, list[dict[str, Any]]] = {}
    alike: dict[str, list[dict[str, Any]]] = {}
    for setting in sorted(found.keys() & set(order) - {FINER}, key=order.index):
        if setting.noise in mains:
            pooled.setdefault(setting.objective, []).extend(found[setting].values())
            usual = found.get(mains[setting.noise], {})
            alike.setdefault(setting.objective, []).extend(usual[i] for i in found[setting] if i in usual)
    true = truth(NOISES[MAIN[0].noise])  # that of all three
    return {
        "level": LEVEL,
        "seed": seed,
        "replicates": REPLICATES,
        "starts": STARTS,
        "version": sorted(versions(path)),
        "cpu_hours": round(cpu_seconds(path) / 3600, 1),
        "rows": rows,
        "together": {name: _rounded(summarise(worlds, true)) for name, worlds in pooled.items()},
        "default_alike": {
            name: _rounded(summarise(worlds, true)) for name, worlds in alike.items() if name != "default"
        },
        "finer": _rounded(finer(found)),
    }


def finer(found: Mapping[Setting, Mapping[int, dict[str, Any]]]) -> dict[str, Any] | None:
    """Compare few replicates with many in the same worlds: mean coverage of all quantities, and widths."""
    coarse = next(setting for setting in MAIN if setting.noise == FINER.noise)
    both = sorted(found.get(FINER, {}).keys() & found.get(coarse, {}).keys())
    if not both:
        return None
    true = truth(NOISES[FINER.noise])
    few, many = (covered([found[s][i] for i in both], "percentile", true) for s in (coarse, FINER))
    return {
        "noise": FINER.noise,
        "worlds": len(both),
        "replicates": FINER.replicates,
        "coverage_few": float(few[0].mean()),
        "coverage_many": float(many[0].mean()),
        "width_ratio": float(np.median(few[1] / many[1])),
    }


def _rounded(value: Any) -> Any:
    """Return a tree with as many digits as the number of worlds supports."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def measure(path: Path = SCRATCH, steps: Iterable[tuple[Setting, int]] = STEPS) -> dict[str, Any]:
    """Measure what the file does not hold yet, with a progress bar; return what is recorded of it."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("coverage")
        run(
            path,
            steps,
            progress=lambda said, done, total: bar.update(
                task, description=said, completed=done, total=total
            ),
        )
    return collect(path)


# -- pages -------------------------------------------------------------------------------------------------------------


def of_objective(values: Row, objective: str = "default", *, main: bool | None = None) -> list[Row]:
    """Return the recorded rows of one objective; ``main``: of the worlds that all is measured in, or of the others."""
    mains = [setting.noise for setting in MAIN]
    return [
        row
        for row in values["rows"]
        if row["objective"] == objective and (main is None or (row["noise"] in mains) == main)
    ]


def coverage_table(rows: Iterable[tuple[str, Row, str]]) -> str:
    """Return the table of some rows: what to call each, the row and the kind of interval."""
    lines = []
    for title, row, kind in rows:
        found = row["intervals"][kind]
        cells = [_share(found["groups"].get(group)) for group in GROUPS]
        lowest, share = found["lowest"]
        width = 100 * found["groups"]["gain 1e21"]["width"]
        lines.append([title, str(found["worlds"]), *cells, f"{_plain(share)} ({lowest})", f"{width:.0f}"])
    header = [HEADERS.get(group, group) for group in GROUPS]
    return table(["", "worlds", *header, "lowest of all", "width, gain 1e21"], lines)


def _share(group: Mapping[str, float] | None) -> str:
    if group is None:
        return ""
    text = _plain(group["coverage"])
    return f"**{text}**" if group["coverage"] < GOAL else text


def _plain(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def extremes(values: Row, objective: str, kind: str) -> tuple[float, float]:
    """Return the lowest and the highest coverage of a group in all worlds that obey the law together."""
    groups = values["together"][objective]["intervals"][kind]["groups"].values()
    return min(group["coverage"] for group in groups), max(group["coverage"] for group in groups)


def titled(values: Row, objective: str) -> list[tuple[str, Row]]:
    """Return the rows of an objective in the worlds that obey the law, then all of these together, with titles."""
    rows = [(NOISES[row["noise"]].title, row) for row in of_objective(values, objective, main=True)]
    return [*rows, ("all together", values["together"][objective])] if rows else []


def default_part(values: Row) -> list[str]:
    """Return coverage of every kind of interval in the worlds that obey the law, as lines of a page."""
    rows = titled(values, "default")
    lines = coverage_table(
        (f"{kind}, {title}", row, kind)
        for kind in INTERVALS
        for title, row in rows
        if kind in row["intervals"]
    ).splitlines()
    together = values["together"]["default"]
    said = [f"Of the {len(QUANTITIES)} quantities, in all these worlds together,"]
    for kind, found in together["intervals"].items():
        (low, least), (high, most) = found["lowest"], found["highest"]
        said.append(f"{kind} intervals cover {_plain(least)} ({low}) to {_plain(most)} ({high}),")
    said[-1] = said[-1].removesuffix(",") + "."
    error = _points(largest_error(row for _, row in rows))
    said.append(f"Monte-Carlo standard errors of the percentile rows are up to {error}.")
    if more := values["finer"]:
        said.append(
            f"Each world has {values['replicates']} replicates, which stand for more: in {more['worlds']} worlds "
            f"with {more['replicates']}, all quantities together are covered {_plain(more['coverage_many'])} in place "
            f"of {_plain(more['coverage_few'])}, by intervals {1 / more['width_ratio']:.3f} times as wide."
        )
    return [*lines, "", *wrap(" ".join(said), 118)]


def worlds_part(values: Row) -> list[str]:
    """Return coverage of the default in every other world."""
    rows = of_objective(values, main=False)
    lines = [
        (title if kind == "percentile" else f"{title}, {kind}", row, kind)
        for row in rows
        for title in [NOISES[row["noise"]].title]
        for kind in ("percentile", "wild-cr3")
        if kind in row["intervals"]
    ]
    said = f"Monte-Carlo standard errors of the percentile rows are up to {_points(largest_error(rows))}."
    return [*coverage_table(lines).splitlines(), "", said]


def objectives_part(values: Row) -> list[str]:
    """Return coverage of the other objectives."""
    every: list[tuple[str, Row]] = []
    for objective, name in OBJECTIVE_TITLES.items():
        if objective != "default" and (rows := titled(values, objective)):
            every += [(f"{name}, {title}", row) for title, row in rows]
            every.append(("the default in the same worlds", values["default_alike"][objective]))
    lines = [(title, row, "percentile") for title, row in every]
    said = f"Monte-Carlo standard errors are up to {_points(largest_error(row for _, row in every))}."
    return [*coverage_table(lines).splitlines(), "", said]


#: What the page on intervals takes from the record, by name.
PARTS = {"default": default_part, "worlds": worlds_part, "objectives": objectives_part}


def part(name: str) -> list[str]:
    """Return the lines of a part of the page on intervals, made from the record."""
    result = recorded("coverage")
    return [] if result is None else PARTS[name](result["values"])


def largest_error(rows: Iterable[Row]) -> float:
    """Return the largest Monte-Carlo standard error of some rows' percentile intervals."""
    return max(
        (group["error"] for row in rows for group in row["intervals"]["percentile"]["groups"].values()),
        default=0.0,
    )


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def page(values: Row) -> str:
    """Return the section."""
    lines = []
    for row in values["rows"]:
        for kind, found in row["intervals"].items():
            gains = [found["groups"].get(group) for group in GROUPS if group.startswith("gain")]
            lines.append(
                [
                    NOISES[row["noise"]].title,
                    OBJECTIVE_TITLES[row["objective"]],
                    kind,
                    f"{found['worlds']} × {values['replicates']}",
                    *(f"{_plain(g['coverage'])} ± {_plain(g['error'])}" if g else "" for g in gains),
                    " / ".join(f"{100 * g['width']:.0f}" if g else "" for g in gains),
                    " / ".join(f"{g['refused']:.1%}" if g else "" for g in gains),
                    " / ".join(f"{share:.2%}" for share in row["unreachable"].values()),
                    f"{row['certified']:.1%} / {row['refits']:.2%}",
                ]
            )
    header = ["world", "objective", "interval", "worlds × replicates"]
    header += [f"gain at {group.removeprefix('gain ')}" for group in GROUPS if group.startswith("gain")]
    header += ["widths, points", "refused", "replicates unreachable", "certified: fits / refits"]
    return "\n".join(
        [
            "Simulated worlds of known truth, each fitted and resampled as a user would: the example's 12 cells by 6 "
            "horizons, the published surfaces, noise of the published size. Share of nominal 95 % intervals that hold "
            "the true gain, mean of three sparsities ± Monte-Carlo standard error; median widths of the gain (an "
            "unreachable end counts as a gain of 100 %); share of worlds without an interval; share of replicates "
            f"whose gain is unreachable. World i of seed {values['seed']} is the same whatever is done to it. Point "
            f"fits take {values['starts']} starts, which end where a user's 64 do; version "
            f"{', '.join(values['version'])}. Other "
            "quantities, and what to make of it: [intervals](intervals.md#what-is-known-of-the-coverage).",
            "",
            table(header, lines),
        ]
    )


def main() -> None:
    """Measure into a file, or record what a file holds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path, help="where chunks of worlds are kept")
    parser.add_argument("--record", action="store_true", help="record what the file holds; measure nothing")
    options = parser.parse_args()
    if not options.record:
        measure(options.file)
        return
    from benchmarks.run import PAGE, render

    print(record("coverage", collect(options.file), cpu_seconds(options.file)), file=sys.stderr)
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
