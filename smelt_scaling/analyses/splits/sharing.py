"""Whether parts share the exponents of the whole: cells left out, predicted with them and with those of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.splits.fits import fit_parts, predicted, rows_of
from smelt_scaling.analyses.view import Side
from smelt_scaling.errors import FitError
from smelt_scaling.fitting import fit_architecture
from smelt_scaling.resampling import Draws, refit
from smelt_scaling.study import Study

__all__ = ["holm", "sharing_rows", "sign_flip"]

Array = NDArray[np.float64]

#: Sign patterns that are all tried; of more labels as many are drawn.
EXACT = 12
#: Differences of noise-free losses are rounding.
ROUNDING = 1e-12


def sharing_rows(
    study: Study, sides: tuple[Side, ...], losses: dict[str, Array], column: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return what exponents of their own gain each part, out of fold.

    Each label is left out in turn, exponents and amplitudes are fitted to the others, and its losses are predicted. The
    P-value is that of flipping the signs of the labels' differences, adjusted by Holm for all rows of the table.

    Parameters
    ----------
    study : Study
        With leave-one-label-out fits.
    sides : tuple of Side
        Architectures.
    losses : mapping of str to array (G, n)
        Losses of the parts.
    column, names
        What a part is called, and the parts.
    """
    rows: list[dict[str, Any]] = []
    for side in sides:
        left_out = side.jackknife
        if left_out is None:
            continue
        loss = losses[side.arch]
        shared = fit_parts(study, side, loss, left_out)
        seen = rows_of(study, side.arch)
        held = np.searchsorted(np.array(left_out.labels), seen.labels)
        # a label of another architecture, left out here, leaves out nothing
        number = np.argmin(left_out.counts, axis=0)[held]
        assert shared.drawn is not None
        at = predicted(shared.drawn, seen.columns)
        for g, name in enumerate(names):
            miss = np.abs(np.log(at[number, g, np.arange(len(number))]) - np.log(loss[g]))
            own = _own_exponents(study, side, loss[g], left_out, held, number)
            if own is None:
                continue
            free, exponents = own
            known = np.isfinite(miss) & np.isfinite(free)
            if not known.any():  # no fold tells floor and amplitudes apart
                continue
            count = np.bincount(held[known], minlength=len(left_out.labels))
            total = np.bincount(held[known], (miss - free)[known], minlength=len(count))
            better = np.asarray(total[count > 0] / count[count > 0], dtype=np.float64)
            better[np.abs(better) < ROUNDING] = 0.0
            rows.append(
                {
                    "arch": side.arch,
                    column: name,
                    "error_shared": float(np.mean(miss[known])),
                    "error_own": float(np.mean(free[known])),
                    "labels": len(better),
                    "labels_own_better": int((better > 0).sum()),
                    "p_value": sign_flip(better, study.bootstrap.seed),
                    **{f"own_{key}": value for key, value in exponents.items()},
                }
            )
    for row, adjusted in zip(rows, holm([row["p_value"] for row in rows]), strict=True):
        row["p_value_holm"] = adjusted
    return rows


def _own_exponents(
    study: Study, side: Side, loss: Array, left_out: Draws, held: NDArray[np.intp], number: NDArray[np.intp]
) -> tuple[Array, dict[str, float]] | None:
    """Return |ln(predicted / observed)| of every row left out, with exponents of the part's own, and those."""
    seen = rows_of(study, side.arch)
    there = np.isfinite(loss)
    subset = seen.endpoints.select(there)
    rows = replace(subset, columns={**subset.columns, "loss": loss[there]}, tiers=subset.tiers)
    settings = replace(study.settings, drop_outliers=False)
    try:
        fitted = fit_architecture(
            side.arch, rows, study.law, settings, n_cells=len(left_out.labels), labels=seen.labels[there]
        )
    except FitError:  # fewer losses than parameters
        return None
    found = refit(fitted, held[there], left_out.counts, left_out.labels, settings)
    miss = np.full(len(loss), np.nan)
    at = predicted(found.surface, {name: values[there] for name, values in seen.columns.items()})
    miss[there] = np.abs(np.log(at[number[there], np.arange(int(there.sum()))]) - np.log(loss[there]))
    law = study.law
    return miss, {name: float(fitted.result.surface[name]) for name in law.exponents}


def sign_flip(differences: Array, seed: int = 0) -> float:
    """Return the one-sided P-value of a positive mean if every difference were as likely to have the other sign.

    Examples
    --------
    >>> sign_flip(np.array([1.0, 2.0, 3.0])), sign_flip(np.array([-1.0, 2.0, 3.0])), sign_flip(np.zeros(3))
    (0.125, 0.25, 1.0)
    """
    size = len(differences)
    if size <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=size)))
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, size=(2**EXACT - 1, size))
        signs = np.concatenate([np.ones((1, size)), 2.0 * drawn - 1])
    reached = signs @ differences
    return float(np.mean(reached >= differences.sum() - 1e-12 * np.abs(differences).sum()))


def holm(values: list[float]) -> list[float]:
    """Return Holm's adjusted P-values (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    worst = 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = worst
    return adjusted.tolist()
