"""How long documents are: what attention costs under a mask that keeps documents apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.errors import UsageError

__all__ = ["Lengths"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """Lengths of documents as packed for training.

    A token of a document of length l attends to l/2 tokens on average under a causal mask, and a token lies in a
    document of length l in proportion to l: scores cost E[l^2]/E[l] per token, not the mean length.

    Parameters
    ----------
    lengths : (k,) array
        Distinct lengths, tokens.
    weights : (k,) array
        Share of the documents that has each; sums to 1.

    Examples
    --------
    >>> lengths = Lengths.of([100, 300])
    >>> lengths.mean, lengths.effective
    (200.0, 250.0)
    """

    lengths: Array
    weights: Array

    def __post_init__(self) -> None:
        length = np.array(self.lengths, dtype=np.float64)
        weight = np.array(self.weights, dtype=np.float64)
        if length.ndim != 1 or length.shape != weight.shape or not len(length):
            raise UsageError("document lengths: one count per length is needed, and at least one length")
        if not (np.all(np.isfinite(length)) and np.all(length >= 1)):
            raise UsageError(f"document lengths: {length.min():g}: a document has at least one token")
        if not (np.all(np.isfinite(weight)) and np.all(weight >= 0) and weight.sum() > 0):
            raise UsageError("document lengths: counts must be 0 or more, and not all 0")
        weight = weight / weight.sum()
        for name, values in (("lengths", length), ("weights", weight)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, lengths: ArrayLike, counts: ArrayLike | None = None) -> Lengths:
        """Take lengths with how many documents have each; one each by default."""
        values = np.atleast_1d(np.asarray(lengths, dtype=np.float64))
        weights = np.ones(len(values)) if counts is None else np.atleast_1d(np.asarray(counts))
        return cls(lengths=values, weights=weights)

    @classmethod
    def from_cu_seqlens(cls, boundaries: ArrayLike) -> Lengths:
        """Take the running sums of lengths that variable-length attention kernels take, 0 first.

        Examples
        --------
        >>> Lengths.from_cu_seqlens([0, 100, 400]).mean
        200.0
        """
        values = np.asarray(boundaries, dtype=np.float64)
        if values.ndim != 1 or len(values) < 2 or values[0] != 0 or np.any(np.diff(values) <= 0):
            raise UsageError("cu_seqlens: must start at 0 and rise, one entry more than there are documents")
        return cls.of(np.diff(values))

    @property
    def mean(self) -> float:
        """Mean length of a document, tokens."""
        return float(self.weights @ self.lengths)

    @property
    def effective(self) -> float:
        """Mean length of the document that a token lies in: E[l^2]/E[l]."""
        return float(self.weights @ self.lengths**2) / self.mean

    def attended(self, window: int = 0, *, causal: bool = True) -> float:
        """Return how many tokens a token attends to, on average over tokens.

        Parameters
        ----------
        window : int
            Most tokens that it sees; 0 for all of its document.
        causal : bool
            Whether it sees only what came before it, counted as half a document of more than one token.

        Examples
        --------
        >>> Lengths.of(1000).attended(), Lengths.of(1000).attended(100), Lengths.of(1000).attended(causal=False)
        (500.0, 95.0, 1000.0)
        """
        length = self.lengths
        seen = np.minimum(length, window) if window else length
        if causal:  # the first `seen` tokens see half of it, the others all of it
            seen = seen - seen**2 / (2 * length)
        return float(self.weights @ (length * seen)) / self.mean
