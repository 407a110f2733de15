"""Numbers as people print them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt_scaling.formatting import (
    format_interval,
    format_multiplier,
    format_number,
    format_percent,
    format_quantity,
    format_thousands,
)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.8172, "1.817"),
        (2.0, "2.000"),
        (-0.5, "-0.5000"),
        (9.99996, "10.00"),
        (477.826, "477.8"),
        (12345.6, "12346"),
        (99999.4, "99999"),
        (999999.4, "1.000e6"),
        (1234567.0, "1.235e6"),
        (0.0001, "0.0001000"),
        (0.00001234, "1.234e-5"),
        (0, "0"),
        (math.nan, "n/a"),
        (None, "n/a"),
        (-math.inf, "-inf"),
    ],
)
def test_numbers(x: float | None, text: str) -> None:
    assert format_number(x) == text


@pytest.mark.parametrize(
    ("x", "suffix", "text"),
    [
        (1e21, False, "1.0e21"),
        (2.156e11, False, "2.16e11"),
        (4.5e20, False, "4.5e20"),
        (9.999e20, False, "1.0e21"),
        (0.0, False, "0"),
        (144, False, "144"),
        (1.6e9, True, "1.6B"),
        (1e8, True, "100M"),
        (999_999_999, True, "1B"),
        (1.2e12, True, "1.2T"),
        (1e15, True, "1.0e15"),
        (-2.5e6, True, "-2.5M"),
        (None, True, "n/a"),
    ],
)
def test_quantities(x: float | None, suffix: bool, text: str) -> None:
    assert format_quantity(x, suffix=suffix) == text


def test_percent() -> None:
    assert format_percent(0.2643) == "26.4 %"
    assert format_percent(-0.0312) == "-3.1 %"
    assert format_percent(-0.0004) == "0.0 %"
    assert format_percent(0.05, sign=True) == "+5.0 %"
    assert format_percent(0.0001, sign=True) == "0.0 %"
    assert format_percent(None) == "n/a"


def test_multiplier_and_thousands() -> None:
    assert format_multiplier(1.3587) == "×1.36"
    assert format_multiplier(math.nan) == "n/a"
    assert format_thousands(215605043200) == "215,605,043,200"
    assert format_thousands(None) == "n/a"


@pytest.mark.parametrize(
    ("lo", "hi", "options", "text"),
    [
        (0.08, 0.28, {}, "[8.0 %, 28.0 %]"),
        (-0.004, 0.096, {}, "[-0.4 %, 9.6 %]"),  # an end below zero never prints as zero
        (-0.0004, 0.00003, {}, "[-0.04 %, 0.003 %]"),
        (-1e-9, 0.0, {}, "[0.0000 %, 0.0 %]"),
        (0.08, 0.28, {"digits": 0}, "[8 %, 28 %]"),
        (-0.031, 0.28, {"digits": 1}, "[-3.1 %, 28.0 %]"),
        (0.08, None, {"hi_unreachable": True}, "[8.0 %, unreachable]"),
        (1.09, math.inf, {"kind": "multiplier"}, "[×1.09, unreachable]"),
        (None, None, {"lo_unreachable": True, "hi_unreachable": True}, "unreachable"),
        (None, None, {}, "n/a"),
        (0.08, None, {}, "[8.0 %, n/a]"),
        (1.769, 1.871, {"kind": "number"}, "[1.769, 1.871]"),
        (1e21, 2.156e21, {"kind": "quantity"}, "[1.0e21, 2.16e21]"),
    ],
)
def test_intervals(lo: float | None, hi: float | None, options: dict[str, object], text: str) -> None:
    assert format_interval(lo, hi, **options) == text  # type: ignore[arg-type]


def test_an_unknown_kind_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="unknown kind of interval 'odds'"):
        format_interval(0.1, 0.2, "odds")  # type: ignore[arg-type]


@given(st.floats(min_value=-1e30, max_value=1e30).filter(lambda x: x == 0 or abs(x) > 1e-30))
def test_printed_numbers_read_back_to_their_digits(x: float) -> None:
    # half a unit of the fourth (third) significant digit, plus rounding of the comparison itself
    assert float(format_number(x)) == pytest.approx(x, rel=5.01e-4)
    assert float(format_quantity(x)) == pytest.approx(x, rel=5.01e-3)
