"""Loss and task error of runs not made, by the published method of Gadre et al. (2024), as they fitted it.

Loss: ``alpha N^b + beta 6^(b/2) (M N)^b + E`` with b < 0 for both terms and M = D/N tokens per parameter.
Error averaged over tasks: ``epsilon - k exp(-gamma L)``. Both by unweighted least squares, without any interval; the
error of a held-out run is predicted from its predicted loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.errors import DataError, FitError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ErrorLaw", "LossLaw", "fit_error_law", "fit_loss_law", "gadre_forecast"]

Array = NDArray[np.float64]

#: Starts of the loss law and the number of evaluations, as published.
STARTS = ((1e2, 3e2, 1e3, 3e3), (1e2, 3e2, 1e3, 3e3), (-0.1, -0.3), (0.0, 1.0, 2.0, 10.0))
EVALUATIONS = 10_000
ROLES = ("fit", "error", "predict")


class LossLaw(NamedTuple):
    """Loss of N parameters at M tokens per parameter.

    Examples
    --------
    >>> LossLaw(166.2, 366.7, -0.27285, 1.83665).loss([1.4397952e9, 6.88941e9], [640.0, 20.0]).round(4).tolist()
    [2.5198, 2.4427]
    """

    alpha: float
    beta: float
    exponent: float
    floor: float

    def loss(self, parameters: ArrayLike, tokens_per_param: ArrayLike) -> Array:
        """Return the loss in nats per token."""
        n, m = (np.asarray(value, dtype=np.float64) for value in (parameters, tokens_per_param))
        b = self.exponent
        return np.asarray(self.alpha * n**b + self.beta * 6.0 ** (b / 2) * (m * n) ** b + self.floor)


class ErrorLaw(NamedTuple):
    """Average error at a loss: ``ceiling - k exp(-gamma L)``."""

    k: float
    gamma: float
    ceiling: float

    def error(self, loss: ArrayLike) -> Array:
        """Return the error, a fraction."""
        return np.asarray(self.ceiling - self.k * np.exp(-self.gamma * np.asarray(loss, dtype=np.float64)))


def fit_loss_law(parameters: Array, tokens_per_param: Array, loss: Array) -> LossLaw:
    """Fit the loss law by least squares from the 128 published starts; the best is kept.

    Raises
    ------
    FitError
        If no start converges.
    """
    theta = _least_squares(lambda t: LossLaw(*t).loss(parameters, tokens_per_param) - loss, product(*STARTS))
    if theta is None:
        raise FitError("the loss law converged from no start; check N, D and loss of the rows to fit")
    return LossLaw(*theta)


def fit_error_law(loss: Array, error: Array) -> ErrorLaw:
    """Fit the error law by least squares from ones, as published.

    Raises
    ------
    FitError
        If it does not converge.

    Examples
    --------
    >>> x = np.array([2.2, 2.6, 3.0, 3.4, 3.8])
    >>> [round(v, 6) for v in fit_error_law(x, 0.8 - 2.5 * np.exp(-0.9 * x))]
    [2.5, 0.9, 0.8]
    """
    theta = _least_squares(lambda t: ErrorLaw(*t).error(loss) - error, [(1.0, 1.0, 1.0)])
    if theta is None:
        raise FitError("the error law did not converge; check loss and error of the rows to fit")
    return ErrorLaw(*theta)


def _least_squares(
    residuals: Callable[[Array], Array], starts: Iterable[tuple[float, ...]]
) -> list[float] | None:
    """Return the best of several starts by MINPACK's Levenberg-Marquardt; None if none converges."""
    from scipy.optimize import least_squares

    best: tuple[float, list[float]] | None = None
    for start in starts:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                found = least_squares(residuals, start, method="lm", max_nfev=EVALUATIONS)
            except ValueError:  # not finite at that start
                continue
        if found.success and (best is None or found.cost < best[0]):
            best = (float(found.cost), found.x.tolist())
    return None if best is None else best[1]


def gadre_forecast(runs: pd.DataFrame) -> pd.DataFrame:
    """Forecast loss and average task error of held-out runs.

    Parameters
    ----------
    runs : DataFrame
        ``N`` (parameters), ``D`` (tokens), ``loss``, ``error`` (average over tasks, a fraction) and ``role``: "fit"
        rows enter both laws, "error" rows the error law alone, "predict" rows are held out.

    Returns
    -------
    DataFrame
        One row per held-out run, its columns and ``loss_predicted, loss_relative_error, error_predicted,
        error_relative_error``: of the loss, and of the error at the predicted loss. ``.attrs`` holds ``loss_law`` and
        ``error_law``.

    Raises
    ------
    DataError
        If a column or a role is missing, or there are fewer than 4 rows to fit.
    FitError
        If a law does not converge.
    """
    absent = [name for name in ("N", "D", "loss", "error", "role") if name not in runs]
    if absent:
        raise DataError(
            f"no column {absent[0]}: a forecast needs N, D, loss, error and role; rename or add {absent[0]}"
        )
    unknown = sorted(set(runs["role"]) - set(ROLES))
    if unknown:
        raise DataError(f"column role holds {unknown[0]!r}: write one of {', '.join(ROLES)} in every row")
    fitted, held = runs[runs["role"] == "fit"], runs[runs["role"] == "predict"]
    if len(fitted) < 4:
        raise DataError(
            f"column role: {len(fitted)} rows to fit: the loss law has 4 parameters; mark more as fit"
        )

    def column(frame: pd.DataFrame, name: str) -> Array:
        return np.asarray(frame[name].to_numpy(), dtype=np.float64)

    loss_law = fit_loss_law(
        column(fitted, "N"), column(fitted, "D") / column(fitted, "N"), column(fitted, "loss")
    )
    calibrated = runs[runs["role"] != "predict"]
    error_law = fit_error_law(column(calibrated, "loss"), column(calibrated, "error"))
    loss = loss_law.loss(column(held, "N"), column(held, "D") / column(held, "N"))
    error = error_law.error(loss)
    forecast = held.assign(
        loss_predicted=loss,
        loss_relative_error=np.abs(loss - column(held, "loss")) / column(held, "loss"),
        error_predicted=error,
        error_relative_error=np.abs(error - column(held, "error")) / column(held, "error"),
    ).reset_index(drop=True)
    forecast.attrs = {"loss_law": loss_law._asdict(), "error_law": error_law._asdict()}
    return forecast
