"""Held parameters: from what is asked for to settings, and whether they belong to the evaluation of the losses."""

from __future__ import annotations

from collections.abc import Mapping

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, UsageError
from smelt_scaling.fitting.settings import FitSettings

__all__ = ["Pin", "Pins", "require_own_evaluation", "settle_pins"]

#: A held value, alone or with the evaluation set that it belongs to.
Pin = float | tuple[float, str]
#: Parameter -> pin for every architecture, or architecture -> parameter -> pin.
Pins = Mapping[str, Pin | Mapping[str, Pin]]


def settle_pins(
    pins: Pins | None, archs: tuple[str, ...]
) -> tuple[dict[str, dict[str, float]] | None, dict[str, dict[str, str]] | None]:
    """Return architecture ("" for all) -> parameter -> value, and the same of the evaluation sets that are named.

    Raises
    ------
    UsageError
        If an architecture is not there, or a pin is neither a number nor a number with a name.

    Examples
    --------
    >>> settle_pins({"E": (1.6, "paloma/macro"), "ours": {"alpha": 0.09}}, ("base", "ours"))
    ({'': {'E': 1.6}, 'ours': {'alpha': 0.09}}, {'': {'E': 'paloma/macro'}})
    """
    values: dict[str, dict[str, float]] = {}
    tags: dict[str, dict[str, str]] = {}
    for key, given in (pins or {}).items():
        arch, own = (key, given) if isinstance(given, Mapping) else ("", {key: given})
        if arch and arch not in archs:
            raise UsageError(f"pin {arch}: no such architecture; there are {', '.join(archs)}")
        for name, pin in own.items():
            value, tag = pin if isinstance(pin, tuple) and len(pin) == 2 else (pin, "")
            try:
                values.setdefault(arch, {})[name] = float(value)
            except (TypeError, ValueError):
                raise UsageError(
                    f"pin {name}={pin!r}: must be a number, or a number with the name of its evaluation set"
                ) from None
            if tag:
                tags.setdefault(arch, {})[name] = str(tag)
    return values or None, tags or None


def require_own_evaluation(endpoints: Endpoints, settings: FitSettings) -> None:
    """Refuse a value that belongs to another evaluation than the losses.

    Raises
    ------
    DataError
        Naming the pin, its evaluation set and that of the table.
    """
    for arch, rows in endpoints.by_arch().items():
        pins, sets = settings.pins_of(arch), rows.measured_on.get("eval_set", ())
        for name, tag in settings.pin_tags_of(arch).items():
            if sets and sets != (tag,):
                raise DataError(
                    f"{endpoints.source}: column eval_set is {', '.join(sets)} for {arch}, and the pin "
                    f"{name} = {pins[name]:g} belongs to {tag}: a value holds for its own evaluation only; "
                    f"pin that of {sets[0]}, or fit the losses of {tag}"
                )
