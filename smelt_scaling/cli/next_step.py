"""What to type after a fit: a command that was tried, so that it does not fail at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import SmeltScalingError

if TYPE_CHECKING:
    from smelt_scaling.study import Study

__all__ = ["after_check", "next_lines"]

Question = tuple[str, Callable[[], object]]


def next_lines(
    study: Study, argv: list[str], out: Path, *, runs: str, options: Mapping[str, Any]
) -> list[str]:
    """Return the line that names the next command, after one that says why it is not a gain where none is defined.

    Parameters
    ----------
    study : Study
        What was fitted.
    argv : list of str
        The command that fitted it.
    out : Path
        Where it is saved.
    runs : str
        The table, as typed.
    options : mapping
        Option -> values given to ``fit`` that ``check`` takes, too; None where the default held.
    """
    from smelt_scaling.cli.output import wrapped
    from smelt_scaling.fitting import FitStatus

    check = join(["smelt-scaling", "check", runs, *_words(options)])
    if any(fit.certificate.status is FitStatus.NOT_IDENTIFIED for fit in study.fits.values()):
        return [
            f"next: {check}"
        ]  # more starts find more points of one line of optima; check says what would mend it
    if not study.certified:
        return [f"next: {join(['smelt-scaling', *argv, '--starts', 'thorough'])}"]  # the last --starts counts
    tail = f"--study {quote(str(out))}{_interval(study)}"
    why = ""
    for question, attempt in _questions(replace(study, draws=None, jackknife=None)):
        try:
            attempt()
        except SmeltScalingError as error:
            why = why or str(error).splitlines()[0]
        else:
            what = "gain" if len(study.archs) > 1 else "compute-optimal frontier"
            said = wrapped(f"no {what}: {why}") if why else []
            return [*said, f"next: smelt-scaling {question} {tail}"]
    return [*wrapped(f"nothing can be asked of this study: {why}"), f"next: {check}"]


def after_check(step: Mapping[str, Any], runs: str, options: Mapping[str, Any]) -> str:
    """Return the line that names the next command after a check, or what to do about the table first.

    Parameters
    ----------
    step : mapping
        ``next`` of the design report.
    runs : str
        The table, as typed.
    options : mapping
        Option -> values given to ``check`` that ``fit`` takes, too; None where the default held, True for a flag.
    """
    from smelt_scaling.cli.output import wrapped

    given = {"--law": None if step["law"] == "sparse-additive" else step["law"], **options}
    command = "fit" if step["fit"] else "check"
    then = "" if step["fit"] else "mend the table as said above, then "
    said = wrapped(step["reason"]) if step["fit"] else []
    return "\n".join([*said, f"next: {then}{join(['smelt-scaling', command, runs, *_words(given)])}"])


def _words(options: Mapping[str, Any]) -> list[str]:
    """Write options as typed: repeated for a list, alone for True, not at all for None and False."""
    return [
        word
        for option, values in options.items()
        for value in (values if isinstance(values, list) else [values])
        if value is not None and value is not False
        for word in ([option] if value is True else [option, str(value)])
    ]


def _interval(study: Study) -> str:
    """Return the option of the interval that there is, where the bootstrap was refused."""
    from smelt_scaling.analyses.view import view_of

    possible = study.jackknife is not None and not view_of(study).no_jackknife
    return " --interval jackknife-t" if study.bootstrap.status == "refused" and possible else ""


def _questions(study: Study) -> Iterator[Question]:
    """Yield what could be asked, the best first, each with the call that shows whether it has an answer."""
    if study.law.columns != ("C",) or len(study.archs) > 1:
        yield _gain_or_optimum(study)
    if len(study.archs) > 1:
        yield _optimum(study)
    yield _point(study, None)
    if len(study.archs) > 1:
        for arch in study.archs:
            yield _point(study, arch)


def _budget(study: Study) -> float:
    from smelt_scaling.analyses.budgets import round_budgets, window_of

    window = window_of(study)
    return round_budgets(*window)[-1] if window else 1e21


def _optimum(study: Study) -> Question:
    from smelt_scaling.analyses import allocate

    budget = _budget(study)
    return f"allocate --budget {_short(budget, 1)}", lambda: allocate(study, budget)


def _gain_or_optimum(study: Study) -> Question:
    from smelt_scaling.analyses import ce_gain

    if len(study.archs) == 1:
        return _optimum(study)
    budget = _budget(study)
    shown = f"--budget {_short(budget, 1)}"
    if len(study.archs) == 2:
        return f"ce-gain {shown}", lambda: ce_gain(study, budget)
    reference, target = study.archs[:2]
    return (
        f"ce-gain {shown} --target {quote(target)} --reference {quote(reference)}",
        lambda: ce_gain(study, budget, target=target, reference=reference),
    )


def _point(study: Study, arch: str | None) -> Question:
    """Ask for the loss at the centre of the runs, on a logarithmic scale."""
    from smelt_scaling.analyses import predict
    from smelt_scaling.endpoints import default_sparsities

    fits = [fit for fit in study.fits.values() if arch in (None, fit.arch)]
    at: dict[str, str] = {}
    for name in study.law.columns:
        if name == "S":
            tiers = default_sparsities(study.endpoints).tolist() or [0.0]
            at[name] = f"{tiers[len(tiers) // 2]:.6g}"
            continue
        windows = [fit.window[name] for fit in fits if name in fit.window]
        low, high = max(low for low, _ in windows), min(high for _, high in windows)
        at[name] = _short(float(low) ** 0.5 * float(high) ** 0.5, 3)
    shown = f"predict --at {','.join(f'{name}={value}' for name, value in at.items())}"
    named = f" --arch {quote(arch)}" if arch is not None else ""
    points = {name: float(value) for name, value in at.items()}
    return f"{shown}{named}", lambda: predict(study, points, archs=arch)


def _short(x: float, digits: int) -> str:
    return f"{x:.{digits}g}".replace("e+0", "e").replace("e+", "e")
