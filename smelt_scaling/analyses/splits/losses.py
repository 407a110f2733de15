"""Losses of parts of an evaluation, laid beside the endpoints of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted, mend
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, Note, UsageError, warning
from smelt_scaling.study import Study

__all__ = ["AGGREGATES", "Parts", "match_parts", "mixed", "token_weights"]

Array = NDArray[np.float64]

#: How the losses of several sources become one.
AGGREGATES = ("equal", "tokens")
#: Columns that tell endpoints apart beside those of the law, where both tables have them.
IDENTITY = ("run", "trunk", "cell", "scale", "seed")
#: Decimals to which a column of the law must agree in both tables; text formats round.
DIGITS = 9
#: Names that a message lists.
SHOWN = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """Losses of M sources at the endpoints of each architecture.

    Parameters
    ----------
    sources, domains : tuple of str
        Name and domain of each source, sorted by domain, then name.
    loss : mapping of str to array (M, n)
        Architecture -> losses; NaN where a run was not evaluated on a source.
    tokens : array (M,) or None
        Evaluated tokens of each source, if the table states them.
    source : str
        Name of the table in messages.
    notes : tuple of Note
        Rows without an endpoint, and endpoints without a loss.
    """

    sources: tuple[str, ...]
    domains: tuple[str, ...]
    loss: Mapping[str, Array]
    tokens: Array | None
    source: str
    notes: tuple[Note, ...]


def match_parts(study: Study, losses: Endpoints, archs: Sequence[str]) -> Parts:
    """Lay losses beside the endpoints of the study.

    Parameters
    ----------
    study : Study
        Whose endpoints the losses belong to.
    losses : Endpoints
        One row per endpoint and source: the columns of the endpoints, ``domain`` or ``source`` or both.
    archs : sequence of str
        The architectures compared.

    Raises
    ------
    DataError
        If the table names neither domains nor sources, a label is blank, a row stands twice, a source has losses of one
        architecture only, units differ, or rows and endpoints do not belong together.
    """
    named = [name for name in ("domain", "source") if name in losses]
    if not named:
        raise DataError(
            f"{losses.source}: no column domain or source, which says what each loss is of; name it with --map "
            "domain=COLUMN (a long table of `endpoints --long` has it in member)"
        )
    if losses.loss_unit != study.endpoints.loss_unit:
        raise DataError(
            f"{losses.source}: column loss in {losses.loss_unit}, the study in {study.endpoints.loss_unit}: parts of "
            "an evaluation need its unit; convert one of them with --unit"
        )
    _require_labels(losses, named, np.isin(losses.arch, archs))
    keys = [losses[named[0]].tolist(), losses[named[-1]].tolist()]
    pairs = sorted(set(zip(*keys, strict=True)))
    position = {pair: number for number, pair in enumerate(pairs)}
    column = np.array([position[pair] for pair in zip(*keys, strict=True)], dtype=np.intp)
    by_arch, notes = {}, [*losses.notes, *_strangers(study, losses)]
    unmatched: list[int] = []
    for arch in archs:
        own = losses.arch == arch
        table, lost = _laid_out(study, losses, arch, np.flatnonzero(own), column, len(pairs))
        by_arch[arch] = table
        unmatched += lost.tolist()
    if unmatched:
        message = (
            f"{losses.source}: {counted(len(unmatched), 'row')} of no endpoint of the study left out (such as "
            f"{_described(losses, min(unmatched))})"
        )
        notes.append(warning("unmatched_losses", message, len(unmatched)))
    names = _names(pairs)
    _require_both(losses.source, named, names, by_arch)
    notes += _missing(losses.source, names, by_arch)
    return Parts(
        sources=names,
        domains=tuple(pair[0] for pair in pairs),
        loss=by_arch,
        tokens=_tokens(losses, column, names) if "eval_tokens" in losses else None,
        source=losses.source,
        notes=tuple(notes),
    )


def token_weights(parts: Parts, aggregate: str) -> Array:
    """Return what each source counts: 1, or its evaluated tokens.

    Raises
    ------
    UsageError
        If the aggregation is unknown.
    DataError
        If tokens are asked for and not stated.
    """
    if aggregate not in AGGREGATES:
        raise UsageError(f"aggregate {aggregate!r} is unknown; choose from {', '.join(AGGREGATES)}")
    if aggregate == "equal":
        return np.ones(len(parts.sources))
    if parts.tokens is None:
        raise DataError(
            f"{parts.source}: no column eval_tokens, which --aggregate tokens weighs sources by; name it with --map "
            "eval_tokens=COLUMN, or use --aggregate equal"
        )
    return parts.tokens


def mixed(loss: Array, share: Array) -> Array:
    """Return losses of groups: means over their sources.

    Parameters
    ----------
    loss : array (M, n)
        Losses of sources; a group without a loss of each of its sources has none.
    share : array (..., G, M)
        What each source counts in each group, in proportion.

    Examples
    --------
    >>> mixed(np.array([[2.0, 3.0], [4.0, np.nan]]), np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()
    [[3.0, nan], [2.0, 3.0]]
    """
    known = np.isfinite(loss)
    total = share @ np.where(known, loss, 0.0) / share.sum(axis=-1, keepdims=True)
    return np.where((share > 0).astype(np.float64) @ ~known > 0, np.nan, total)


def _laid_out(
    study: Study, losses: Endpoints, arch: str, rows: NDArray[np.intp], column: NDArray[np.intp], count: int
) -> tuple[Array, NDArray[np.intp]]:
    """Return the losses of one architecture, (M, n), and the rows that belong to no endpoint."""
    endpoints = study.endpoints.by_arch()[arch]
    law = [name for name in study.law.columns if name in endpoints]
    identity = [name for name in IDENTITY if name in losses and name in endpoints]
    lacking = [name for name in law if name not in losses]
    if lacking:
        raise DataError(losses.explain_missing(*lacking))
    where = _keys(endpoints, identity, law)
    number = {key: i for i, key in enumerate(where)}
    by = ", ".join([*identity, *law])
    if len(number) < len(where):
        raise DataError(
            f"{study.endpoints.source}: {counted(len(where) - len(number), 'endpoint')} of {arch} equal to another in "
            f"{by}: losses cannot be told apart; give both tables a column run"
        )
    found = np.array([number.get(key, -1) for key in _keys(losses, identity, law, rows)], dtype=np.intp)
    if not (found >= 0).any():
        raise DataError(
            f"{losses.source}: no row belongs to an endpoint of {arch} ({study.endpoints.source}): rows are joined by "
            f"{by}{_where_apart(endpoints, losses, identity, law, rows)}; write those columns alike in both tables"
        )
    known = found >= 0
    table = np.full((count, len(where)), np.nan)
    cell = column[rows[known]] * len(where) + found[known]
    _, places, times = np.unique(cell, return_inverse=True, return_counts=True)
    if (times > 1).any():
        one, other = rows[known][places == int((times > 1).argmax())][:2].tolist()
        remedy = (
            ""
            if "source" in losses
            else ", or name the column that tells them apart with --map source=COLUMN"
        )
        raise DataError(
            f"{losses.source}: {counted(int((times - 1).sum()), 'row')} of {arch} repeated (losses "
            f"{losses.loss[one]:.6g} and {losses.loss[other]:.6g} of {_described(losses, one)}): one loss of each part "
            f"at each endpoint is needed; remove the others{remedy}"
        )
    table.reshape(-1)[cell] = losses.loss[rows[known]]
    return table, rows[~known]


def _where_apart(
    endpoints: Endpoints,
    losses: Endpoints,
    identity: Sequence[str],
    law: Sequence[str],
    rows: NDArray[np.intp],
) -> str:
    """Say in which one column the tables differ, with a value of each; nothing if more than one keeps them apart."""
    for name in (*identity, *law):
        texts, numbers = ([other for other in kept if other != name] for kept in (identity, law))
        place = {key: i for i, key in enumerate(_keys(endpoints, texts, numbers))}
        keys = _keys(losses, texts, numbers, rows)
        row = next((j for j, key in enumerate(keys) if key in place), None)
        if row is not None:
            here, there = losses[name][rows[row]], endpoints[name][place[keys[row]]]
            shown = [f"{value:.9g}" if name in law else str(value) or "blank" for value in (here, there)]
            return f", and {name} alone differs ({shown[0]} here, {shown[1]} in the study)"
    return ""


def _described(losses: Endpoints, row: int) -> str:
    """Say which row it is: the part, then its run, or else its cell and tokens."""
    named = ("run",) if "run" in losses and losses["run"][row] else ("arch", "trunk", "cell", "scale", "D")
    labels = [(name, losses[name][row]) for name in ("domain", "source", *named) if name in losses]
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in labels
        if value
    )


def _require_labels(losses: Endpoints, named: Sequence[str], own: NDArray[np.bool_]) -> None:
    for name in named:
        blank = own & (losses[name] == "")
        if blank.any():
            raise DataError(
                f"{losses.source}: column {name}, {counted(int(blank.sum()), 'row')} blank (such as "
                f"{_described(losses, int(blank.argmax()))}): it says what a loss is of; {mend(blank, 'fill')}"
            )


def _strangers(study: Study, losses: Endpoints) -> list[Note]:
    """Note rows of architectures that the study does not hold."""
    strange = ~np.isin(losses.arch, study.endpoints.archs)
    if not strange.any():
        return []
    count, names = int(strange.sum()), np.unique(losses.arch[strange]).tolist()
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    message = (
        f"{losses.source}: {counted(count, 'row')} of architectures that the study lacks left out ({shown})"
    )
    return [warning("unmatched_losses", message, count)]


def _keys(
    table: Endpoints, identity: Sequence[str], law: Sequence[str], rows: NDArray[np.intp] | None = None
) -> list[tuple[Any, ...]]:
    chosen = np.arange(len(table)) if rows is None else rows
    texts = [table[name][chosen].tolist() for name in identity]
    numbers = [[f"{value:.{DIGITS}g}" for value in table[name][chosen].tolist()] for name in law]
    return list(zip(*texts, *numbers, strict=True))


def _names(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of sources, with the domain where a name stands in several."""
    alone = [source for _, source in pairs]
    return tuple(
        source if alone.count(source) == 1 or domain == source else f"{domain}/{source}"
        for domain, source in pairs
    )


def _require_both(
    source: str, columns: Sequence[str], names: Sequence[str], loss: Mapping[str, Array]
) -> None:
    """Refuse parts that some architecture has no loss of, each architecture one line."""
    problems = []
    for arch, table in loss.items():
        lacking = [name for name, row in zip(names, table, strict=True) if not np.isfinite(row).any()]
        if lacking:
            shown = ", ".join(lacking[:SHOWN]) + (
                f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            )
            problems.append(
                f"{source}: column {columns[-1]}, no loss of {arch} for {shown}: a gain compares two; evaluate both "
                "architectures on it, or remove its rows"
            )
    if problems:
        raise DataError("\n".join(problems))


def _missing(source: str, names: Sequence[str], loss: Mapping[str, Array]) -> list[Note]:
    lacking = [
        (arch, name, int(np.isnan(row).sum()), len(row))
        for arch, table in loss.items()
        for name, row in zip(names, table, strict=True)
        if np.isnan(row).any()
    ]
    if not lacking:
        return []
    shown = ", ".join(f"{name} at {count} of {n} of {arch}" for arch, name, count, n in lacking[:SHOWN])
    more = f", and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    total = sum(count for _, _, count, _ in lacking)
    message = f"{source}: {counted(total, 'pair')} of endpoint and source without a loss: {shown}{more}"
    return [warning("missing_losses", message, total)]


def _tokens(losses: Endpoints, column: NDArray[np.intp], names: Sequence[str]) -> Array:
    tokens = losses["eval_tokens"]
    least, most = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(least, column, tokens)
    np.maximum.at(most, column, tokens)
    uneven = np.flatnonzero(least < most)
    if len(uneven):
        raise DataError(
            f"{losses.source}: column eval_tokens, {names[uneven[0]]} from {least[uneven[0]]:g} to "
            f"{most[uneven[0]]:g}: a source counts alike at every endpoint; write its tokens once"
        )
    return most
