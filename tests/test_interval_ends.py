"""Ends of intervals: their Monte-Carlo error against repeated draws, and envelopes that hold for all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from smelt_scaling import ce_gain, fit
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import end_errors, percentile_interval, simultaneous_interval

LEVEL = 0.95


def test_the_monte_carlo_error_is_the_scatter_of_ends_over_fresh_draws() -> None:
    """400 sets of 2000 normal draws: the scatter of their ends, and the errors each set states of its own."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((2000, 400))
    found = percentile_interval(draws, LEVEL)
    stated = end_errors(draws, LEVEL)
    assert found is not None
    assert stated is not None
    for end, error in zip(found, stated, strict=True):
        # the scatter of 400 ends is known to 1/sqrt(800) = 3.5 %; theory: sqrt(p (1 - p) / B) / density
        theory = np.sqrt(0.025 * 0.975 / 2000) / stats.norm.pdf(stats.norm.ppf(0.025))
        assert end.std() == pytest.approx(theory, rel=0.11)
        assert np.median(error) == pytest.approx(theory, rel=0.11)


def test_the_error_is_infinite_where_the_end_is_unreachable() -> None:
    draws = np.concatenate([np.full(100, np.inf), np.arange(1900.0)])
    lo, hi = end_errors(draws, LEVEL) or (np.nan, np.nan)
    assert np.isfinite(lo)
    assert not np.isfinite(hi)


@pytest.mark.parametrize("columns", [1, 3, 9])
def test_independent_columns_widen_as_the_product_of_their_levels(columns: int) -> None:
    """Of independent columns each must hold level**(1/columns), so that all hold level."""
    draws = np.random.default_rng(1).standard_normal((20_000, columns))
    lo, hi = simultaneous_interval(draws, LEVEL) or (np.nan, np.nan)
    each = LEVEL ** (1 / columns)
    expected = stats.norm.ppf(0.5 + each / 2)
    # an order statistic that far out scatters by sqrt(p (1 - p) / B) / density, below 0.03 here: four of them
    np.testing.assert_allclose(hi, expected, atol=0.12)
    np.testing.assert_allclose(lo, -expected, atol=0.12)
    inside = ((draws >= lo) & (draws <= hi)).all(axis=1).mean()
    assert LEVEL <= inside < LEVEL + 0.001 * columns


def test_one_column_is_the_pointwise_interval() -> None:
    """The same rank, but for the count of draws at the ends themselves: k = 51 of 2000, not 50."""
    draws = np.random.default_rng(2).standard_normal((2000, 1))
    lo, hi = simultaneous_interval(draws, LEVEL) or (np.nan, np.nan)
    ordered = np.sort(draws[:, 0])
    assert (lo[0], hi[0]) == (ordered[50], ordered[1949])


def test_infinite_draws_rank_highest() -> None:
    draws = np.stack([np.arange(2000.0), np.arange(2000.0)], axis=1)
    draws[1900:, 1] = np.inf
    _, hi = simultaneous_interval(draws, LEVEL) or (np.nan, np.array([np.nan, np.nan]))
    assert np.isfinite(hi[0])
    assert np.isinf(hi[1])


def test_too_few_draws_have_neither() -> None:
    assert simultaneous_interval(np.zeros((20, 2)), LEVEL) is None
    assert end_errors(np.zeros((20, 2)), LEVEL) is None


def test_a_table_of_gains_carries_both() -> None:
    study = fit(example_endpoints(), bootstrap=400, seed=0)
    table = ce_gain(study, [1e20, 1e21])
    assert (table["gain_together_lo"] <= table["gain_lo"]).all()
    assert (table["gain_together_hi"] >= table["gain_hi"]).all()
    assert (table["gain_lo_error"] > 0).all()
    again = ce_gain(fit(example_endpoints(), bootstrap=400, seed=1), [1e20, 1e21])
    # two independent sets differ by about sqrt(2) errors; six would be a wrong error (12 ends)
    apart = np.abs(table["gain_lo"] - again["gain_lo"]) / np.hypot(
        table["gain_lo_error"], again["gain_lo_error"]
    )
    assert apart.max() < 5
    exact = ce_gain(study, [1e20], interval="jackknife-t")
    assert "gain_together_lo" not in exact
