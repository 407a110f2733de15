"""What stands beside a gain: forced pairs and losses per byte, the noise of repeats, wall-clock time.

Numbers of cases are those of `test_cases`. Expected values are closed forms written out here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.optimize import brentq

from smelt_scaling import (
    Endpoints,
    Frontier,
    Surface,
    allocate,
    ce_gain,
    example_endpoints,
    fit,
    get_law,
    load_study,
    notes_of,
    predict,
    show_table,
)
from smelt_scaling.analyses.throughput import throughput_of
from smelt_scaling.cli import run
from smelt_scaling.errors import DataError, Note

RUNS = example_endpoints()
FRAME = RUNS.to_frame().drop(columns="source")
TARGET = FRAME["arch"] == "smelt"
ASKED: dict[str, Any] = {"target": "smelt", "reference": "baseline", "sparsities": 0.947}


def study(
    bootstrap: int = 0, *, units: dict[str, str] | None = None, law: str = "sparse-additive", **columns: Any
) -> Any:
    frame = FRAME.assign(**columns)
    return fit(Endpoints.from_frame(frame, source="runs.csv", units=units), law, bootstrap=bootstrap)


@cache
def plain(bootstrap: int = 0) -> Any:
    """The runs as they are."""
    return study(bootstrap)


def note(notes: Any, code: str) -> Note:
    (found,) = [one for one in notes if one.code == code]
    return found


def codes(frame: pd.DataFrame) -> set[str]:
    return {one.code for one in notes_of(frame)}


# -- 34: losses that are not comparable --------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["tokenizer", "eval_set", "domain"])
def test_case_34b_forced(column: str) -> None:
    """The number is that of the same losses under one name; every row, the title and a warning say what it is."""
    apart = study(**{column: np.where(TARGET, "v1", "v2")})
    with pytest.raises(DataError, match="add --force to see the number marked"):
        ce_gain(apart, 1e21, **ASKED)
    frame = ce_gain(apart, 1e21, **ASKED, force=True)
    assert frame["gain"].tolist() == ce_gain(plain(), 1e21, **ASKED)["gain"].tolist()
    assert frame["forced"].tolist() == [column]
    found = note(notes_of(frame), "forced_comparison")
    assert found.severity == "warning"
    assert f"{column} (v1 of smelt, v2 of baseline)" in found.message
    for form in ("table", "md", "latex"):
        title = show_table(frame, form).replace("\\_", "_")
        assert f"FORCED, NOT COMPARABLE ({column} differs)" in title
    assert "forced" in show_table(frame, "csv").splitlines()[0].split(",")
    assert json.loads(show_table(frame, "json"))["rows"][0]["forced"] == column
    # force adds nothing where nothing differs
    assert "forced" not in ce_gain(plain(), 1e21, **ASKED, force=True).columns


def test_case_34c_forced_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study(tokenizer=FRAME["arch"]).save("s")
    asked = ["ce-gain", "--study", "s", "-b", "1e21", "--sparsity", "0.947"]
    assert run(asked) == 3
    capsys.readouterr()
    assert run([*asked, "--force", "-o", "out"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("FORCED, NOT COMPARABLE (tokenizer differs)")
    assert "warning [forced_comparison]" in said.err
    assert pq.read_table("out/ce-gain.parquet")["forced"].to_pylist() == ["tokenizer"]


BYTES = 4.2  # per token
BPB = FRAME["loss"] / np.log(2) / BYTES


def test_case_34d_bits_per_byte_compare_across_tokenizers(tmp_path: Path) -> None:
    """A loss times a constant has the same gain: bits per byte are nats per token / (ln 2 x bytes per token)."""
    named = np.where(TARGET, "llama3", "gpt-neox-50k")
    per_byte = study(units={"loss": "bpb"}, loss=BPB, tokenizer=named)
    frame = ce_gain(per_byte, [1e20, 1e21], **ASKED)
    # two optima of one objective, each certified to about 1e-9 of it
    assert frame["gain"].tolist() == pytest.approx(
        ce_gain(plain(), [1e20, 1e21], **ASKED)["gain"].tolist(), abs=1e-6
    )
    assert "incomparable_losses" not in {one.code for one in per_byte.all_notes}
    assert frame.attrs["settings"]["loss_unit"] == "bits/byte"
    assert "loss in bits/byte" in " ".join(show_table(frame).split())
    assert "in bits/byte" in show_table(predict(per_byte, {"F": 1e9, "D": 1e11, "S": 0.9}))
    assert "loss in bits/byte" in " ".join(show_table(allocate(per_byte, 1e20)).split())
    assert "bits/byte" in per_byte.summary()
    assert per_byte["smelt"].loss_unit == "bits/byte"
    loaded = load_study(per_byte.save(tmp_path / "s"))
    assert loaded["smelt"].loss_unit == "bits/byte"
    assert ce_gain(loaded, 1e21, **ASKED)["gain"].tolist() == frame["gain"].tolist()[1:]
    # what a table says of itself is read back
    again = Endpoints.from_frame(per_byte.endpoints.to_frame())
    assert (again.loss_unit, again.digest) == ("bits/byte", per_byte.endpoints.digest)


def test_case_34e_what_bits_per_byte_do_not_settle() -> None:
    """Another evaluation set is another text; nats beside bits are two units; one law has one tokenizer."""
    per_byte = {"units": {"loss": "bpb"}, "loss": BPB}
    with pytest.raises(DataError, match="eval_set differs"):
        ce_gain(study(**per_byte, eval_set=np.where(TARGET, "v1", "v2")), 1e21, **ASKED)
    half = study(loss=FRAME["loss"].where(TARGET, BPB), loss_unit=np.where(TARGET, "", "bits/byte"))
    assert note(half.notes, "incomparable_losses").message.startswith("losses are of different loss_unit")
    for force in (False, True):
        with pytest.raises(DataError, match="numbers of two units have no gain"):
            ce_gain(half, 1e21, **ASKED, force=force)
    with pytest.raises(DataError, match="column tokenizer, 2 tokenizers of baseline"):
        study(**per_byte, tokenizer=["x", "y"] * 72)
    with pytest.raises(DataError, match="column loss_unit, 2 units of the loss of baseline"):
        study(loss_unit=["nats/token", "bits/byte"] * 72)


@pytest.mark.parametrize(
    ("unit", "column", "says"),
    [
        ("bpb", "nats/token", "144 rows (first: 1) nats/token, against --unit loss=bpb"),
        ("ppl", "bits/byte", "144 rows (first: 1) bits/byte, against --unit loss=ppl"),
        (None, "bits", "144 rows (first: 1) 'bits': a loss is kept in nats/token or bits/byte"),
    ],
)
def test_case_34f_units_that_contradict_each_other(unit: str | None, column: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        Endpoints.from_frame(
            FRAME.assign(loss_unit=column), source="runs.csv", units={"loss": unit} if unit else None
        )
    assert says in str(caught.value)


# -- 40: the noise of repeats ------------------------------------------------------------------------------------------

SEEDS = [1.9445, 1.9461, 1.9430]
#: Their sample standard deviation, by hand: squares of deviations from 1.944533 add up to 4.80667e-6, over 2.
SD = (4.80667e-6 / 2) ** 0.5


@cache
def with_seeds(bootstrap: int = 0) -> Any:
    rows = FRAME.assign(seed="0")
    one = rows.iloc[[5]]
    seeds = [one.assign(seed=str(i), run=f"seed{i}", loss=loss) for i, loss in enumerate(SEEDS)]
    return fit(Endpoints.from_frame(pd.concat([rows.drop(index=5), *seeds])), bootstrap=bootstrap)


def test_case_40b_noise_equivalent_gain() -> None:
    """A loss lower by s seems to save 1 - (1 + s/(L - E))^(-1/gamma) of the compute: from L = E + P C^-gamma."""
    repeated = with_seeds()
    frame = ce_gain(repeated, [1e20, 1e21], **ASKED)
    at = repeated["baseline"].surface.coefficients
    gamma = at["a"] * at["c"] / (at["a"] + at["c"])
    above = frame["loss"].to_numpy() - at["E"]
    expected = 1 - (1 + SD / above) ** (-1 / gamma)
    assert frame["noise_equivalent_gain"].tolist() == pytest.approx(
        expected.tolist(), rel=1e-5
    )  # six digits of SD
    # to first order s/(gamma (L - E)); the next term is of the size of its square
    first = SD / (gamma * above)
    assert np.all(np.abs(frame["noise_equivalent_gain"] - first) < 2 * first**2)
    found = note(notes_of(frame), "noise_equivalent_gain")
    assert (found.severity, found.count) == ("info", 3)
    assert f"{100 * expected.min():.1f} % to {100 * expected.max():.1f} % of compute" in found.message
    record = json.loads(show_table(frame, "json"))
    assert [row["noise_equivalent_gain"] for row in record["rows"]] == frame["noise_equivalent_gain"].tolist()
    assert "noise_equivalent_gain" not in ce_gain(plain(), 1e21, **ASKED).columns


def test_case_40c_repeats_of_both_are_pooled_by_degrees_of_freedom() -> None:
    """Two more seeds of a smelt run, 0.01 nats apart: with 2 and 1 degrees of freedom, (2 s1^2 + 1 s2^2)/3."""
    rows = FRAME.assign(seed="0")
    base, target = rows.iloc[[5]], rows[TARGET].iloc[[7]]
    loss = float(target["loss"].iloc[0])
    more = [
        *(base.assign(seed=str(i), run=f"b{i}", loss=value) for i, value in enumerate(SEEDS)),
        target.assign(seed="1", run="t1", loss=loss + 0.01),
    ]
    repeated = fit(Endpoints.from_frame(pd.concat([rows.drop(index=5), *more])), bootstrap=0)
    frame = ce_gain(repeated, 1e21, **ASKED)
    sd = ((2 * SD**2 + 0.01**2 / 2) / 3) ** 0.5
    at = repeated["baseline"].surface.coefficients
    gamma = at["a"] * at["c"] / (at["a"] + at["c"])
    expected = 1 - (1 + sd / (frame["loss"][0] - at["E"])) ** (-1 / gamma)
    assert frame["noise_equivalent_gain"][0] == pytest.approx(expected, rel=1e-5)


def test_case_40d_not_distinguishable_only_when_the_interval_holds_0() -> None:
    """A gain below that of the noise may well be distinguishable, and one above it not."""
    repeated = with_seeds(bootstrap=200)
    frame = ce_gain(repeated, [1e19, 2e19, 1e20, 1e21], **ASKED)
    holds = (frame["gain_lo"] <= 0) & (frame["gain_hi"] >= 0)
    assert 0 < holds.sum() < len(frame)
    assert note(notes_of(frame), "not_distinguishable").count == holds.sum()
    clear = ce_gain(repeated, frame["budget"][~holds].tolist(), **ASKED)
    assert "not_distinguishable" not in codes(clear)
    assert "not_distinguishable" not in codes(ce_gain(with_seeds(), 1e19, **ASKED))  # no interval, no verdict


def test_case_26a_identical_architectures_are_not_distinguishable() -> None:
    other = FRAME[~TARGET]
    twins = fit(Endpoints.from_frame(pd.concat([other, other.assign(arch="twin")])), bootstrap=100)
    frame = ce_gain(twins, [1e20, 1e21], sparsities=0.947)
    assert frame[["gain", "gain_lo", "gain_hi"]].to_numpy().tolist() == [[0, 0, 0]] * 2
    assert note(notes_of(frame), "not_distinguishable").count == 2


# -- 42: wall-clock time -----------------------------------------------------------------------------------------------


def optimum(coefficients: dict[str, float], budget: float, sparsity: float) -> float:
    """F* = (a A' C^c / (c K))^(1/(a + c)) with A' = A (1 - S)^b."""
    E, A, K, a, b, c = (coefficients[name] for name in ("E", "A", "K", "a", "b", "c"))
    return float((a * A * (1 - sparsity) ** b * budget**c / (c * K)) ** (1 / (a + c)))


def test_case_42_wall_clock() -> None:
    """Speeds that are powers of F lie on the line between sizes, so Phi(F*) is known exactly."""
    speed = np.where(TARGET, 2e14 * FRAME["F"] ** 0.05, 3e14 * FRAME["F"] ** 0.02)
    timed = study(tokens_per_s=speed / FRAME["F"])
    frame = ce_gain(timed, [1e20, 3e20], **ASKED)
    for row in frame.to_dict("records"):
        at = [optimum(timed[arch].surface.coefficients, budget, 0.947) for arch, budget in
              (("smelt", row["budget"]), ("baseline", row["reference_budget"]))]  # fmt: skip
        expected = row["multiplier"] * 2e14 * at[0] ** 0.05 / (3e14 * at[1] ** 0.02)
        assert row["time_multiplier"] == pytest.approx(expected, rel=1e-9)  # logarithms of doubles
        assert (row["time_multiplier_lo"], row["time_multiplier_hi"]) == (None, None) or row["draws"] == 0
    assert frame["gain"].tolist() == ce_gain(plain(), [1e20, 3e20], **ASKED)["gain"].tolist()
    assert "wall-clock" in show_table(frame)


def test_case_42a_a_constant_ratio_of_speeds_scales_the_multiplier_and_its_interval() -> None:
    """At equal FLOPs per second times 410000/433986, x1.129946 in FLOPs is x1.067495 in time."""
    ratio = 410000 / 433986
    assert 1.129946 * ratio == pytest.approx(1.067495, abs=1e-6)
    speed = np.where(TARGET, ratio, 1.0) * 4e14
    frame = ce_gain(study(200, tokens_per_s=speed / FRAME["F"]), 1e20, **ASKED)
    for end in ("", "_lo", "_hi"):
        assert frame[f"time_multiplier{end}"][0] == pytest.approx(
            ratio * frame[f"multiplier{end}"][0], rel=1e-9
        )
    assert f"×{frame['time_multiplier'][0]:.2f} [" in show_table(frame)


def test_case_42k_the_interval_takes_each_replicate_at_its_own_optimum() -> None:
    """Order statistics 5 and 196 of 200 (k = floor(201 * .025)), with Phi a power of F that differs by architecture."""
    speed = np.where(TARGET, 2e14 * FRAME["F"] ** 0.2, 3e14 * FRAME["F"] ** -0.1)
    timed = study(200, tokens_per_s=speed / FRAME["F"])
    (row,) = ce_gain(timed, 2e20, **ASKED).to_dict("records")
    draws = {arch: timed.draws[arch].surface for arch in ("smelt", "baseline")}
    logs = []
    for ours, theirs in zip(draws["smelt"].coef, draws["baseline"].coef, strict=True):
        E, A, K, a, b, c = ours
        reach = optimum(dict(zip("EAKabc", ours, strict=True)), 2e20, 0.947)
        loss = E + A * (1 - 0.947) ** b * reach**-a + K * (2e20 / reach) ** -c
        E, A, K, a, b, c = theirs
        at = dict(zip("EAKabc", theirs, strict=True))

        def above(ln_c: float, at: dict[str, float] = at, loss: float = loss) -> float:
            size, budget = optimum(at, np.exp(ln_c), 0.947), np.exp(ln_c)
            A_s = at["A"] * (1 - 0.947) ** at["b"]
            return at["E"] + A_s * size ** -at["a"] + at["K"] * (budget / size) ** -at["c"] - loss

        spent = np.exp(brentq(above, np.log(1e19), np.log(1e22), xtol=1e-13))
        phi = 2e14 * reach**0.2 / (3e14 * optimum(at, spent, 0.947) ** -0.1)
        logs.append(spent / 2e20 * phi)
    expected = np.sort(logs)[[4, -5]]
    assert [row["time_multiplier_lo"], row["time_multiplier_hi"]] == pytest.approx(
        expected.tolist(), rel=1e-9
    )
    assert (
        abs(
            row["time_multiplier_lo"] / row["multiplier_lo"] / (row["time_multiplier"] / row["multiplier"])
            - 1
        )
        > 1e-3
    )


def test_case_42l_between_two_sizes_the_speed_is_their_geometric_mean_and_beyond_them_none() -> None:
    """A speed that bends: linear in ln F between neighbours, whatever lies further away."""
    runs = Endpoints.from_frame(
        {"arch": ["a"] * 3, "F": [1e9, 4e9, 1.6e10], "D": [1e10] * 3, "loss": [3.0, 2.7, 2.5],
         "tokens_per_s": [4e5, 1e5, 1e5]}
    )  # fmt: skip
    found = throughput_of(runs, by_tier=False)
    assert found is not None
    at = np.exp(found.log_speed_at(np.log([[2e9, 4e9, 8e9, 1.7e10, 0.9e9]]), None))[0]
    assert at[:3] == pytest.approx([4e14, 4e14, (4e14 * 1.6e15) ** 0.5], rel=1e-12)
    assert np.isnan(at[3:]).all()


def test_case_42b_only_where_both_have_a_speed() -> None:
    names = {"time_multiplier", "time_multiplier_lo", "time_multiplier_hi"}
    assert not names & set(ce_gain(plain(), 1e20, **ASKED).columns)
    one = study(tokens_per_s=np.where(TARGET, 1e5, np.nan))
    assert not names & set(ce_gain(one, 1e20, **ASKED).columns)
    both = study(tokens_per_s=1e5)
    assert names <= set(ce_gain(both, 1e20, **ASKED).columns)


def test_case_42c_never_extrapolated() -> None:
    """1e22 FLOPs want larger models than any that was timed: null, a count, and the gain untouched."""
    timed = study(tokens_per_s=4e14 / FRAME["F"])
    frame = ce_gain(timed, [1e20, 1e22], **ASKED)
    assert frame["time_multiplier"].notna().tolist() == [True, False]
    assert frame["gain"].notna().all()
    found = [one for one in notes_of(frame) if one.code == "no_time_multiplier"]
    assert [one.count for one in found] == [1, 1]  # either architecture's optimum is beyond its runs
    assert json.loads(show_table(frame, "json"))["rows"][1]["time_multiplier"] is None
    # between tiers of sparsity nothing was timed either
    assert ce_gain(timed, 1e20, **{**ASKED, "sparsities": 0.9})["time_multiplier"].isna().all()


def test_case_42d_sizes_that_were_not_timed_are_beyond() -> None:
    """With only the two smallest sizes timed, 1e20's F* of 4e9 is outside; cells without a speed are passed over."""
    small = FRAME["F"] < 3e9
    timed = study(tokens_per_s=np.where(small, 4e14 / FRAME["F"], np.nan))
    frame = ce_gain(timed, [2e19, 1e20], **ASKED)
    optima = [optimum(timed["smelt"].surface.coefficients, budget, 0.947) for budget in (2e19, 1e20)]
    assert optima[0] < FRAME["F"][small].max() < optima[1]
    assert frame["time_multiplier"].notna().tolist() == [True, False]


def test_case_42e_a_replicate_beyond_the_timed_sizes_leaves_no_interval() -> None:
    """An interval over the replicates that happen to be inside would be too narrow."""
    timed = study(200, tokens_per_s=4e14 / FRAME["F"])
    frame = ce_gain(timed, np.geomspace(1e20, 2e21, 40), **ASKED)
    point, interval = frame["time_multiplier"].notna(), frame["time_multiplier_hi"].notna()
    assert interval[0]
    assert (point | ~interval).all()
    assert interval.sum() < point.sum() < len(frame)
    assert (frame["time_multiplier_lo"].notna() == interval).all()


def test_case_42i_a_sparsity_between_those_of_two_architectures_is_of_their_tier() -> None:
    """Compared at .852, their common median, runs at .848 and .856 are of one tier and were both timed."""
    shifted = FRAME["S"] + np.where(TARGET, 0.004, -0.004)
    timed = study(tokens_per_s=4e14 / FRAME["F"], S=shifted)
    frame = ce_gain(timed, 1e20, target="smelt")
    assert frame["time_multiplier"].notna().all()


def test_case_42j_an_unreachable_leave_one_out_fit_leaves_no_interval() -> None:
    """Nor a warning, since infinity is no number to take a variance of: floors .02 apart, far beyond four cells."""
    F, D = (
        axis.ravel()
        for axis in np.meshgrid(np.geomspace(3e8, 1e10, 4), np.geomspace(1e10, 2e11, 4), indexing="ij")
    )
    rng = np.random.default_rng(3)
    frames = [
        pd.DataFrame(
            {"arch": arch, "scale": [f"{f:.2g}" for f in F], "F": F, "D": D, "tokens_per_s": 1e15 / F}
        ).assign(
            loss=(floor + 1366 * F**-0.3703 + 1.975e6 * D**-0.6594) * np.exp(0.003 * rng.normal(size=len(F)))
        )
        for arch, floor in (("base", 1.5), ("ours", 1.48))
    ]
    found = ce_gain(
        fit(Endpoints.from_frame(pd.concat(frames)), "additive", bootstrap=0), 1e25, interval="jackknife-t"
    )
    assert found["gain"].notna().all()
    assert found[["gain_lo", "gain_hi", "time_multiplier_lo", "time_multiplier_hi"]].isna().all(axis=None)


def test_case_42f_a_law_without_sizes_has_no_time() -> None:
    timed = study(law="power-c", tokens_per_s=1e5)
    frame = ce_gain(timed, 1e20, target="smelt")
    assert frame["time_multiplier"].isna().all()
    assert "power-c has no F*" in note(notes_of(frame), "no_time_multiplier").message


def test_case_42g_laws_in_parameters() -> None:
    """F is 6 N_act there, whatever other size the table names."""
    timed = study(law="E + A*N_act**-a + K*D**-c", tokens_per_s=4e14 / (6 * FRAME["N_act"]))
    frame = ce_gain(timed, 1e20, target="smelt", reference="baseline")
    assert frame["time_multiplier"][0] == pytest.approx(frame["multiplier"][0], rel=1e-9)


def test_case_42h_budgets_that_differ_by_draw() -> None:
    """The closed form of F* draw by draw, and the numeric minimum to the accuracy of its search."""
    coefficients = [[1.44, 1.37e3, 1.98e6, 0.37, 0.15, 0.66], [1.45, 1.96e3, 5.26e6, 0.39, 0.146, 0.70]]
    law = get_law("sparse-additive")
    budgets = np.array([[1e20, 1e21, 1e22], [2e20, 3e21, 5e22]])
    expected = [
        [np.log(optimum(dict(zip(law.parameters, own, strict=True)), c, 0.947)) for c in row]
        for own, row in zip(coefficients, budgets.tolist(), strict=True)
    ]
    surface = Surface(law=law, coef=coefficients)
    for numeric, tolerance in ((False, 1e-12), (True, 1e-6)):
        found = Frontier(surface, numeric=numeric).log_flops(np.log(budgets), np.full(3, 0.947))
        assert found == pytest.approx(np.array(expected), abs=tolerance)
