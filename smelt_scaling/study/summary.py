"""The one-screen summary that ends a fit."""

from __future__ import annotations

from contextlib import suppress
from textwrap import wrap

import numpy as np

from smelt_scaling.errors import CAPTIONED, FrontierError
from smelt_scaling.fitting.summary import convention_lines, fit_lines, note_lines
from smelt_scaling.formatting import WIDTH, format_percent
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import percentile_interval, tail_rank
from smelt_scaling.study.model import Study

__all__ = ["intervals_of", "summary_lines"]

#: Units that are named where their number of endpoints is told, and numbers that are told one by one.
MOST_NAMES, MOST_LEVELS = 3, 6


def summary_lines(study: Study, *, level: float = 0.95) -> list[str]:
    """Return the summary: coefficients with intervals, gamma, certificate, window, resampling, notes."""
    lines = [
        f"law {study.law.name}: {study.law.formula}"
        if study.law.name != study.law.formula
        else f"law {study.law.formula}"
    ]
    if study.bootstrap.status == "refused":
        lines[:0] = wrap(f"NO BOOTSTRAP INTERVALS: {study.bootstrap.reason}", WIDTH)
    captioned = [note for note in study.all_notes if note.code in CAPTIONED]
    lines[:0] = [line for note in captioned for line in wrap(note.message, WIDTH)]
    lines.append("")
    gamma: dict[str, float] = {}
    # gamma holds no exponent of 1-S, so that a single tier leaves it as good as several do
    powers = [power for term in study.law.parsed.terms for power in term.powers]
    of_sparsity = {power.exponent for power in powers if power.feature.names == ("S",)}
    for arch, fit in study.fits.items():
        point = _gamma(fit.surface)
        if point is not None and not set(fit.unidentified) - of_sparsity:
            gamma[arch] = point
    extra = {"gamma": gamma} if len(gamma) == len(study.fits) else {}
    lines += fit_lines(list(study.fits.values()), intervals_of(study, level), extra)
    if conventions := convention_lines(list(study.fits.values())):
        lines += ["", *conventions]
    if counts := _counts_line(study):
        lines += ["", *wrap(counts, WIDTH)]
    if study.bootstrap.status != "refused":
        lines += ["", *wrap(_resampling_line(study, level), WIDTH)]
    said = CAPTIONED | {"bootstrap_refused"}  # by the first lines
    notes = [note for note in study.all_notes if note.code not in said]
    if notes:
        lines += ["", *note_lines(notes)]
    return lines


def _counts_line(study: Study) -> str:
    """Say how many endpoints each resampled unit has, where that differs or has been evened out."""
    unit = study.bootstrap.unit
    labels, _ = study.endpoints.cells("cell" if unit == "scale*tier" else unit)
    parts, ragged = [], False
    for arch in study.archs:
        names, counts = np.unique(labels[study.endpoints.arch == arch], return_counts=True)
        levels = np.unique(counts).tolist()
        ragged |= len(levels) > 1
        told = [_told(level, names[counts == level].tolist()) for level in levels]
        if len(told) > MOST_LEVELS:
            told = [f"{levels[0]} to {levels[-1]}, median {np.median(counts):g}"]
        parts.append(f"{arch} {', '.join(told)}")
    equal = study.settings.cell_weights == "equal"
    if not (equal or ragged):
        return ""
    rule = f" (every {unit} has the same total weight)" if equal else ""
    return f"endpoints per {unit}: {'; '.join(parts)}{rule}"


def _told(count: int, names: list[str]) -> str:
    return (
        f"{count} in {', '.join(names)}" if len(names) <= MOST_NAMES else f"{count} in each of {len(names)}"
    )


def intervals_of(study: Study, level: float = 0.95) -> dict[str, dict[str, tuple[float, float]]]:
    """Return architecture -> coefficient (and gamma) -> ends of its percentile interval; empty without draws."""
    draws = study.draws or {}
    return {arch: _ends(study, arch, own.surface, level) for arch, own in draws.items()}


def _ends(study: Study, arch: str, draws: Surface, level: float) -> dict[str, tuple[float, float]]:
    quantities = {name: draws[name] for name in study.law.parameters if name not in study.fits[arch].pinned}
    with suppress(FrontierError):
        quantities["gamma"] = Frontier(draws).exponent
    result = {}
    for name, values in quantities.items():
        ends = percentile_interval(values, level)
        if ends is not None:
            result[name] = (float(ends[0]), float(ends[1]))
    return result


def _gamma(surface: Surface) -> float | None:
    try:
        return float(Frontier(surface).exponent)
    except FrontierError:
        return None


def _resampling_line(study: Study, level: float) -> str:
    bootstrap = study.bootstrap
    if study.draws is None:
        return f"bootstrap: {bootstrap.status}" + (
            f" ({bootstrap.reason})" if bootstrap.status == "none" else ""
        )
    pairing = "paired" if bootstrap.paired else "unpaired" if len(study.fits) > 1 else "one architecture"
    labels = len({label for draws in study.draws.values() for label in draws.labels})
    resamples = f"{bootstrap.replicates} resamples of {labels} {bootstrap.unit} labels ({pairing})"
    share = format_percent(bootstrap.certified_share or 0.0, 2)
    tail = f"seed {bootstrap.seed}; {share} of refits certified"
    if tail_rank(bootstrap.replicates, level) < 1:
        return f"{resamples} are too few for a {100 * level:g} % interval; {tail}"
    return f"{100 * level:g} % percentile intervals: {resamples}, {tail}"
