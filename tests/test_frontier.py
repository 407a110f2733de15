"""The frontier against published allocations, gains and crossings, and against a numeric minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smelt_scaling.analyses import allocate, ce_gain, notes_of
from smelt_scaling.analyses.turning import turnover
from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import LAWS, Surface, get_law
from smelt_scaling.papers import load_paper

# Typed here, not read from the package: the published coefficients of the survey, E A K a b c.
BASE = Surface(law=LAWS["sparse-additive"], coef=[1.4439, 1.366e3, 1.975e6, 0.3703, 0.1530, 0.6594])
SMELT = Surface(law=LAWS["sparse-additive"], coef=[1.4493, 1.963e3, 5.264e6, 0.3892, 0.1460, 0.7011])
TIERS = (0.846, 0.947, 0.969)

# Sparsity, budget, loss of the target, budget of the reference, multiplier, gain; the last digit is rounded.
GAINS = [
    (0.846, 1e20, 1.97181062, 1.109973e20, 1.10997, 0.09908),
    (0.846, 1e21, 1.74294748, 1.219451e21, 1.21945, 0.17996),
    (0.846, 1e22, 1.61432792, 1.306062e22, 1.30606, 0.23434),
    (0.947, 1e20, 1.92202037, 1.084776e20, 1.08478, 0.07815),
    (0.947, 1e21, 1.71496569, 1.187638e21, 1.18764, 0.15799),
    (0.947, 1e22, 1.59860235, 1.264333e22, 1.26433, 0.20907),
    (0.969, 1e20, 1.89880823, 1.072136e20, 1.07214, 0.06728),
    (0.969, 1e21, 1.70192062, 1.171598e21, 1.17160, 0.14646),
    (0.969, 1e22, 1.59127110, 1.243200e22, 1.24320, 0.19562),
]

# Sparsity, zero crossings, budget and size of the peak, first budget at which the reverse gain is undefined.
TURNS = [
    (0.846, (1.0908e19, 1.8243e25), 8.1948e22, 0.25320),
    (0.947, (1.6889e19, 8.8302e24), 5.4924e22, 0.22227),
    (0.969, (2.1262e19, 6.0516e24), 4.4915e22, 0.20623),
]
NOMINAL_TURNS = [
    (0.85, (1.1023e19, 1.7925e25)),
    (0.95, (1.7311e19, 8.4789e24)),
    (0.97, (2.1569e19, 5.9115e24)),
]

# E A B alpha beta; a set given in logarithms is exponentiated here.
CHINCHILLA = {
    "rounded": [1.69, 406.4, 410.7, 0.34, 0.28],
    "tex": [*np.exp([0.5267228, 6.0073404, 6.0179186]), 0.33917084, 0.2849083],
    "epoch": [1.81686, 482.00572, 2085.43420, 0.34781, 0.36585],
}
ALLOCATIONS = [
    ("rounded", 1e21, 1.8242e9, 9.1363e10, 50.08, 2.328883),
    ("rounded", 5.76e23, 3.2190e10, 2.9823e12, 92.65, 1.930748),
    ("rounded", 3.8e25, 2.13484e11, 2.966650e13, 139.0, 1.816533),
    ("tex", 1e21, 2.2170e9, 7.5178e10, 33.91, 2.295491),
    ("tex", 5.76e23, 4.0361e10, 2.3785e12, 58.93, 1.918412),
    ("epoch", 1e18, 8.0619e7, 2.0673e9, 25.64, 3.489115),
    ("epoch", 1e21, 2.7820e9, 5.9909e10, 21.53, 2.304837),
    ("epoch", 5.76e23, 7.2353e10, 1.3268e12, 18.34, 1.973973),
]


def chinchilla(name: str) -> Surface:
    return Surface(law=LAWS["chinchilla"], coef=CHINCHILLA[name])


@pytest.mark.parametrize(("S", "C", "loss", "C_ref", "multiplier", "gain"), GAINS)
def test_gain_table_to_its_last_digit(
    S: float, C: float, loss: float, C_ref: float, multiplier: float, gain: float
) -> None:
    """Nine published gains: gain and multiplier to 1e-5 (typed digits), loss to 1e-8, C_ref to 7 digits."""
    target, reference = Frontier(SMELT), Frontier(BASE)
    assert float(target.loss(C, S)) == pytest.approx(loss, abs=1e-8)
    assert float(reference.budget_for(target.loss(C, S), S)) == pytest.approx(C_ref, rel=5e-7)
    m = float(log_multiplier(target, reference, np.log(C), S))
    assert np.exp(m) == pytest.approx(multiplier, abs=1e-5)
    assert -np.expm1(-m) == pytest.approx(gain, abs=1e-5)


def test_gain_of_the_paper_needs_no_data() -> None:
    """The published table through the analysis: default sparsities, one per tier, and the caveats beside it."""
    frame = ce_gain(load_paper("smelt"), [1e20, 1e21, 1e22])
    typed = {(C, S): gain for S, C, _, _, _, gain in GAINS}
    assert {(r.budget, r.sparsity): r.gain for r in frame.itertuples()} == pytest.approx(typed, abs=1e-5)
    assert frame["extrapolated"].tolist() == [False] * 6 + [True] * 3
    assert (frame["target"] + frame["reference"]).unique().tolist() == ["smeltbaseline"]
    (code,) = {s["code"] for support in frame["support"][6:] for s in support}
    assert code == "out_C"
    (factor,) = {s["factor"] for s in frame["support"][6] if s["arch"] == "smelt"}
    assert factor == pytest.approx(1e22 / 2.2e21)


def test_nominal_sparsities_are_another_table() -> None:
    """At .85/.95/.97 the 1e21 row is 17.94/15.68/14.57 %, so S is an explicit argument (typed to .01 points)."""
    frame = ce_gain(load_paper("smelt"), 1e21, sparsities=[0.85, 0.95, 0.97])
    assert frame["gain"].tolist() == pytest.approx([0.1794, 0.1568, 0.1457], abs=5e-5)


@pytest.mark.parametrize(("S", "zeros", "peak_budget", "peak_gain"), TURNS)
def test_crossings_and_peaks(
    S: float, zeros: tuple[float, float], peak_budget: float, peak_gain: float
) -> None:
    """Zero crossings and peaks to 1e-4 relative: five typed digits; a flat top locates its budget no better."""
    found = turnover(Frontier(SMELT), Frontier(BASE), S)
    assert found["zero_crossings"] == pytest.approx(zeros, rel=1e-4)
    assert found["peak_budget"] == pytest.approx(peak_budget, rel=1e-4)
    assert found["peak_gain"] == pytest.approx(peak_gain, rel=1e-4)
    assert found["unreachable_from"] is None


@pytest.mark.parametrize(("S", "zeros"), NOMINAL_TURNS)
def test_crossings_at_nominal_sparsity(S: float, zeros: tuple[float, float]) -> None:
    assert turnover(Frontier(SMELT), Frontier(BASE), S)["zero_crossings"] == pytest.approx(zeros, rel=1e-4)


@pytest.mark.parametrize(("S", "edge"), list(zip(TIERS, (2.74e28, 1.76e28, 1.41e28), strict=True)))
def test_reverse_direction_becomes_unreachable(S: float, edge: float) -> None:
    """SMELT's floor is the higher one, so above a budget it never reaches the baseline's loss (3 typed digits).

    The edge is where E + P C^-gamma of the baseline meets SMELT's floor; with P of the closed form written out here
    it is known to rounding, and 40 halvings of a grid step of 0.013 in ln C find it to 1e-14.
    """
    m = log_multiplier(Frontier(BASE), Frontier(SMELT), np.log([edge * 0.99, edge * 1.01]), S)
    assert np.isfinite(m[0])
    assert m[1] == np.inf
    E, A, K, a, b, c = BASE.coef
    Q, s = A * (1 - S) ** b, a + c
    G = (a * Q / (c * K)) ** (1 / s)
    exact = ((Q * G**-a + K * G**c) / (SMELT.coef[0] - E)) ** (s / (a * c))
    assert exact == pytest.approx(edge, rel=3e-3)
    # the floors' difference of 0.0054 holds 13 digits, and 1/gamma = 4.2 of them amplify in the budget
    assert turnover(Frontier(BASE), Frontier(SMELT), S)["unreachable_from"] == pytest.approx(exact, rel=1e-10)


def test_unreachable_rows_hold_no_number() -> None:
    """An unreachable gain is null with its flag, never 100 %; a later, reachable row keeps its number."""
    frame = ce_gain(load_paper("smelt"), [1e29, 1e21], target="baseline", reference="smelt", sparsities=0.846)
    lost, fine = frame.iloc[0], frame.iloc[1]
    assert bool(lost["unreachable"])
    assert frame.loc[0, ["gain", "multiplier", "reference_budget"]].isna().all()
    assert not bool(fine["unreachable"])
    assert fine["gain"] < 0
    assert "unreachable" in {note.code for note in notes_of(frame)}
    assert float(Frontier(SMELT).budget_for(1.4493, 0.846)) == np.inf  # its floor
    assert float(Frontier(SMELT).budget_for(1.0, 0.846)) == np.inf


def test_exponents_and_scales() -> None:
    """gamma to 7 digits; P to its 6 and 5 typed digits."""
    assert float(Frontier(BASE).exponent) == pytest.approx(0.2371330, abs=5e-8)
    assert float(Frontier(SMELT).exponent) == pytest.approx(0.2502688, abs=5e-8)
    assert float(np.exp(Frontier(BASE).log_scale(0.846))) == pytest.approx(29920.2, abs=0.05)
    assert float(np.exp(Frontier(SMELT).log_scale(0.846))) == pytest.approx(52902, abs=0.5)


def test_tokens_per_param_after_rounding() -> None:
    """TPP at 1e21 and nominal sparsity: 56 78 91 and 56 75 86 exactly, and three decimals of the computed ones."""
    frame = allocate(load_paper("smelt"), 1e21, sparsities=[0.85, 0.95, 0.97])
    found = frame["tokens_per_param"].to_numpy()
    assert frame["arch"].tolist() == ["baseline"] * 3 + ["smelt"] * 3
    assert np.round(found).tolist() == [56, 78, 91, 56, 75, 86]
    np.testing.assert_allclose(found, [56.452, 78.246, 91.074, 56.125, 75.325, 86.368], atol=5e-4)


def test_optimum_of_the_survey() -> None:
    """F*, D* and L* at C = 1e21, S = .846, to 7 and 9 typed digits."""
    for surface, flops, tokens, loss in (
        (BASE, 1.034988e10, 9.661945e10, 1.75735308),
        (SMELT, 1.037595e10, 9.637669e10, 1.74294748),
    ):
        best = Frontier(surface).allocate(1e21, 0.846)
        assert float(best.flops_per_token) == pytest.approx(flops, rel=5e-7)
        assert float(best.tokens) == pytest.approx(tokens, rel=5e-7)
        assert float(best.loss) == pytest.approx(loss, abs=5e-9)


@pytest.mark.parametrize(("name", "C", "N", "D", "ratio", "loss"), ALLOCATIONS)
def test_chinchilla_allocations(name: str, C: float, N: float, D: float, ratio: float, loss: float) -> None:
    """N*, D*, D/N and L* of three coefficient sets, to half a unit of the last typed digit."""
    best = Frontier(chinchilla(name)).allocate(C)
    size = float(best.flops_per_token) / 6
    assert size == pytest.approx(N, rel=5e-5)
    assert float(best.tokens) == pytest.approx(D, rel=5e-5)
    assert float(best.tokens) / size == pytest.approx(ratio, rel=3e-4)
    assert float(best.loss) == pytest.approx(loss, abs=5e-7)


def test_chinchilla_exponents_and_points() -> None:
    """The exponent of N* to six digits, and losses of three known models to six decimals."""
    budgets = np.array([1e20, 1e24])
    for name, exponent in (("rounded", 0.451613), ("tex", 0.456526), ("epoch", 0.512639)):
        flops = Frontier(chinchilla(name)).allocate(budgets).flops_per_token
        assert np.log(flops[1] / flops[0]) / np.log(1e4) == pytest.approx(exponent, abs=5e-7)
    loss = chinchilla("rounded").loss(N=np.array([280e9, 70e9, 175e9]), D=np.array([300e9, 1.4e12, 300e9]))
    np.testing.assert_allclose(loss, [1.993258, 1.936645, 2.002288], atol=5e-7)


@pytest.mark.parametrize(
    ("coef", "N", "D", "loss"),
    [
        ([3.169, 215886, 4750, 0.684, 0.439], 220.225e9, 28.75848e12, 3.178630),
        ([2.158, 381773, 4659, 0.71, 0.372], 35.8865e9, 176.4825e12, 2.193603),
    ],
)
def test_published_multimodal_surfaces(coef: list[float], N: float, D: float, loss: float) -> None:
    """Optima at 3.8e25 FLOPs of two published surfaces with very unequal exponents (6 typed digits)."""
    best = Frontier(Surface(law=LAWS["chinchilla"], coef=coef)).allocate(3.8e25)
    assert float(best.flops_per_token) / 6 == pytest.approx(N, rel=3e-6)
    assert float(best.tokens) == pytest.approx(D, rel=3e-6)
    assert float(best.loss) == pytest.approx(loss, abs=5e-7)


@pytest.mark.parametrize(
    ("transformer", "gamma"),
    [((0.252, 0.213), 0.115432), ((0.226, 0.219), 0.111222), ((0.183, 0.227), 0.101320)],
)
def test_published_architecture_exponents(transformer: tuple[float, float], gamma: float) -> None:
    alpha, beta = transformer
    surface = Surface(law=LAWS["chinchilla"], coef=[1.5, 400, 400, alpha, beta])
    assert float(Frontier(surface).exponent) == pytest.approx(gamma, abs=5e-7)


@pytest.mark.parametrize("S", TIERS)
def test_optimality_condition(S: float) -> None:
    """At the optimum both terms fall equally fast: a A' F^-a = c K D^-c, to rounding."""
    for surface in (BASE, SMELT):
        _, A, K, a, b, c = surface.coef
        best = Frontier(surface).allocate(np.geomspace(1e18, 1e26, 9), S)
        size = a * A * (1 - S) ** b * best.flops_per_token**-a
        np.testing.assert_allclose(size, c * K * best.tokens**-c, rtol=1e-12)
        np.testing.assert_allclose(
            best.flops_per_token * best.tokens, np.geomspace(1e18, 1e26, 9), rtol=1e-12
        )


@pytest.mark.parametrize(
    ("law", "coef"),
    [
        ("sparse-additive", BASE.coef),
        ("additive", [1.5, 800, 1e6, 0.35, 0.6]),
        ("chinchilla", CHINCHILLA["epoch"]),
        ("E + A*(F/1e9)**-a + K*D**-0.5", [1.5, 0.9, 3e4, 0.3]),
        ("E + A*N**-a + B*D**-a", [1.8, 500, 1500, 0.35]),
        ("E + A*N_act**-a*C**-g + K*D**-c", [1.4, 900, 1e5, 0.3, 0.5, 0.02]),
    ],
)
def test_closed_form_is_the_numeric_minimum(law: str, coef: list[float]) -> None:
    """Loss to 1e-12, F* to 1e-7 relative (a minimum is flat: a step of 1e-7 changes the loss by 1e-15)."""
    surface = Surface(law=get_law(law), coef=coef)
    S = {"S": 0.947} if "S" in surface.law.columns else {}
    closed, numeric = Frontier(surface), Frontier(surface, numeric=True)
    assert closed.closed_form
    assert not numeric.closed_form
    budgets = np.geomspace(1e17, 1e26, 4)
    exact, found = closed.allocate(budgets, **S), numeric.allocate(budgets, **S)
    np.testing.assert_allclose(found.loss, exact.loss, rtol=1e-12)
    np.testing.assert_allclose(found.flops_per_token, exact.flops_per_token, rtol=1e-7)
    np.testing.assert_allclose(found.tokens, exact.tokens, rtol=1e-7)
    np.testing.assert_allclose(numeric.budget_for(exact.loss, **S), budgets, rtol=1e-7)
    np.testing.assert_allclose(closed.budget_for(exact.loss, **S), budgets, rtol=1e-9)


def test_numeric_gain_equals_closed_form() -> None:
    pair = [Frontier(s, numeric=True) for s in (SMELT, BASE)]
    exact = log_multiplier(Frontier(SMELT), Frontier(BASE), np.log([1e20, 1e22]), 0.947)
    np.testing.assert_allclose(log_multiplier(*pair, np.log([1e20, 1e22]), 0.947), exact, atol=1e-7)
    assert log_multiplier(pair[0], pair[0], np.log(1e21), 0.947) == 0.0


def test_no_budget_overflows() -> None:
    """From 1e-3 to 1e60 FLOPs everything stays finite and F* D* = C, although F**-a * K spans hundreds of decades."""
    budgets = 10.0 ** np.arange(-3, 61, 3)
    with np.errstate(all="raise"):
        for surface in (BASE, SMELT):
            best = Frontier(surface).allocate(budgets, 0.946)
            assert np.isfinite([best.flops_per_token, best.tokens, best.loss]).all()
            np.testing.assert_allclose(best.flops_per_token * best.tokens, budgets, rtol=1e-12)
            assert np.all(np.diff(best.loss) <= 0)
    m = log_multiplier(Frontier(SMELT), Frontier(BASE), np.log(budgets), 0.946)
    assert np.isfinite(m).all()


def spread_out(shape: tuple[int, ...]) -> Surface:
    spread = 1 + 0.01 * np.arange(int(np.prod(shape, dtype=int))).reshape((*shape, 1))
    return Surface(law=BASE.law, coef=BASE.coef * spread)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_draws_are_leading_axes(shape: tuple[int, ...]) -> None:
    """Every result has shape draws + broadcast(budget, S), and equals the point evaluated draw by draw."""
    surface = spread_out(shape)
    frontier = Frontier(surface)
    budgets, S = np.array([[1e20], [1e21]]), np.array(TIERS)
    best = frontier.allocate(budgets, S)
    assert best.loss.shape == best.flops_per_token.shape == best.tokens.shape == (*shape, 2, 3)
    assert frontier.loss(1e21, 0.9).shape == shape
    assert frontier.budget_for(1.9, S).shape == (*shape, 3)
    assert log_multiplier(frontier, frontier, np.log(budgets), S).shape == (*shape, 2, 3)
    assert frontier.exponent.shape == shape
    assert frontier.log_scale(S).shape == (*shape, 3)
    for index in np.ndindex(shape):
        one = Frontier(Surface(law=BASE.law, coef=surface.coef[index]))
        np.testing.assert_allclose(best.loss[index], one.loss(budgets, S), rtol=1e-13)
        np.testing.assert_allclose(frontier.budget_for(1.9, S)[index], one.budget_for(1.9, S), rtol=1e-11)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_numeric_frontier_broadcasts_alike(shape: tuple[int, ...]) -> None:
    """The numeric frontier has the shapes and, to 1e-7, the values of the closed form."""
    closed, numeric = Frontier(spread_out(shape)), Frontier(spread_out(shape), numeric=True)
    budgets, S = np.array([[1e20], [1e21]]), np.array(TIERS[:2])
    exact, found = closed.allocate(budgets, S), numeric.allocate(budgets, S)
    assert found.loss.shape == (*shape, 2, 2)
    np.testing.assert_allclose(found.loss, exact.loss, rtol=1e-12)
    np.testing.assert_allclose(found.flops_per_token, exact.flops_per_token, rtol=1e-7)
    assert numeric.budget_for(1.9, 0.947).shape == shape
    np.testing.assert_allclose(numeric.budget_for(1.9, 0.947), closed.budget_for(1.9, 0.947), rtol=1e-7)


def test_identical_frontiers_give_exactly_zero() -> None:
    m = log_multiplier(Frontier(SMELT), Frontier(SMELT), np.log(10.0 ** np.arange(10, 40)), 0.947)
    assert np.array_equal(m, np.zeros(30))


def test_flops_per_param_converts_between_N_and_F() -> None:
    """A law in N is a law in F = 6 N; another convention moves the budget, not the surface."""
    rounded = chinchilla("rounded")
    E, A, B, alpha, beta = rounded.coef
    in_flops = Surface(law=LAWS["additive"], coef=[E, A * 6**alpha, B, alpha, beta])
    np.testing.assert_allclose(
        Frontier(rounded).allocate(1e21).tokens, Frontier(in_flops).allocate(1e21).tokens, rtol=1e-12
    )
    three = Frontier(rounded, flops_per_param=3.0).allocate(0.5e21)
    np.testing.assert_allclose(three.tokens, Frontier(rounded).allocate(1e21).tokens, rtol=1e-12)


def test_laws_without_an_optimum_say_so() -> None:
    """No interior optimum, no allocation from a law in C, no frontier of a vanished term: one line each."""
    with pytest.raises(FrontierError, match="holds C only"):
        Frontier(Surface(law=LAWS["power-c"], coef=[1.6, 88.32, 0.0941])).allocate(1e21)
    for coef in ([1.5, 800, 1e6, -0.1, 0.6], [1.5, 800, 1e6, 0.3, 0.0], [1.5, 0.0, 1e6, 0.3, 0.6]):
        with pytest.raises(FrontierError, match="no interior optimum") as caught:
            Frontier(Surface(law=LAWS["additive"], coef=coef)).allocate(1e21)
        assert "\n" not in str(caught.value)
    for budget in (0.0, -1e21, np.nan, np.inf):
        with pytest.raises(UsageError, match="must be positive"):
            Frontier(BASE).allocate(budget, 0.9)
    with pytest.raises(UsageError, match="sparsity"):
        Frontier(BASE).allocate(1e21)


def test_law_in_compute_answers_loss_and_budget() -> None:
    """L = 1.6 + 88.32 C^-.0941: 2.5332 and 2.2050 at 1e21 and 1e23; budget_for inverts it."""
    surface = Surface(law=LAWS["power-c"], coef=[1.6, 88.32, 0.0941])
    loss = Frontier(surface).loss([1e21, 1e23])
    np.testing.assert_allclose(loss, [2.5332, 2.2050], atol=5e-5)
    np.testing.assert_allclose(Frontier(surface).budget_for(loss), [1e21, 1e23], rtol=1e-9)


def test_marin_multiplier_identity() -> None:
    """((L_b - E)/(L_v - E))^(1/alpha), independent of C, is the gain of two one-variable laws with common E, alpha."""
    paper = load_paper("marin")
    for L_b, L_v, C, multiplier, gain in (
        (3.5422, 3.52, 3.82e17, 1.129946, 0.1150),
        (3.8104, 3.7542, 2.19e17, 1.315, 0.2394),
        (3.4339, 3.3988, 1.70e18, 1.228, 0.1857),
        (3.1605, 3.1357, 9.00e18, 1.186, 0.1565),
    ):
        surfaces = {
            name: Surface(law=LAWS["power-c"], coef=[1.6, (loss - 1.6) * C**0.0941, 0.0941])
            for name, loss in (("baseline", L_b), ("variant", L_v))
        }
        frame = ce_gain(replace(paper, surfaces=surfaces), [C, 1e21], target="variant", reference="baseline")
        decimals = 5e-4 if C != 3.82e17 else 5e-7
        np.testing.assert_allclose(frame["multiplier"].astype(float), multiplier, atol=decimals)
        np.testing.assert_allclose(frame["gain"].astype(float), gain, atol=5e-5)
    # the first amplitude as published
    assert pytest.approx(87.65286, abs=5e-6) == (3.5422 - 1.6) * 3.82e17**0.0941
