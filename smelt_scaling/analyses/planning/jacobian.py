"""How the log loss, and the gain at one budget, move with the coefficients of a surface.

Coordinates of a surface are its floor, the logarithms of its amplitudes, and its exponents, in the order of
``law.parameters``. What is asked of them here does not depend on that choice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import Surface

__all__ = ["gain_gradients", "log_loss_jacobian", "row_columns"]

Array = NDArray[np.float64]

#: Step in ln C of the slope of a frontier; central differences err by its square, about 1e-8.
STEP = 1e-4


def row_columns(
    flops: Array, tokens: Array, sparsity: Array | float | None, flops_per_param: float
) -> dict[str, Array]:
    """Return every column that a law may name, of runs of so many FLOPs per token and tokens."""
    size = flops / flops_per_param
    columns = {"F": flops, "D": tokens, "N": size, "N_act": size, "C": flops * tokens}
    if sparsity is not None:
        columns["S"] = np.broadcast_to(np.asarray(sparsity, dtype=np.float64), flops.shape)
    return columns


def log_loss_jacobian(surface: Surface, columns: Mapping[str, Array]) -> Array:
    """Return d ln L / d coordinates at rows, shape (n, P).

    Parameters
    ----------
    surface : Surface
        A point surface.
    columns : mapping of str to (n,) array
        At least those of the law.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> surface = Surface(law=LAWS["power-c"], coef=[1.5, 100.0, 0.1])
    >>> log_loss_jacobian(surface, {"C": np.array([1e20])}).round(4).tolist()  # L = 1.5 + 1: 1/L, 1/L, -ln C/L
    [[0.4, 0.4, -18.4207]]
    """
    law = surface.law
    terms = law.log_terms(columns)
    position = {name: i for i, name in enumerate(law.parameters)}
    total = np.full(len(terms[0].offset), float(surface[law.floor]))
    jacobian = np.zeros((len(total), len(position)))
    jacobian[:, position[law.floor]] = 1.0
    for term in terms:
        log_value = np.log(surface[term.amplitude]) + term.offset
        for exponent, slope in term.slopes.items():
            log_value = log_value + surface[exponent] * slope
        value = np.exp(log_value)
        total = total + value
        jacobian[:, position[term.amplitude]] += value
        for exponent, slope in term.slopes.items():
            jacobian[:, position[exponent]] += value * slope
    return np.asarray(jacobian / total[:, None])


def gain_gradients(
    headline: Headline, surfaces: Mapping[str, Surface], flops_per_param: float
) -> tuple[Array, Array]:
    """Return dm / d coordinates of the target and of the reference, m = ln(C_ref / C); each of shape (P,).

    By the envelope theorem a frontier moves with the coordinates as the surface does at its optimum, and m moves by
    that over the slope of the reference's frontier in ln C, at C_ref.

    Raises
    ------
    FrontierError
        If a law does not separate size from tokens.
    """
    target, reference = (
        Frontier(surfaces[arch], flops_per_param=flops_per_param)
        for arch in (headline.target, headline.reference)
    )
    m = float(headline.of_surfaces(surfaces, flops_per_param))
    reached = headline.budget * float(np.exp(m))
    ends = np.exp(np.log(reached) + STEP * np.array([-1.0, 1.0]))
    falling, rising = reference.loss(ends, headline.sparsity)
    slope = float(falling - rising) / (2 * STEP)
    gradients = []
    for frontier, budget, sign in ((target, headline.budget, -1.0), (reference, reached, 1.0)):
        best = frontier.allocate(np.array([budget]), headline.sparsity)
        columns = row_columns(best.flops_per_token, best.tokens, headline.sparsity, flops_per_param)
        moved = best.loss * log_loss_jacobian(frontier.surface, columns)[0]
        gradients.append(sign * moved / slope)
    return gradients[0], gradients[1]
