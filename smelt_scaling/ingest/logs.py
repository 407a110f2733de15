"""From logs to endpoints: read, condense, stitch, select, join; each endpoint with where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path

from smelt_scaling._schema import UNITS, counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import IngestError, Note, UsageError, info, merge_notes, warning
from smelt_scaling.formatting import format_number
from smelt_scaling.ingest.condense import SAMPLE, Segment
from smelt_scaling.ingest.families import long_table
from smelt_scaling.ingest.found import LogEndpoints
from smelt_scaling.ingest.keys import Keys, choose_loss
from smelt_scaling.ingest.names import listed
from smelt_scaling.ingest.quantities import TOKENS_AGREE, tokens_by_steps
from smelt_scaling.ingest.rows import REASON, endpoint_row, left_out_row, provenance, refuse_incomplete
from smelt_scaling.ingest.runtable import check_pattern, named_by, read_run_table
from smelt_scaling.ingest.scan import MOST_PROBLEMS, Progress, ScannedLogs, scan_logs
from smelt_scaling.ingest.selection import TRUNK, Pick, Roles, Rules, Run, checkpoints, select_ends
from smelt_scaling.ingest.stitching import OVERLAP_TOLERANCE, stitch

__all__ = ["read_logs"]


def read_logs(
    paths: Sequence[str | Path],
    *,
    runs: str | Path | None = None,
    run_pattern: str | None = None,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    flops: str | None = None,
    families: Mapping[str, str] | None = None,
    reader: str | None = None,
    rules: Rules | None = None,
    trajectory: bool = False,
    skip_unreadable: bool = False,
    overlap_tolerance: float = OVERLAP_TOLERANCE,
    progress: Progress | None = None,
) -> LogEndpoints:
    """Read logs and choose the endpoint of every run and horizon.

    Parameters
    ----------
    paths, mapping, families, reader, skip_unreadable, progress
        As for `scan_logs`.
    runs : str or pathlib.Path, optional
        The table of runs (see `read_run_table`); what it says replaces what a log says.
    run_pattern : str, optional
        A regular expression for the names of runs in the logs; its named groups are facts, ``run`` or ``branch``.
    units : mapping of str to str, optional
        Units that are not the schema's, such as ``{"loss": "ppl"}``.
    flops : {"6N"}, optional
        As for `Endpoints.from_frame`.
    rules : Rules, optional
        What counts as an end.
    trajectory : bool
        Whether every evaluation is kept, with ``phase`` checkpoint, and not only the ends.
    overlap_tolerance : float
        Nats by which a loss may differ where a restart went over steps again.

    Returns
    -------
    LogEndpoints
        The endpoints, and what was left out and why.

    Raises
    ------
    IngestError, DataError, UsageError
        One line per problem.
    """
    import pandas as pd

    rules = rules or Rules()
    if trajectory and (families or rules.smooth):
        other = "--long" if families else "--smooth"
        raise UsageError(
            f"--trajectory with {other}: {other} is of ends of runs; read the logs twice, once with each"
        )
    if not overlap_tolerance >= 0:
        raise UsageError(
            f"--overlap-tolerance {overlap_tolerance:g}: a difference in nats, at least 0, such as 0.01"
        )
    scanned = scan_logs(
        paths,
        mapping=mapping,
        families=families,
        reader=reader,
        skip_unreadable=skip_unreadable,
        progress=progress,
    )
    named, stated = _named(scanned.segments, runs, run_pattern)
    loss, notes = choose_loss(scanned.keys, {key for one in named for key in one.series}, units or {})
    _refuse_absent(scanned)
    picks: list[tuple[Run, Pick]] = []
    found: list[Note] = []
    trunks = {str(one.facts.get("trunk", "")) for one in named}
    for name, own in sorted(_by_run(named).items()):
        run = _gathered(name, own, scanned, overlap_tolerance, name in trunks)
        roles = Roles(loss=loss, tokens=_role(run, "tokens", scanned.keys), lr=_role(run, "lr", scanned.keys))
        ends = select_ends(run, roles, rules)
        picks += [(run, pick) for pick in (checkpoints(run, roles, ends) if trajectory else ends)]
        found += [note for part in run.parts for note in part.notes] + _compare_tokens(run, ends)
    chosen, left = [(run, p) for run, p in picks if not p.code], [p for _, p in picks if p.code]
    notes += [
        *stated,
        *_pooled(found),
        *_left_out(left),
        *_flaws(scanned),
        *_unproven(chosen),
        *_requested(rules, trajectory, chosen, loss),
    ]
    if not chosen:
        raise IngestError(_nothing(left))
    refuse_incomplete(chosen)
    with_trunks = any(run.branches or "trunk" in run.facts for run, _ in chosen)
    frame = pd.DataFrame([endpoint_row(run, pick, scanned.keys, trunks=with_trunks) for run, pick in chosen])
    frame = frame[
        [name for name in frame if not frame[name].isin(["", None]).all() and frame[name].notna().any()]
    ]
    source = str(paths[0]) if len(paths) == 1 else f"{len(scanned.readers)} logs"
    endpoints = Endpoints.from_frame(frame, source=source, units=units, flops=flops)
    if len(endpoints) < len(frame):  # the rules for tables left out more, each with a note
        places = set(zip(endpoints["run"].tolist(), endpoints["step"].tolist(), strict=True))
        there = [(pick.run, pick.step) in places for _, pick in chosen]
        chosen, frame = list(compress(chosen, there)), frame[there]
    convert = UNITS["loss"].get((units or {}).get("loss", ""))
    if convert is not None:  # the long tables repeat the endpoints, in their unit
        frame = frame.assign(loss=convert(frame["loss"].to_numpy()))
    return LogEndpoints(
        endpoints=endpoints,
        manifest=pd.DataFrame([provenance(pick, loss) for _, pick in chosen]),
        left_out=pd.DataFrame([left_out_row(pick) for pick in left], columns=list(REASON)),
        long={name: long_table(frame, chosen, family) for name, family in (families or {}).items()},
        counts={
            "files": len(scanned.readers),
            "runs": len({run.name for run, _ in picks}),
            "segments": len(scanned.segments),
            "rows": sum(one.rows for one in scanned.segments),
            "endpoints": len(endpoints),
            "left_out": len(left),
        },
        notes=merge_notes(notes, endpoints.notes),
    )


def _refuse_absent(scanned: ScannedLogs) -> None:
    """Refuse a named key that no log has: evidence that was asked for would be missing in silence."""
    present = {key for one in scanned.segments for key in one.series}
    for role in ("lr", "loss_se"):
        key = scanned.keys.named.get(role)
        if key is not None and key not in present:
            raise IngestError(
                f"no log has the key {key} (--map {role}=...): correct it, or leave the option out"
            )


# ------------------------------------------------------------------ runs


def _named(
    segments: Iterable[Segment], runs: str | Path | None, run_pattern: str | None
) -> tuple[list[Segment], tuple[Note, ...]]:
    """Give the segments the names and facts that the pattern and the table of runs state; and its notes."""
    segments = list(segments)
    if run_pattern is not None:
        pattern = check_pattern(run_pattern)
        said = {name: named_by(pattern, name) for name in {one.run for one in segments}}
        segments = [
            replace(
                one,
                run=said[one.run][0],
                branch=said[one.run][1] or one.branch,
                facts={**one.facts, **said[one.run][2]},
            )
            for one in segments
        ]
    if runs is None:
        return segments, ()
    table = read_run_table(runs)
    present = {one.run for one in segments}
    problems = [
        f"{counted(len(names), 'run')} {where} ({listed(names)}): {fix}"
        for names, where, fix in (
            (present - set(table.run), f"of the logs without a row in {table.source}", "add a row for each"),
            (
                set(table.run) - present,
                f"of {table.source} in no log",
                "correct the name, or leave the row out",
            ),
        )
        if names
    ]
    if problems:
        raise IngestError("\n".join(problems))
    named = [
        replace(one, run=table.run[one.run], facts={**one.facts, **table.facts[one.run]}) for one in segments
    ]
    return named, table.notes


def _by_run(segments: Iterable[Segment]) -> dict[str, list[Segment]]:
    runs: dict[str, list[Segment]] = {}
    for segment in segments:
        runs.setdefault(segment.run, []).append(segment)
    return runs


#: Facts that are one for all pieces of a run; two of them mean that two runs go by one name.
_OF_THE_RUN = (
    "arch",
    "scale",
    "cell",
    "seed",
    "tokenizer",
    "eval_set",
    "F",
    "S",
    "N",
    "N_act",
    "unique_tokens",
)


def _gathered(
    name: str, segments: Sequence[Segment], scanned: ScannedLogs, tolerance: float, is_trunk: bool
) -> Run:
    """Stitch the trunk and each branch of a run."""
    for fact in _OF_THE_RUN:
        stated = {one.facts[fact]: one.source for one in segments if fact in one.facts}
        if len(stated) > 1:
            said = ", ".join(f"{value} in {source}" for value, source in list(stated.items())[:2])
            raise IngestError(
                f"run {name}: {fact} is {said}: the pieces of one run share it; give two runs two names "
                "(column run, or --run-pattern), or state it for all pieces in the table of runs"
            )
    parts: dict[str, list[Segment]] = {}
    for segment in segments:
        parts.setdefault(segment.branch, []).append(segment)
    tokens = scanned.keys.find("tokens", {key for one in segments for key in one.series})
    stitched = {
        branch: stitch(own, tokens_key=tokens, tolerance=tolerance) for branch, own in sorted(parts.items())
    }
    facts: dict[str, float | str] = {}
    for part in stitched.values():
        for piece in part.pieces:
            facts |= piece.facts
    sampled = any(one.source in scanned.sampled for one in segments)
    return Run(
        name=name,
        trunk=stitched.pop("", None),
        branches=stitched,
        facts=facts,
        sampled=sampled,
        trunk_of_others=is_trunk,
    )


def _role(run: Run, role: str, keys: Keys) -> str | None:
    return keys.find(role, {key for part in run.parts for key in part.series})


# ------------------------------------------------------------------ notes

#: What takes ends that are left out with a code.
_ALLOWED_BY = {
    "unfinished": "allow unfinished runs with --include-unfinished",
    "not_annealed": "allow a higher rate with --annealed",
}


def _pooled(notes: Iterable[Note]) -> list[Note]:
    """Say once what holds of many runs."""
    codes: dict[str, list[Note]] = {}
    for note in notes:
        codes.setdefault(note.code, []).append(note)
    return [
        own[0]
        if len(own) == 1
        else replace(own[0], message=f"{own[0].message}; and {len(own) - 1} more alike", count=len(own))
        for own in codes.values()
    ]


def _left_out(left: Sequence[Pick]) -> list[Note]:
    """Return one note per code, naming runs and the first reason; trunks are left out as they should."""
    codes: dict[tuple[str, bool], list[Pick]] = {}
    for pick in left:
        codes.setdefault((pick.code, pick.reason == TRUNK), []).append(pick)
    notes = []
    for (code, quiet), own in codes.items():
        whose = listed(pick.label for pick in own)
        alike = len({pick.reason for pick in own}) == 1
        why = own[0].reason if alike else f"of {own[0].label}, {own[0].reason}"
        notes.append(
            (info if quiet else warning)(
                code, f"{counted(len(own), 'end')} left out ({whose}): {why}", len(own)
            )
        )
    return notes


def _nothing(left: Sequence[Pick]) -> str:
    """Say why there is no endpoint, with what would make one of ends like these, if anything would."""
    shown = "; ".join(f"{pick.label}: {pick.code}, {pick.reason}" for pick in left[:3])
    codes = dict.fromkeys(pick.code for pick in left)
    ways = [_ALLOWED_BY[code] for code in codes if code in _ALLOWED_BY]
    remedy = (
        f"{' and '.join(ways)}, if that is what you want" if ways else "see what the logs evaluate, and when"
    )
    if set(codes) == {"diverged"}:
        remedy = "a run that diverged has no endpoint; add logs of runs that did not"
    more = f"; and {len(left) - 3} more" if len(left) > 3 else ""
    return f"no endpoint in {counted(len(left), 'end')} of runs ({shown}{more}): {remedy}"


def _unproven(chosen: Sequence[tuple[Run, Pick]]) -> list[Note]:
    """Name the endpoints of which nothing says that the run had come to its end."""
    own = [pick for _, pick in chosen if not pick.evidence and not pick.phase]
    if not own:
        return []
    message = (
        f"{counted(len(own), 'endpoint')} ({listed(pick.label for pick in own)}): no learning rate, plan or status "
        "tells that the run had ended; the last evaluation is taken"
    )
    return [warning("unproven_end", message, len(own))]


def _flaws(scanned: ScannedLogs) -> list[Note]:
    codes: dict[str, list[Note]] = {}
    for path, flaw in scanned.flaws:
        codes.setdefault(flaw.code, []).append(warning(flaw.code, f"{path}: {flaw.message}", flaw.count))
    notes = []
    for own in codes.values():
        notes += own[:MOST_PROBLEMS]
        if rest := own[MOST_PROBLEMS:]:
            said = f"{len(rest)} more alike, the first {rest[0].message}"
            notes.append(replace(rest[0], message=said, count=sum(note.count for note in rest)))
    if scanned.unreadable:
        count = len(scanned.unreadable)
        message = f"{counted(count, 'log')} left out that cannot be read: {'; '.join(scanned.unreadable[:6])}"
        more = f"; and {count - 6} more" if count > 6 else ""
        notes.append(warning("unreadable_files", message + more, count))
    if scanned.unread:
        count = len(scanned.unread)
        notes.append(
            warning(
                "unread_files",
                f"{counted(count, 'file')} of no known log format ({listed(scanned.unread)})",
                count,
            )
        )
    return notes


def _requested(rules: Rules, trajectory: bool, chosen: Sequence[tuple[Run, Pick]], loss: str) -> list[Note]:
    """Say what the user asked for that makes the rows other than ends as they were logged."""
    notes = []
    if trajectory:
        rows = len(chosen)
        message = (
            f"{rows} evaluations along runs are kept: those of one run are one unit, resample by run or cell"
        )
        notes.append(warning("trajectory", message, rows))
    if rules.smooth:
        message = f"losses are means over the last {rules.smooth:.3g} of the steps before each end"
        notes.append(info("smoothed", message))
    thin = {pick.label: kept for _, pick in chosen if (kept := _thinned(pick, loss))}
    if thin and (trajectory or rules.smooth):
        message = (
            f"{counted(len(thin), 'run')} with more than {SAMPLE} evaluations in a piece ({listed(thin)}): "
            f"{sum(thin.values())} are kept, at even distances, and the ends"
        )
        notes.append(warning("thinned", message, sum(thin.values())))
    return notes


def _thinned(pick: Pick, loss: str) -> int:
    """Return how many evaluations are left of a series that was thinned; 0 if it holds all."""
    return len(pick.part.series[loss][0]) if any(loss in piece.thinned for piece in pick.part.pieces) else 0


def _compare_tokens(run: Run, ends: Iterable[Pick]) -> list[Note]:
    """Compare the logged tokens with steps times tokens per step."""
    for pick in ends:
        by_steps = tokens_by_steps(run.facts, pick.step)
        if abs(pick.tokens / by_steps - 1) > TOKENS_AGREE if by_steps > 0 else False:
            message = (
                f"run {run.name}: {format_number(pick.tokens)} tokens are logged at step {pick.step:g}, where steps "
                f"times tokens per step is {format_number(by_steps)}: the logged ones are taken"
            )
            return [warning("tokens_mismatch", message)]
    return []
