"""Fits without some of the rows, many at once: the objective of the study less what those rows add to it.

All are refitted in one batch, from the optimum of the whole table, with the weight 0 where a row is left out; the
Huber threshold stays what it was. Where the rest no longer identifies a parameter the rest alone is fitted anew, which
says what it can still answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import FitError, SmeltScalingError
from smelt_scaling.fitting import FitResult, FitStatus, Fitted, fit_architecture
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import refit
from smelt_scaling.study import Study

__all__ = ["PANEL_STARTS", "Arm", "Without", "arms_of", "put", "with_starts"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Starts of one of many point fits: as many as find the optimum of 64 in all worlds tried, and the certificate,
#: which asks for two that agree, takes more by itself.
PANEL_STARTS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Without:
    """One architecture without some of its rows.

    Parameters
    ----------
    out : (n,) array of bool
        The rows of the architecture that were left out.
    result : FitResult or None
        The fit to the rest.
    error : (n,) array
        ln(predicted) - ln(observed) of every row, those left out included; empty where there is none.
    reason : str
        Why there is no fit, or no prediction; empty if there is one.
    """

    out: Mask
    result: FitResult | None
    error: Array
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Arm:
    """One architecture, ready to be fitted without some of its rows.

    Parameters
    ----------
    arch : str
        Its name.
    study : Study
        What it belongs to.
    fitted : Fitted
        The fit to all its rows.
    rows : (m,) array of bool
        Its rows among those of the study.
    """

    arch: str
    study: Study
    fitted: Fitted
    rows: Mask

    @property
    def loss(self) -> Array:
        """Losses that were measured."""
        return self.study.endpoints.loss[self.rows]

    @property
    def weight(self) -> Array:
        """Weights of its rows in the fit."""
        return self.fitted.problem.weight

    def error(self, surface: Surface) -> Array:
        """Return ln(predicted) - ln(observed) of every row, shape draws + (n,)."""
        return np.asarray(np.log(surface.loss(**self.fitted.columns)) - np.log(self.loss))

    def without(self, masks: Sequence[Mask]) -> list[Without]:
        """Fit the architecture without each of some sets of rows.

        Parameters
        ----------
        masks : sequence of (m,) array of bool
            Rows of the study to leave out.
        """
        from threadpoolctl import threadpool_limits

        out = np.array([mask[self.rows] for mask in masks], dtype=bool).reshape(len(masks), len(self.loss))
        fit, found = self.fitted.result, [self._untouched(own) for own in out]
        usable = np.flatnonzero(out.any(axis=1) & ~out.all(axis=1))
        if not len(usable):
            return found
        counts = (~out[usable]).astype(np.int16)
        names = tuple(map(str, range(out.shape[1])))
        with threadpool_limits(limits=1):
            draws = refit(self.fitted, np.arange(len(names)), counts, names, self.study.settings)
        errors = self.error(draws.surface)
        for place, i in enumerate(usable.tolist()):
            if draws.degenerate[place]:
                found[i] = self._alone(out[i])
                continue
            status = FitStatus.CERTIFIED if draws.certified[place] else FitStatus.NOT_CONVERGED
            result = replace(
                fit,
                surface=Surface(law=fit.surface.law, coef=draws.surface.coef[place]),
                certificate=replace(fit.certificate, status=status),
            )
            found[i] = Without(out=out[i], result=result, error=errors[place], reason="")
        return found

    def _untouched(self, out: Mask) -> Without:
        """Return the fit to all rows, where none of them is left out; no fit, where all are."""
        if out.any():
            reason = f"{self.arch}: no row would be left"
            return Without(out=out, result=None, error=np.empty(0), reason=reason)
        fit = self.fitted.result
        return Without(out=out, result=fit, error=self.error(fit.surface), reason="")

    def _alone(self, out: Mask) -> Without:
        """Fit the rest as a table of its own, since it lacks what identifies a parameter."""
        own = self.study.endpoints.select(self.rows).select(~out)
        labels, _ = own.cells(self.study.bootstrap.unit)
        try:
            result = fit_architecture(
                self.arch,
                own,
                self.study.law,
                with_starts(self.study).settings,
                n_cells=len(np.unique(labels)),
                labels=labels,
            ).result
        except SmeltScalingError as error:
            return Without(out=out, result=None, error=np.empty(0), reason=str(error))
        reason = ""
        if result.unidentified:
            name, why = next(iter(result.unidentified.items()))
            reason = f"{self.arch}: {name} is not identified by the rest ({why})"
        return Without(out=out, result=result, error=self.error(result.surface), reason=reason)


def with_starts(study: Study) -> Study:
    """Return the study with settings for one of many fits."""
    starts = min(study.settings.start_count, PANEL_STARTS)
    return replace(study, settings=replace(study.settings, starts=starts))


def arms_of(study: Study) -> dict[str, Arm]:
    """Return every architecture of a study, ready to be fitted without some of its rows."""
    from threadpoolctl import threadpool_limits

    rows = study.endpoints
    labels, _ = rows.cells(study.bootstrap.unit)
    arms = {}
    with threadpool_limits(limits=1):
        for arch, own in rows.by_arch().items():
            there = rows.arch == arch
            fitted = fit_architecture(
                arch,
                own,
                study.law,
                with_starts(study).settings,
                n_cells=len(np.unique(labels[there])),
                labels=labels[there],
            )
            # the study's own fit is the one that everything is compared with
            fitted = replace(fitted, result=study[arch])
            arms[arch] = Arm(arch=arch, study=study, fitted=fitted, rows=there)
    return arms


def put(study: Study, fits: Mapping[str, Without]) -> Study:
    """Return the study with other point fits.

    Raises
    ------
    FitError
        If one of them does not exist.
    """
    for one in fits.values():
        if one.result is None:
            raise FitError(one.reason)
    results = {arch: one.result for arch, one in fits.items() if one.result is not None}
    return replace(study, fits={**study.fits, **results}, draws=None, jackknife=None, wild=None)
