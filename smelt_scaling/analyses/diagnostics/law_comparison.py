"""Is the law the right one, and do the architectures need one each? Tests of shared parameters, and other laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.analyses.calibration.cells import holm
from smelt_scaling.analyses.diagnostics.gamma import gamma_row
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of
from smelt_scaling.analyses.diagnostics.law_candidates import candidates_of
from smelt_scaling.analyses.diagnostics.law_errors import law_rows, run_trials
from smelt_scaling.analyses.diagnostics.law_questions import CODES, Question, questions_of
from smelt_scaling.analyses.diagnostics.law_tests import Pair, TieTest, pair_of, try_ties
from smelt_scaling.analyses.frames import Carried, finish_frame
from smelt_scaling.analyses.view import INTERVALS, IntervalKind, View, view_of
from smelt_scaling.errors import Note, SmeltScalingError, UsageError, warning
from smelt_scaling.laws import AdditiveLaw, Surface
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_laws"]

Row = dict[str, Any]

#: What one law tried on sizes left out counts in progress, in simulated data sets.
STEP = 50

#: Measured on the published design (`benchmarks/law_tests.py`): how often chi-square at 5 % rejects what is true, where
#: cells share 80 % of the error. With independent errors it is 2 to 4 %.
CHI2_SIZE = {"exponents": 0.10, "gamma": 0.10, "floor": 0.11, "no_sparsity": 0.14, "one_exponent": 0.11}


def compare_laws(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    laws: Sequence[str | AdditiveLaw] = (),
    replicates: int = 299,
    seed: int = 0,
    interval: IntervalKind = "percentile",
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Test what two architectures share, and compare laws by their errors on model sizes left out.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity
        The headline gain, as for `ce_gain`; it is shown under every hypothesis.
    laws : sequence of str or AdditiveLaw
        Further laws to compare, by name or formula.
    replicates : int
        Simulated data sets behind each p, at least 19.
    seed : int
        Of the simulation.
    interval, level
        Of the difference of gamma, as for `ce_gain`. 1 - level is the level of every verdict.
    progress : callable, optional
        Called with (steps done, steps in all).

    Returns
    -------
    DataFrame
        One row per question: ``question`` (exponents, gamma, floor, no_sparsity, one_exponent), ``hypothesis``,
        ``constraints`` (how many parameters it saves), ``statistic`` (twice the difference of log likelihoods), ``p``
        from simulated data that obey it, ``p_error`` (Monte-Carlo standard error), ``p_holm`` (adjusted over the
        questions), ``p_chi2`` (naive: it takes the number of cells for large) with ``chi2_size`` (how often it rejects
        a true hypothesis at 5 %, measured with cells that share 80 % of the error), ``replicates``, ``certified``
        (share of simulated fits), ``gain`` under the hypothesis and ``gain_separate`` without it by the same
        likelihood, as fractions (None where unreachable or absent), ``reason`` why there is no p.
        ``.attrs["gamma"]`` holds the difference of the frontier exponents, ``["noise"]`` the standard deviations of
        errors and of cell effects and their correlation between the architectures, ``["laws"]`` one row per law and
        scheme, ``["errors"]`` one per law, size left out, architecture and cell, ``["coefficients"]`` those of every
        hypothesis, ``["null"]`` the simulated statistics.

    Raises
    ------
    UsageError
        If an argument is invalid, a law malformed, or there is but one architecture.
    DataError
        If the losses of the two are not comparable.

    Notes
    -----
    The test is in `smelt_scaling.analyses.diagnostics.law_tests`, the comparison of laws in
    `smelt_scaling.analyses.diagnostics.law_errors`. The Gaussian likelihood of the test has no guard against outliers.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> frame = compare_laws(fit(example_endpoints(), bootstrap=0), replicates=19)
    >>> frame[["question", "constraints", "p"]].values.tolist()[3:]
    [['no_sparsity', 2, 0.05], ['one_exponent', 2, 0.05]]
    """
    from threadpoolctl import threadpool_limits

    if not isinstance(study, Study):
        raise UsageError(
            f"study of type {type(study).__name__}: laws are compared on endpoints, which published coefficients "
            "come without; fit(endpoints) makes a study"
        )
    for name, value, least in (("replicates", replicates, 19), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise UsageError(f"{name} {value!r}: must be a whole number of {least} or more")
    if interval not in INTERVALS:
        raise UsageError(f"interval {interval!r} is unknown; choose from {', '.join(INTERVALS)}")
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    candidates = candidates_of(study.law, laws)
    headline, notes = headline_of(study, target=target, reference=reference, budget=budget, sparsity=sparsity)
    view = view_of(study)
    view.require_comparable((view.side(headline.target), view.side(headline.reference)))
    done, total = 0, len(CODES) * replicates + len(candidates) * STEP

    def advance(count: int) -> None:
        nonlocal done
        done = min(done + count, total)
        if progress is not None:
            progress(done, total)

    with threadpool_limits(limits=1):
        rows, tables, found = _tests(study, headline, view, replicates, seed, advance)
        advance(len(CODES) * replicates - done)
        archs = (headline.reference, headline.target)
        trials, errors = run_trials(study, archs, candidates, progress=lambda n: advance(n * STEP))
    frame = finish_frame(
        rows,
        view,
        [*notes, *found],
        level=level,
        interval=interval,
        **vars(headline),
        replicates=replicates,
        seed=seed,
        unit=study.bootstrap.unit,
    )
    import pandas as pd

    for name in frame.columns:  # pandas would turn None into NaN, and whole numbers beside it into floats
        frame[name] = pd.Series([row[name] for row in rows], dtype=object)
    frame.attrs |= {
        "gamma": Carried([gamma_row(view, headline, interval=interval, level=level)]),
        "laws": Carried(law_rows(trials, errors, level)),
        "errors": Carried(errors),
        **{name: Carried(table) for name, table in tables.items()},
    }
    return frame


def _tests(
    study: Study,
    headline: Headline,
    view: View,
    replicates: int,
    seed: int,
    progress: Callable[[int], None],
) -> tuple[list[Row], dict[str, list[Row]], list[Note]]:
    """Return the rows of all questions, the tables beside them, and notes."""
    tables: dict[str, list[Row]] = {"noise": [], "coefficients": [], "null": []}
    try:
        pair = pair_of(study, headline)
    except SmeltScalingError as error:
        return [_row(code, said, str(error)) for code, said in CODES.items()], tables, []
    tables["noise"] = _noise_rows(pair)
    questions = questions_of(study.law, pair.problems, pair.archs)
    asked = [question for question in questions if question.tie is not None]
    ties = [question.tie for question in asked if question.tie is not None]
    tests = try_ties(pair, ties, replicates=replicates, seed=seed, progress=progress)
    tested = {question.code: one for question, one in zip(asked, tests, strict=True)}
    separate = _gain(pair, headline, view, pair.theta)
    rows = []
    for question in questions:
        row = _row(question.code, question.hypothesis, question.reason) | {"gain_separate": separate}
        if (one := tested.get(question.code)) is not None:
            row |= _result(pair, question, one) | {"gain": _gain(pair, headline, view, one.theta)}
            tables["coefficients"] += _coefficient_rows(pair, question.code, one.theta)
            tables["null"].append({"question": question.code, "statistics": one.null.tolist()})
        rows.append(row)
    raw = np.array([np.nan if row["p"] is None else row["p"] for row in rows])
    for row, adjusted in zip(rows, holm(raw).tolist(), strict=True):
        row["p_holm"] = None if row["p"] is None else adjusted
    return rows, tables, _remarks(pair, tests)


def _row(code: str, hypothesis: str, reason: str) -> Row:
    names = ("constraints", "statistic", "p", "p_error", "p_holm", "p_chi2", "chi2_size")
    return {
        "question": code,
        "hypothesis": hypothesis,
        **dict.fromkeys((*names, "replicates", "certified", "gain", "gain_separate")),
        "reason": reason,
    }


def _result(pair: Pair, question: Question, one: TieTest) -> Row:
    from scipy.stats import chi2

    assert question.tie is not None
    constraints = pair.separate.size - question.tie.size
    return {
        "constraints": constraints,
        "statistic": one.statistic,
        "p": one.p,
        "p_error": one.p_error,
        "p_chi2": float(chi2.sf(one.statistic, constraints)),
        "chi2_size": CHI2_SIZE[question.code],
        "replicates": len(one.null),
        "certified": one.certified,
    }


def _surfaces(pair: Pair, theta: Any) -> dict[str, Surface]:
    return {
        arch: Surface(law=problem.law, coef=problem.natural(own))
        for arch, problem, own in zip(pair.archs, pair.problems, pair.split(theta), strict=True)
    }


def _gain(pair: Pair, headline: Headline, view: View, theta: Any) -> float | None:
    """Return the headline gain of a fit; None where it has none."""
    try:
        view.require_frontier(tuple(view.side(arch) for arch in pair.archs))
        m = float(headline.of_surfaces(_surfaces(pair, theta), view.flops_per_param))
    except SmeltScalingError:
        return None
    return float(-np.expm1(-m)) if np.isfinite(m) else None


def _coefficient_rows(pair: Pair, code: str, theta: Any) -> list[Row]:
    alone = _surfaces(pair, pair.theta)
    return [
        {
            "question": code,
            "arch": arch,
            "parameter": name,
            "value": value,
            "separate": alone[arch].coefficients[name],
        }
        for arch, surface in _surfaces(pair, theta).items()
        for name, value in surface.coefficients.items()
    ]


def _noise_rows(pair: Pair) -> list[Row]:
    """Return standard deviations of errors and cell effects: relative to the loss, or in its unit for raw residuals."""
    sigma, tau = pair.components[:2], pair.components[2:4]
    both = float(np.sqrt(tau.prod()))
    rows = []
    for j, (arch, problem) in enumerate(zip(pair.archs, pair.problems, strict=True)):
        scale = 1.0 if problem.log_residual else problem.scale
        rows.append(
            {
                "arch": arch,
                "run_sd": float(np.sqrt(sigma[j])) * scale,
                "cell_sd": float(np.sqrt(tau[j])) * scale if pair.noise.repeats[j] else None,
                "cell_share": float(tau[j] / (sigma[j] + tau[j])) if pair.noise.repeats[j] else None,
                "pair_correlation": float(pair.components[4]) / both if both > 0 else None,
                "relative": problem.log_residual,
            }
        )
    return rows


def _remarks(pair: Pair, tests: Sequence[TieTest]) -> list[Note]:
    lost = sum(round((1 - one.certified) * len(one.null)) for one in tests)
    notes = []
    if lost:
        total = sum(len(one.null) for one in tests)
        message = (
            f"{lost} of {total} simulated pairs of fits are not certified; they are kept in the p values"
        )
        notes.append(warning("uncertified_draws", message, lost))
    return notes
