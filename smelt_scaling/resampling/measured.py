"""What nominal 95 % intervals cover where it is less than that: the figures that notes name.

Measured in simulated worlds that obey the law, by quantity: coefficients, exponents, predicted losses, optimal splits
and gains of two architectures. `benchmarks/coverage.py` measures them, and a test holds these to its record.
"""

from __future__ import annotations

__all__ = ["COVERAGE", "coverage_words"]

#: Choice -> (lowest, highest) coverage of a quantity, percent.
COVERAGE = {
    "delta inf": (88, 98),
    "delta auto": (88, 98),
    "jackknife-t": (89, 96),
    "wild-cr3": (86, 95),
}


def coverage_words(choice: str) -> str:
    """Return the coverage of a choice as the end of a sentence.

    Examples
    --------
    >>> coverage_words("wild-cr3").startswith("cover ")
    True
    """
    low, high = COVERAGE[choice]
    return f"cover {low} to {high} % at nominal 95 % in simulated worlds that obey the law, depending on the quantity"
