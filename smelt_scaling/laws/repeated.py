"""Repeated tokens in fresh-token equivalents: what a law in D may be given where runs pass over their data again.

Muennighoff et al., "Scaling Data-Constrained Language Models" (2023), equation 5, with the constants of the code
published beside it (huggingface/datablations).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["REPEAT_CONSTANT", "REPEAT_CONSTANT_PARAMETERS", "effective_amount"]

#: R_D*: passes over the data after which repeating is worth 1 - 1/e of what it can ever be worth.
REPEAT_CONSTANT = 15.387756
#: R_N*, the same of parameters in excess of those that the unique tokens call for.
REPEAT_CONSTANT_PARAMETERS = 5.309743


def effective_amount(
    amount: ArrayLike, unique: ArrayLike, constant: float = REPEAT_CONSTANT
) -> NDArray[np.float64]:
    """Return U + U R (1 - exp(-(X/U - 1)/R)): what X tokens, U of them unique, are worth in tokens seen once.

    Parameters
    ----------
    amount : array_like
        X, tokens in all, at least ``unique``.
    unique : array_like
        U, tokens before any is repeated.
    constant : float
        R, 15.387756 for tokens by default; 5.309743 for parameters in excess.

    Returns
    -------
    ndarray
        At most X; equal to it without repetition, and U (1 + R) for endless repetition.

    Examples
    --------
    >>> effective_amount([1e9, 4e9, 1e12], 1e9).round(-6).tolist()
    [1000000000.0, 3726000000.0, 16388000000.0]
    """
    U = np.asarray(unique, dtype=np.float64)
    repeats = np.maximum(np.asarray(amount, dtype=np.float64) / U - 1.0, 0.0)
    return np.asarray(U * (1.0 - constant * np.expm1(-repeats / constant)))
