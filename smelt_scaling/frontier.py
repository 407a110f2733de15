r"""The compute-optimal frontier of a surface: the lowest loss a budget C = F * D can buy, and where.

On an iso-FLOP curve every term of an additive law with monomial features is ``exp(p + s*ln F - g*ln C)``. With one
falling (s = -s1) and one rising term (s = s2) the minimum is closed form. With w = s2/(s1+s2):

.. math::
    \ln F^* &= (p_1 - p_2 + \ln s_1 - \ln s_2 - (g_1 - g_2) \ln C)/(s_1+s_2) \\
    L^* &= E + P C^{-\gamma}, \quad \gamma = w g_1 + (1-w) g_2 \\
    \ln P &= \ln(s_1+s_2) + w (p_1 - \ln s_2) + (1-w)(p_2 - \ln s_1)

For ``E + A F^-a + K D^-c`` this is F* = (aA C^c/(cK))^(1/(a+c)) and gamma = ac/(a+c) (Hoffmann et al. 2022,
arXiv:2203.15556, eq. 4, with F in place of 6N). Everything stays in logarithms, so no budget overflows. Other laws are
minimised numerically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._isoterms import IsoTerm, align, allocates, falling_and_rising, has_closed_form, iso_terms
from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.laws import Surface

__all__ = ["Allocation", "Frontier", "log_multiplier"]

Array = NDArray[np.float64]

#: Training FLOPs per parameter and token, the usual 6 (forward 2, backward 4).
FLOPS_PER_PARAM = 6.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Allocation:
    """The optimum of a budget. Every array has shape draws + broadcast(budget, S).

    Parameters
    ----------
    flops_per_token : array
        F*, training FLOPs per token.
    tokens : array
        D* = C / F*, training tokens.
    loss : array
        L*, nats/token.
    """

    flops_per_token: Array
    tokens: Array
    loss: Array


class Frontier:
    """The compute-optimal frontier of a surface.

    Parameters
    ----------
    surface : Surface
        A point or a stack of draws; draws are leading axes of every result.
    flops_per_param : float
        How laws in N (or N_act) relate to F: F = flops_per_param * N.
    numeric : bool
        Minimise numerically even where a closed form exists.

    Raises
    ------
    FrontierError
        On use, if the law has no interior optimum along an iso-FLOP curve.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> baseline = Surface(law=LAWS["sparse-additive"], coef=[1.4439, 1.366e3, 1.975e6, .3703, .1530, .6594])
    >>> frontier = Frontier(baseline)
    >>> best = frontier.allocate(1e21, S=0.846)
    >>> f"{float(best.flops_per_token):.6e} {float(best.tokens):.6e} {float(best.loss):.8f}"
    '1.034988e+10 9.661945e+10 1.75735308'
    >>> round(float(frontier.exponent), 6), f"{float(frontier.budget_for(best.loss, S=0.846)):.6e}"
    (0.237133, '1.000000e+21')
    """

    def __init__(
        self, surface: Surface, *, flops_per_param: float = FLOPS_PER_PARAM, numeric: bool = False
    ) -> None:
        self.surface = surface
        self.flops_per_param = flops_per_param
        self._numeric = numeric or not has_closed_form(surface.law)

    def __repr__(self) -> str:
        kind = "numeric" if self._numeric else "closed form"
        return f"Frontier({self.surface.law.name}, {kind}, draws {self.surface.draws_shape or 'none'})"

    @property
    def closed_form(self) -> bool:
        """Whether L* = E + P C^-gamma is exact."""
        return not self._numeric

    @property
    def allocates(self) -> bool:
        """Whether the law separates model size from tokens; a law in C alone does not."""
        return allocates(self.surface.law)

    @property
    def exponent(self) -> Array:
        """Frontier exponent gamma in L* = E + P C^-gamma, shape draws."""
        self._require_closed_form("the frontier exponent")
        return self._power_law(None)[1]

    def log_scale(self, S: ArrayLike | None = None) -> Array:  # noqa: N803  # S is the field's name for sparsity
        """Return ln P in L* = E + P C^-gamma, shape draws + shape of S."""
        self._require_closed_form("the frontier scale")
        return self._power_law(S)[0]

    def allocate(self, budget: ArrayLike, S: ArrayLike | None = None) -> Allocation:  # noqa: N803
        """Return F*, D*, L* of training budgets.

        Parameters
        ----------
        budget : array-like
            C, training FLOPs.
        S : array-like, optional
            Sparsity, broadcast against the budget. Needed by laws that use S.

        Raises
        ------
        FrontierError
            If the law does not separate F from D, or has no interior optimum.
        UsageError
            If a budget is not positive.
        """
        self._require_split()
        log_budget, sparsity = self._arguments(budget, S)
        if self._numeric:
            log_flops, loss = self._minimise(log_budget, sparsity)
        else:
            log_flops, loss = self._closed_flops(log_budget, sparsity, log_budget.ndim), self.loss(budget, S)
        return Allocation(flops_per_token=np.exp(log_flops), tokens=np.exp(log_budget - log_flops), loss=loss)

    def log_flops(self, log_budget: ArrayLike, S: ArrayLike | None = None) -> Array:  # noqa: N803
        """Return ln F* of budgets that differ by draw.

        Parameters
        ----------
        log_budget : array-like
            ln C, shape draws + trailing axes.
        S : array-like, optional
            Sparsity, shape of the trailing axes.
        """
        self._require_split()
        log_c = np.asarray(log_budget, dtype=np.float64)
        trailing = log_c.ndim - len(self.surface.draws_shape)
        sparsity = None if S is None else np.asarray(S, dtype=np.float64)
        if not self._numeric:
            return np.asarray(self._closed_flops(log_c, sparsity, trailing))
        from smelt_scaling._isoflop import minimise_loss

        return minimise_loss(self._loss_at(sparsity, trailing), log_c)[0]

    def loss(self, budget: ArrayLike, S: ArrayLike | None = None) -> Array:  # noqa: N803
        """Return L*, the lowest loss a budget can buy, in nats/token; shape draws + broadcast(budget, S)."""
        log_budget, sparsity = self._arguments(budget, S)
        if self._numeric:
            return self._minimise(log_budget, sparsity)[1]
        floor = align(self.surface[self.surface.law.floor], log_budget.ndim)
        return np.asarray(floor + np.exp(self.log_reducible(log_budget, sparsity)))

    def budget_for(self, loss: ArrayLike, S: ArrayLike | None = None) -> Array:  # noqa: N803
        """Return the budget whose optimum reaches a loss; infinite where the floor is not below it.

        Parameters
        ----------
        loss : array-like
            Nats/token: a scalar, or shape draws + trailing axes.
        S : array-like, optional
            Sparsity, broadcast against the trailing axes.
        """
        target = np.asarray(loss, dtype=np.float64)
        sparsity = None if S is None else np.asarray(S, dtype=np.float64)
        draws = self.surface.draws_shape
        trailing = max(target.ndim - len(draws), 0 if sparsity is None else sparsity.ndim)
        if self._numeric:
            from smelt_scaling._isoflop import invert_loss

            tail = np.broadcast_shapes(
                target.shape, draws + (1,) * trailing, () if S is None else np.shape(S)
            )
            return invert_loss(self._loss_at(sparsity, trailing), np.broadcast_to(target, tail))
        floor = align(self.surface[self.surface.law.floor], trailing)
        log_scale, exponent = self._power_law(sparsity, trailing)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_budget = (log_scale - np.log(target - floor)) / align(exponent, trailing)
        return np.where(target > floor, np.exp(log_budget), np.inf)

    def log_reducible(self, log_budget: ArrayLike, S: ArrayLike | None = None) -> Array:  # noqa: N803
        """Return ln(L* - E) = ln P - gamma ln C, shape draws + broadcast(ln C, S); closed form only."""
        self._require_closed_form("the reducible loss")
        log_c, sparsity = np.broadcast_arrays(
            np.asarray(log_budget, dtype=np.float64), np.asarray(0.0 if S is None else S, dtype=np.float64)
        )
        log_scale, exponent = self._power_law(None if S is None else sparsity, log_c.ndim)
        return np.asarray(log_scale - align(exponent, log_c.ndim) * log_c)

    # -- closed form -----------------------------------------------------------------------------------------------

    def _require_closed_form(self, what: str) -> None:
        if self._numeric:
            raise FrontierError(
                f"law {self.surface.law.name}: {what} has no closed form; use loss and allocate"
            )

    def _power_law(self, S: ArrayLike | None, ndim: int | None = None) -> tuple[Array, Array]:  # noqa: N803
        """Return ln P (draws + S axes) and gamma (draws)."""
        sparsity = None if S is None else np.asarray(S, dtype=np.float64)
        if sparsity is None and "S" in self.surface.law.columns and ndim is None:
            sparsity = np.zeros(())  # gamma does not depend on S
        axes = ndim if ndim is not None else (0 if sparsity is None else sparsity.ndim)
        if not self.allocates:
            (only,) = iso_terms(self.surface, sparsity, axes, self.flops_per_param)
            return only.intercept, only.decay.reshape(self.surface.draws_shape)
        falling, rising = self._two_terms(sparsity, axes)
        s1, s2 = -falling.slope, rising.slope
        w = s2 / (s1 + s2)
        log_scale = (
            np.log(s1 + s2) + w * (falling.intercept - np.log(s2)) + (1 - w) * (rising.intercept - np.log(s1))
        )
        exponent = w * falling.decay + (1 - w) * rising.decay
        return log_scale, exponent.reshape(self.surface.draws_shape)

    def _two_terms(self, S: Array | None, ndim: int) -> tuple[IsoTerm, IsoTerm]:  # noqa: N803
        return falling_and_rising(self.surface, S, ndim, self.flops_per_param)

    def _closed_flops(self, log_budget: Array, S: Array | None, trailing: int) -> Array:  # noqa: N803
        falling, rising = self._two_terms(S, trailing)
        difference = falling.intercept - rising.intercept - (falling.decay - rising.decay) * log_budget
        log_flops: Array = (difference + np.log(-falling.slope) - np.log(rising.slope)) / (
            rising.slope - falling.slope
        )
        return log_flops

    def _require_split(self) -> None:
        if not self.allocates:
            raise FrontierError(
                f"law {self.surface.law.name}: it holds C only, so a budget cannot be split into model and tokens; "
                "fit a law in F and D, such as --law additive"
            )

    # -- numeric ---------------------------------------------------------------------------------------------------

    def _minimise(self, log_budget: Array, S: Array | None) -> tuple[Array, Array]:  # noqa: N803
        from smelt_scaling._isoflop import minimise_loss

        shape = self.surface.draws_shape + log_budget.shape
        return minimise_loss(self._loss_at(S, log_budget.ndim), np.broadcast_to(log_budget, shape))

    def _loss_at(self, S: Array | None, trailing: int) -> Callable[[Array, Array], Array]:  # noqa: N803
        """Return the loss as a function of (ln F, ln C), arrays of draws + trailing axes."""
        sparsity = {} if S is None else {"S": S}

        def loss(log_flops: Array, log_budget: Array) -> Array:
            flops = np.exp(log_flops)
            size = flops / self.flops_per_param
            columns = {
                "F": flops,
                "D": np.exp(log_budget - log_flops),
                "N": size,
                "N_act": size,
                "C": np.exp(log_budget),
            }
            return self.surface.law.loss_by_draw(self.surface.coef, columns | sparsity, trailing)

        return loss

    def _arguments(self, budget: ArrayLike, S: ArrayLike | None) -> tuple[Array, Array | None]:  # noqa: N803
        value = np.asarray(budget, dtype=np.float64)
        if not np.all(value > 0) or not np.all(np.isfinite(value)):
            raise UsageError(f"budget {budget!r}: training FLOPs must be positive and finite")
        if S is None:
            return np.log(value), None
        log_budget, sparsity = np.broadcast_arrays(np.log(value), np.asarray(S, dtype=np.float64))
        return log_budget, sparsity


def log_multiplier(
    target: Frontier,
    reference: Frontier,
    log_budget: ArrayLike,
    S: ArrayLike | None = None,  # noqa: N803
) -> Array:
    r"""Return m = ln(C_ref / C_tgt): how much more compute the reference needs for the target's loss.

    Compute saved is ``-expm1(-m)``, the compute multiplier ``exp(m)``. Written so that equal frontiers give exactly 0:

    .. math:: m = (\ln P_r - \ln P_t + (\gamma_t - \gamma_r) \ln C - \ln(1 + (E_t - E_r) e^{-y}))/\gamma_r,
              \quad y = \ln P_t - \gamma_t \ln C

    Parameters
    ----------
    target, reference : Frontier
        Draws of both must broadcast (paired draws have equal shape).
    log_budget : array-like
        ln C of the target.
    S : array-like, optional
        One sparsity for both, broadcast against ``log_budget``.

    Returns
    -------
    array
        Shape draws + broadcast(log_budget, S); ``+inf`` where the reference never reaches the loss.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> law = LAWS["sparse-additive"]
    >>> baseline = Frontier(Surface(law=law, coef=[1.4439, 1.366e3, 1.975e6, .3703, .1530, .6594]))
    >>> smelt = Frontier(Surface(law=law, coef=[1.4493, 1.963e3, 5.264e6, .3892, .1460, .7011]))
    >>> float(-np.expm1(-log_multiplier(smelt, baseline, np.log(1e21), 0.846)).round(5))
    0.17996
    >>> float(log_multiplier(smelt, smelt, np.log(1e21), 0.846))
    0.0
    """
    log_c = np.asarray(log_budget, dtype=np.float64)
    sparsity = None if S is None else np.asarray(S, dtype=np.float64)
    if sparsity is not None:
        log_c, sparsity = np.broadcast_arrays(log_c, sparsity)
    if not (target.closed_form and reference.closed_form):
        return _numeric_log_multiplier(target, reference, log_c, sparsity)
    ndim = log_c.ndim
    scale_t, gamma_t = target._power_law(sparsity, ndim)
    scale_r, gamma_r = reference._power_law(sparsity, ndim)
    gamma_t, gamma_r = align(gamma_t, ndim), align(gamma_r, ndim)
    floor_t = align(target.surface[target.surface.law.floor], ndim)
    floor_r = align(reference.surface[reference.surface.law.floor], ndim)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        excess = (floor_t - floor_r) * np.exp(gamma_t * log_c - scale_t)
        m = (scale_r - scale_t + (gamma_t - gamma_r) * log_c - np.log1p(excess)) / gamma_r
    return np.where(excess > -1, m, np.inf)


def _numeric_log_multiplier(target: Frontier, reference: Frontier, log_c: Array, S: Array | None) -> Array:  # noqa: N803
    reached = reference.budget_for(target.loss(np.exp(log_c), S), S)
    m = np.log(reached) - log_c
    if target.surface.law == reference.surface.law and target.flops_per_param == reference.flops_per_param:
        # a root finder would leave rounding noise where the answer is known
        same = np.all(target.surface.coef == reference.surface.coef, axis=-1)
        m = np.where(align(same, log_c.ndim), 0.0, m)
    return np.asarray(m)
