"""What a law says under every count of parameters that a table holds.

With or without embeddings, all experts or the active ones: the same runs give other exponents, and another split of
the budget, so a law in parameters has to say which count it took.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from smelt_scaling._derive import FLOPS_PER_PARAM
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, merge_notes, warning
from smelt_scaling.fitting.estimate import Fitted, fit_architecture
from smelt_scaling.fitting.result import Convention
from smelt_scaling.fitting.settings import FitSettings
from smelt_scaling.laws import AdditiveLaw

__all__ = ["COUNTS", "size_and_token_exponents", "with_conventions"]

#: Columns that count parameters.
COUNTS = ("N", "N_act", "N_no_emb")
#: A product by 6 may differ from the column in its last digits.
SAME = 1e-9


def with_conventions(
    fitted: Fitted, endpoints: Endpoints, settings: FitSettings, *, resample: str | None = None
) -> Fitted:
    """Return a fit that also knows its exponents under the other counts of parameters in the table.

    Parameters
    ----------
    fitted : Fitted
        The fit of one architecture.
    endpoints : Endpoints
        The endpoints that it was fitted to.
    settings, resample
        Those of the fit.
    """
    law, arch = fitted.problem.law, fitted.result.arch
    names = size_and_token_exponents(law)
    size, used = _size_and_count(law, endpoints)
    others = [
        name
        for name in COUNTS
        if name in endpoints and used and not _equal(endpoints[name], endpoints[used], SAME)
    ]
    if names is None or not others or set(names) & set(fitted.result.unidentified):
        return fitted
    if set(fitted.result.pinned) & _of_size(law, names[0]):
        return fitted  # a value that is held for one count says nothing of another
    found = [_convention(fitted, used, names, own=True)]
    for name in others:
        columns = {**endpoints.columns, size: endpoints[size] / endpoints[used] * endpoints[name]}
        recounted = Endpoints(columns=columns, source=endpoints.source, tiers=endpoints.tiers)
        labels = recounted.cells(resample)[0]
        other = fit_architecture(arch, recounted, law, settings, n_cells=fitted.result.n_cells, labels=labels)
        if not set(names) & set(other.result.unidentified):  # a count may not vary at all
            found.append(_convention(other, name, names, own=False))
    if len(found) == 1:
        return fitted
    notes = merge_notes(fitted.result.notes, [_note(arch, found)])
    return replace(fitted, result=replace(fitted.result, conventions=tuple(found), notes=notes))


def size_and_token_exponents(law: AdditiveLaw) -> tuple[str, str] | None:
    """Return the names of the exponents of size and of tokens; None unless each has a term of its own."""
    kinds = {"F": "size", "N": "size", "N_act": "size", "D": "tokens"}
    of: dict[str, list[tuple[int, str]]] = {"size": [], "tokens": []}
    for place, term in enumerate(law.parsed.terms):
        for power in term.powers:
            kind = kinds.get("*".join(power.feature.names))
            if kind and isinstance(power.exponent, str):
                of[kind].append((place, power.exponent))
    if len(of["size"]) != 1 or len(of["tokens"]) != 1 or of["size"][0][0] == of["tokens"][0][0]:
        return None
    return of["size"][0][1], of["tokens"][0][1]


def _of_size(law: AdditiveLaw, exponent: str) -> set[str]:
    """Return the parameters of the term in size: its amplitude depends on the unit, its exponent on the count."""
    powers = {term.amplitude: [power.exponent for power in term.powers] for term in law.parsed.terms}
    return {exponent, *(amplitude for amplitude, own in powers.items() if exponent in own)}


def _size_and_count(law: AdditiveLaw, endpoints: Endpoints) -> tuple[str, str]:
    """Return the law's column of size and the count of parameters in it; empty where F is no multiple of one."""
    size = next((name for name in ("N", "N_act", "F") if name in law.columns), "")
    if size != "F":
        return size, size
    multiples = (
        name
        for name in COUNTS
        if name in endpoints and _equal(endpoints["F"], FLOPS_PER_PARAM * endpoints[name], SAME)
    )
    return size, next(multiples, "")


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    return bool(np.allclose(one, other, rtol=tolerance, atol=0.0))


def _convention(fitted: Fitted, name: str, exponents: tuple[str, str], *, own: bool) -> Convention:
    coefficients: Mapping[str, float] = fitted.result.surface.coefficients
    alpha, beta = (coefficients[exponent] for exponent in exponents)
    return Convention(
        parameters=name,
        used=own,
        alpha=alpha,
        beta=beta,
        E=coefficients[fitted.problem.law.floor],
        allocation=beta / (alpha + beta),
        certified=fitted.result.certificate.certified,
    )


def _note(arch: str, found: list[Convention]) -> Note:
    told = ", ".join(f"{one.allocation:.3g} by {one.parameters}" for one in found[1:])
    message = (
        f"{arch}: parameters are counted by column {found[0].parameters}, which gives "
        f"N* ~ C^{found[0].allocation:.3g}; "
        f"the table holds other counts: {told}"
    )
    return warning("parameter_count", message, len(found))
