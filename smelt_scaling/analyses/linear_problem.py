"""A fit linearised at its optimum: what tests of noise, covariances and regions are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import log_jacobian
from smelt_scaling.engine.problem import Problem
from smelt_scaling.errors import UsageError
from smelt_scaling.fitting import FitResult
from smelt_scaling.fitting.estimate import problem_of
from smelt_scaling.study import Study

__all__ = ["Linearised", "linearised"]

Array = NDArray[np.float64]

#: Order in which people look along the axes of a design.
AXES = {name: k for k, name in enumerate(("ln F", "ln N", "ln N_act", "ln C", "ln D", "ln(1-S)"))}
#: A direction of the coefficients below this share of the strongest one is none.
RANK = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Linearised:
    """One architecture's fit as a linear model, ln(observed) - ln(fitted) = J step + error.

    Parameters
    ----------
    fit : FitResult
        The fit.
    own : Endpoints
        Its rows.
    columns : mapping of str to array (n,)
        Columns of the law, as the fit saw them.
    problem : Problem
        What was minimised.
    theta : array (P,)
        The optimum in the centred coordinates of the problem.
    free : bool array (P,)
        Coordinates that were fitted and are on no bound.
    jacobian : array (n, p)
        J: d ln(fitted) / d theta of the free coordinates.
    residual : array (n,)
        ln(observed) - ln(fitted): positive where a run is worse than the law says.
    label : array (n,) of str
        Resampling label (cell) of each row.
    cell : int array (n,)
        Position of the label in ``cells``.
    cells : tuple of str
        The labels, sorted.
    """

    fit: FitResult
    own: Endpoints
    columns: Mapping[str, Array]
    problem: Problem
    theta: Array
    free: NDArray[np.bool_]
    jacobian: Array
    residual: Array
    label: NDArray[np.str_]
    cell: NDArray[np.intp]
    cells: tuple[str, ...]

    @property
    def weight(self) -> Array:
        """Weights of the rows, shape (n,)."""
        return self.problem.weight

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free coordinates."""
        return tuple(np.array(self.problem.law.parameters)[self.free].tolist())

    @property
    def basis(self) -> Array:
        """An orthonormal basis of the columns of sqrt(weight) J, shape (n, rank)."""
        scaled = np.sqrt(self.weight)[:, None] * self.jacobian
        norms = np.linalg.norm(scaled, axis=0)
        left, singular, _ = np.linalg.svd(scaled / np.where(norms == 0, 1.0, norms), full_matrices=False)
        return np.asarray(left[:, singular > RANK * singular.max(initial=0.0)])

    @property
    def axes(self) -> Mapping[str, Array]:
        """Logarithms of what the design varies, by how people write it."""
        of = {
            "ln(1-S)" if name == "S" else f"ln {name}": np.log1p(-x) if name == "S" else np.log(x)
            for name, x in self.columns.items()
        }
        return {name: of[name] for name in sorted(of, key=AXES.__getitem__) if np.ptp(of[name]) > 0}


def linearised(study: Study, arch: str) -> Linearised:
    """Linearise the fit of one architecture.

    Parameters
    ----------
    study : Study
        What is fitted.
    arch : str
        The architecture.

    Raises
    ------
    UsageError
        If ``study`` is not one, or has no such architecture.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> model = linearised(fit(example_endpoints(), bootstrap=0), "smelt")
    >>> model.jacobian.shape, len(model.cells), list(model.axes)
    ((72, 6), 12, ['ln F', 'ln D', 'ln(1-S)'])
    """
    if not isinstance(study, Study):
        raise UsageError(
            f"source of type {type(study).__name__}: residuals need a study with its runs; fit(endpoints) makes one"
        )
    fit = study[arch]
    mine = study.endpoints.arch == arch
    own = study.endpoints.by_arch()[arch]
    label = study.endpoints.cells(study.bootstrap.unit)[0][mine]
    problem, _, columns = problem_of(arch, own, study.law, study.settings, label)
    theta = problem.centred(fit.surface.coef)
    theta = np.where(problem.free, theta, np.nan_to_num(problem.held))
    bound = np.isin(study.law.parameters, fit.certificate.at_bounds)
    free = problem.free & ~bound
    cells, cell = np.unique(label, return_inverse=True)
    return Linearised(
        fit=fit,
        own=own,
        columns=columns,
        problem=problem,
        theta=theta,
        free=free,
        jacobian=log_jacobian(problem, theta)[:, free[problem.free]],
        residual=np.log(own.loss) - np.log(problem.predicted(theta)),
        label=label,
        cell=np.asarray(cell.ravel(), dtype=np.intp),
        cells=tuple(cells.tolist()),
    )
