"""Surface: a law with coefficients. Published, fitted and resampled coefficients are all this one type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import UsageError
from smelt_scaling.laws.additive import AdditiveLaw

__all__ = ["Surface"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """A fitted, published or resampled scaling surface.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    coef : array (..., P)
        Coefficients in the order of ``law.parameters``, natural scale (amplitudes are not logarithms). Leading axes
        are draws.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> surface = Surface(law=LAWS["chinchilla"], coef=[1.69, 406.4, 410.7, 0.34, 0.28])
    >>> round(float(surface.loss(N=70e9, D=1.4e12)), 6)
    1.936645
    >>> surface.coefficients["alpha"]
    0.34
    """

    law: AdditiveLaw
    coef: Array

    def __post_init__(self) -> None:
        coef = np.array(self.coef, dtype=np.float64)
        if coef.ndim == 0 or coef.shape[-1] != len(self.law.parameters):
            names = ", ".join(self.law.parameters)
            raise UsageError(
                f"law {self.law.name}: coefficients of shape {coef.shape}; the last axis must hold {names}"
            )
        coef.flags.writeable = False
        object.__setattr__(self, "coef", coef)

    @property
    def draws_shape(self) -> tuple[int, ...]:
        """Shape of the leading axes; ``()`` for a point."""
        return self.coef.shape[:-1]

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of a point surface by name."""
        return dict(zip(self.law.parameters, self.coef.tolist(), strict=True))

    def __getitem__(self, name: str) -> Array:
        """Return one coefficient, shape = leading axes."""
        return np.asarray(self.coef[..., self.law.parameters.index(name)])

    def loss(self, **columns: object) -> Array:
        """Evaluate the loss in nats/token; see `AdditiveLaw.loss`."""
        return self.law.loss(self.coef, **columns)
