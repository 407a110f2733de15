"""Scaling laws. A law is its formula.

Which one?

==================  ==============================================  ====================================================
law                 formula                                         use it when
==================  ==============================================  ====================================================
``sparse-additive``  ``E + A*(1-S)**b*F**-a + K*D**-c``              sparse (MoE) models; F is measured FLOPs per token
``additive``         ``E + A*F**-a + K*D**-c``                       dense models with measured FLOPs per token
``chinchilla``       ``E + A*N**-alpha + B*D**-beta``                dense models known by their parameter count
``power-c``          ``E + A*C**-alpha``                             one run per budget; loss and budget questions only
==================  ==============================================  ====================================================

Any other sum of a floor and amplitude-times-power terms is a law too: pass the formula where a name is expected.
"""

from __future__ import annotations

from smelt_scaling.errors import UsageError
from smelt_scaling.laws.additive import AdditiveLaw, LogTerm
from smelt_scaling.laws.repeated import REPEAT_CONSTANT, effective_amount
from smelt_scaling.laws.surface import Surface

__all__ = ["LAWS", "REPEAT_CONSTANT", "AdditiveLaw", "LogTerm", "Surface", "effective_amount", "get_law"]

#: Named laws, one line each.
LAWS: dict[str, AdditiveLaw] = {
    law.name: law
    for law in (
        AdditiveLaw("sparse-additive", "E + A*(1-S)**b*F**-a + K*D**-c"),
        AdditiveLaw("additive", "E + A*F**-a + K*D**-c"),
        AdditiveLaw("chinchilla", "E + A*N**-alpha + B*D**-beta"),
        AdditiveLaw("power-c", "E + A*C**-alpha"),
    )
}


def get_law(law: str | AdditiveLaw) -> AdditiveLaw:
    """Return a law by name, or build one from a formula.

    Raises
    ------
    UsageError
        If the name is unknown or the formula malformed.

    Examples
    --------
    >>> get_law("chinchilla").formula
    'E + A*N**-alpha + B*D**-beta'
    >>> get_law("E + A*N**-a + B*D**-a").parameters
    ('E', 'A', 'B', 'a')
    """
    if isinstance(law, AdditiveLaw):
        return law
    if law in LAWS:
        return LAWS[law]
    if "+" not in law:
        raise UsageError(
            f"law {law!r} is unknown; named laws: {', '.join(LAWS)}; "
            f"or give a formula such as {LAWS['additive'].formula!r}"
        )
    return AdditiveLaw(law, law)
