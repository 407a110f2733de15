"""Tables that practitioners really have: each is answered right, with a note, or refused in one line.

The number in a test's name is that of the case in the project's list of inputs; letters mark its kin. Cases of
files, fits and published numbers (8 to 12 digits, encodings, false convergence) have their own modules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt_scaling import Endpoints, ce_gain, example_endpoints, fit
from smelt_scaling._json import dumps
from smelt_scaling.analyses import notes_of
from smelt_scaling.cli import run
from smelt_scaling.errors import DataError, FitError, FrontierError, Note, UsageError
from smelt_scaling.fitting.residuals import resolution
from smelt_scaling.papers import load_paper

RUNS = example_endpoints()
FRAME = RUNS.to_frame().drop(columns="source")


def table(rows: int = 6, **columns: Any) -> pd.DataFrame:
    """A good table of one architecture, with some columns replaced; None takes one out."""
    n = np.arange(rows)
    base = {"arch": "a", "F": 6e8 * 2.0 ** (n // 2), "D": 1e10 * (1 + n), "loss": 3 - 0.1 * n} | columns
    return pd.DataFrame({name: values for name, values in base.items() if values is not None}, index=n)


def read(frame: Any, **options: Any) -> Endpoints:
    return Endpoints.from_frame(frame, source="runs.csv", **options)


def refusal(frame: Any, **options: Any) -> str:
    """The one line with which a table is refused."""
    with pytest.raises(DataError) as caught:
        read(frame, **options)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("runs.csv: ")
    return line


def fit_refusal(frame: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        fit(read(frame), bootstrap=0)
    return str(caught.value).splitlines()


def note(notes: Any, code: str) -> Note:
    (found,) = [one for one in notes if one.code == code]
    return found


def codes(notes: Any) -> set[str]:
    return {one.code for one in notes}


# ---------------------------------------------------------------------- trajectories


def curves(runs: int = 24, rows: int = 400) -> pd.DataFrame:
    """Runs as they are logged: a row every few steps, with noise."""
    rng = np.random.default_rng(0)
    step = np.tile(np.arange(1, rows + 1) * 100, runs)
    which = np.repeat(np.arange(runs), rows)
    return pd.DataFrame(
        {
            "arch": "a",
            "run": [f"r{i:02d}" for i in which],
            "F": 6e8 * 1.2**which,
            "step": step,
            "D": step * 5e5,
            "loss": 2 + 40 * (step * 5e5) ** -0.16 + rng.normal(0, 0.01, len(step)),
        }
    )


def test_case_01_trajectories_are_no_endpoints() -> None:
    """24 runs of 400 rows each: read, but not fitted; the command that selects is named."""
    endpoints = read(curves())
    assert len(endpoints) == 9600
    (line,) = fit_refusal(curves())
    assert "24 runs of a with more than 20 horizons (run r00: 400): curves" in line
    assert "select one endpoint per run and horizon first (smelt-scaling endpoints)" in line


def test_case_01a_up_to_twenty_horizons_are_endpoints() -> None:
    """A trunk whose branches decay at many horizons is a legitimate design."""
    assert read(curves(4, 20)).one_law_problems() == []
    assert len(read(curves(4, 21)).one_law_problems()) == 1


def test_case_01b_curves_without_a_run_column() -> None:
    """Settings with hundreds of horizons are curves whether or not a column says so."""
    (line,) = fit_refusal(curves(3, 200).drop(columns="run"))
    assert "3 settings of a with more than 100 horizons" in line


def test_case_02_duplicates_after_a_resume() -> None:
    """2.405 and, after the crash, 2.426 at 10.49e9 tokens: refused by row, as one of them is stale."""
    tokens = [10.38e9, 10.49e9, 9.96e9, 10.38e9, 10.49e9]
    line = refusal(table(5, run="r1", F=1e9, D=tokens, loss=[2.412, 2.405, 2.440, 2.431, 2.426]))
    assert "column loss, rows 2 and 5: run r1 has losses 2.405 and 2.426 at one horizon (1 such)" in line
    assert "after a resume keep the later row" in line
    assert "smelt-scaling endpoints" in line


def test_case_02a_evaluations_that_differ_slightly_are_kept_with_a_warning() -> None:
    frame = table(3, run="r1", F=1e9, D=[1e10, 1e10, 2e10], loss=[2.412, 2.405, 2.3])
    endpoints = read(frame)
    assert len(endpoints) == 3
    found = note(endpoints.notes, "conflicting_rows")
    assert (found.severity, found.count) == ("warning", 1)
    assert "rows 1 and 2" in found.message


def test_case_02b_exact_copies_are_merged_and_counted() -> None:
    frame = pd.concat([FRAME, FRAME.iloc[:7]])
    endpoints = read(frame)
    assert note(endpoints.notes, "duplicate_rows").count == 7
    assert endpoints.digest == read(FRAME).digest


def test_case_02c_copies_that_differ_in_an_unread_column_are_two_rows() -> None:
    """Without a run column, two equal losses may be two runs."""
    frame = table(2, F=1e9, D=1e10, loss=3.0, host=["x", "y"])
    assert len(read(frame)) == 2
    assert len(read(frame.assign(run="r"))) == 1
    assert len(read(frame.assign(host="x"))) == 1


@given(st.lists(st.integers(0, 143), max_size=40), st.randoms(use_true_random=False))
def test_case_02d_copies_never_change_the_table(copies: list[int], random: Any) -> None:
    order = [*range(144), *copies]
    random.shuffle(order)
    endpoints = read(FRAME.iloc[order])
    assert endpoints.digest == read(FRAME).digest
    assert sum(n.count for n in endpoints.notes if n.code == "duplicate_rows") == len(copies)


def test_case_03_branch_tokens_counted_from_zero() -> None:
    """A branch at step 52000 with 2e9 tokens, where its trunk has 1e11 at step 50000: its D starts anew."""
    frame = table(
        4, F=1e9, trunk="t", run=list("pqrs"), step=[50e3, 52e3, 100e3, 104e3], D=[1e11, 2e9, 2e11, 4e9]
    )
    found = note(read(frame).notes, "tokens_per_step")
    assert (found.severity, found.count) == ("warning", 1)
    assert "trunk t: 3.85e+04 to 2e+06" in found.message
    whole = frame.assign(D=[1e11, 1.04e11, 2e11, 2.08e11])
    assert "tokens_per_step" not in codes(read(whole).notes)


NONFINITE = ["NaN", "nan", "Infinity", "inf", "-inf", "1e400", "null", "", None, float("nan"), float("inf")]


@pytest.mark.parametrize("cell", NONFINITE, ids=repr)
def test_case_04_losses_that_are_not_finite_are_left_out(cell: Any) -> None:
    """In every spelling: dropped with the code nonfinite, the cell named."""
    losses: list[Any] = [str(value) for value in FRAME["loss"]]
    losses[17] = cell
    endpoints = read(FRAME.assign(loss=pd.Series(losses, dtype=object)))
    found = note(endpoints.notes, "nonfinite")
    assert (found.count, found.severity, len(endpoints)) == (1, "warning", 143)
    assert (
        f"1 row (first: 18) without a finite loss left out (cell {FRAME['cell'][17]} of baseline)"
        in found.message
    )


def test_case_04a_a_blown_up_loss_is_flagged_and_kept() -> None:
    """11.3 among 1.65 to 2.31: more than 5 robust standard deviations off."""
    losses = np.array(FRAME["loss"])
    losses[17] = 11.3
    study = fit(read(FRAME.assign(loss=losses)), bootstrap=0)
    found = note(study["baseline"].notes, "outlier")
    assert found.count == 1
    assert "loss 11.3" in found.message
    assert str(FRAME["cell"][17]) in found.message
    assert study["baseline"].n == 72
    assert "outlier" not in codes(study["smelt"].notes)


def test_case_04b_the_last_good_row_of_a_diverged_run_is_no_endpoint() -> None:
    frame = table(4, run=["r", "r", "s", "s"], loss=[3.0, np.nan, 2.9, 2.8])
    endpoints = read(frame)
    assert set(endpoints["run"]) == {"s"}
    assert note(endpoints.notes, "diverged").count == 1


def test_case_04c_a_run_that_goes_on_has_not_diverged() -> None:
    """An evaluation that failed halfway leaves the others as they are, and so does the end of a decay."""
    assert len(read(table(3, run="r", loss=[3.0, np.nan, 2.8]))) == 2
    decayed = read(table(3, run="r", loss=[3.0, 2.9, np.nan], phase="decay"))
    assert len(decayed) == 2


def test_case_04d_nothing_left_is_an_error() -> None:
    assert refusal(table(loss=np.nan)) == (
        "runs.csv: column loss, 6 rows (first: 1) without a finite loss: none of 6 rows is an endpoint, which needs a "
        "finished run and a finite loss"
    )


@given(st.sets(st.integers(0, 143), max_size=100), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_case_04e_the_rest_is_the_table_without_those_rows(rows: set[int], value: float) -> None:
    losses = np.array(FRAME["loss"])
    losses[sorted(rows)] = value
    endpoints = read(FRAME.assign(loss=losses))
    assert endpoints.digest == read(FRAME.drop(index=sorted(rows))).digest
    assert sum(n.count for n in endpoints.notes if n.code == "nonfinite") == len(rows)


# ---------------------------------------------------------------------- conventions


def forward_table(forward: int, training: int) -> pd.DataFrame:
    n = np.arange(forward + training)
    frame = pd.DataFrame({"arch": "a", "F": 6e8 + 1e6 * n, "D": 1e10 + 1e8 * n, "loss": 3 - 1e-3 * n})
    frame["C"] = frame["F"] * frame["D"] * np.where(n < forward, 0.3333, 1.0)
    return frame


def test_case_05_forward_only_flops() -> None:
    """C/(F*D) of 1/3 on 258 rows and 1 on 15: two conventions, each with its rows."""
    assert refusal(forward_table(258, 15)) == (
        "runs.csv: columns C, F, D: C/(F*D) is 1/3 on 258 rows (first: 1) and 1 on 15 rows (first: 259): two "
        "conventions in one table; 1/3 means that C is forward-only there while F is training FLOPs; multiply it by 3 "
        "or leave it out"
    )


def test_case_05a_forward_is_declared() -> None:
    """F is forward-only and C training FLOPs: F is tripled, C stays; without C the same."""
    frame = table()
    frame["C"] = 3 * frame["F"] * frame["D"]
    assert "3 means that F is forward-only while C is training FLOPs; add --flops forward" in refusal(frame)
    endpoints = read(frame, flops="forward")
    assert sorted(endpoints.F) == sorted(3 * frame["F"])
    assert sorted(endpoints.C) == sorted(frame["C"])
    assert note(endpoints.notes, "derived_flops").count == 6
    assert sorted(read(table(), flops="forward").F) == sorted(3 * frame["F"])


def test_case_05b_both_forward_only() -> None:
    """C = F*D of forward FLOPs: both are tripled; C alone makes F."""
    frame = table()
    frame["C"] = frame["F"] * frame["D"]
    assert sorted(read(frame, flops="forward").C) == sorted(3 * frame["C"])
    only_c = read(frame.drop(columns="F"), flops="forward")
    assert sorted(only_c.F) == pytest.approx(sorted(3 * frame["F"]), rel=1e-15)
    assert "no column F or C" in refusal(table(F=None, N=1e8), flops="forward")


@pytest.mark.parametrize(
    ("factor", "label"), [(1e9, "1e9"), (1e-9, "1e-9"), (1e-18, "1e-18"), (1000.0, "1e3"), (0.5, "0.5")]
)
def test_case_05c_other_ratios_are_named(factor: float, label: str) -> None:
    frame = table()
    frame["C"] = factor * frame["F"] * frame["D"]
    with pytest.raises(DataError, match=rf"C/\(F\*D\) is {label} on 6 rows|column C, median") as caught:
        read(frame)
    assert "\n" not in str(caught.value)


def test_case_05d_parameters_tell_a_convention_too() -> None:
    """F = 2 N is forward-only; so is C = 2 N D; mixed with 6 N they are two conventions."""
    N = np.array([1e8, 1e8, 2e8, 2e8, 4e8, 4e8])
    assert (
        "F/(6*N) is 1/3 on 6 rows (first: 1); 1/3 means forward-only FLOPs; add --flops forward"
        in refusal(table(N=N, F=2 * N))
    )
    assert sorted(read(table(N=N, F=2 * N), flops="forward").F) == sorted(6 * N)
    mixed = refusal(table(N=N, F=N * [2, 2, 6, 6, 6, 6]))
    assert "F/(6*N) is 1 on 4 rows (first: 3) and 1/3 on 2 rows (first: 1): two conventions" in mixed
    tokens = np.array(table()["D"])
    assert "C/(6*N*D) is 1/3 on 6 rows" in refusal(table(N=N, F=None, C=2 * N * tokens))
    assert "leave out --flops forward" in refusal(table(N=N, F=6 * N), flops="forward")


def test_case_05e_the_command_line_takes_forward(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table().to_csv(tmp_path / "runs.csv", index=False)
    assert run(["check", str(tmp_path / "runs.csv"), "--flops", "forward", "--law", "additive"]) == 0
    assert "1.8e9" in capsys.readouterr().out  # three times the smallest F


@given(st.sampled_from([1 / 3, 1.0, 3.0, 1e-9, 1e9]), st.integers(1, 5))
def test_case_05f_no_mixture_of_conventions_passes(factor: float, rows: int) -> None:
    frame = table()
    ratio = np.where(np.arange(6) < rows, factor, 1.0)
    frame["C"] = frame["F"] * frame["D"] * ratio
    if factor == 1.0:
        assert len(read(frame)) == 6
    else:
        with pytest.raises(DataError):
            read(frame)


def test_case_07_sampled_history() -> None:
    """500 rows at uneven steps are what a sampled export returns; its last row need not be the last."""
    rng = np.random.default_rng(1)
    frame = curves(1, 5000)
    sampled = frame.iloc[np.sort(rng.choice(5000, 500, replace=False))]
    (line,) = fit_refusal(sampled)
    assert "500 rows at uneven step: a sampled history, which may lack the last row; export all of it" in line
    (even,) = fit_refusal(frame.iloc[::10])
    assert "sampled" not in even


def test_case_08_several_losses_are_never_picked_by_order() -> None:
    frame = table(loss=None).assign(
        **{
            "train/loss": 2.0,
            "eval/loss": 2.1441,
            "eval/paloma/macro_loss": 2.2333,
            "eval/paloma/c4_en/bpb": 0.79,
        }
    )
    line = refusal(frame)
    for name in ("train/loss", "eval/loss", "eval/paloma/macro_loss", "eval/paloma/c4_en/bpb"):
        assert name in line
    assert "--map loss=" in line


def test_case_10_parameters_without_flops() -> None:
    """N, D, loss: the law in N or --flops 6N are named; 6N says what it leaves out."""
    dense = table(F=None, N=1e8 * 2.0 ** (np.arange(6) // 2))
    (line,) = fit_refusal(dense)
    assert "--law chinchilla" in line
    assert "--flops 6N" in line
    endpoints = read(dense, flops="6N")
    assert sorted(endpoints.F) == sorted(6 * dense["N"])
    assert "attention" in note(endpoints.notes, "derived_flops").message


def test_case_11_parameters_must_be_named() -> None:
    """Two counts of the same models: neither is picked."""
    frame = table(F=None).assign(n_params_total=1e8, n_params_no_embedding=8e7)
    line = refusal(frame)
    assert "n_params_total, n_params_no_embedding" in line


def test_case_11a_all_experts_counted_as_active() -> None:
    """F/(6 N_act) below 0.6 at S = 0.9: N_act holds the total."""
    F = np.array(table()["F"])
    wrong = read(table(S=0.9, N_act=F / 6 * 10))
    found = note(wrong.notes, "active_parameters")
    assert (found.severity, found.count) == ("warning", 6)
    assert "F/(6*N_act) is 0.1 on 6 rows" in found.message
    assert "active_parameters" not in codes(read(table(S=0.9, N_act=F / 6 / 1.061)).notes)
    experts = read(table(S=0.9, N=F / 6))  # F counts all of N
    assert note(experts.notes, "active_parameters").count == 6


@pytest.mark.parametrize(("ratio", "flagged"), [(0.85, True), (0.95, False), (1.9, False), (2.2, True)])
def test_case_11b_flops_per_parameter_of_dense_models(ratio: float, flagged: bool) -> None:
    """Outside 0.9 to 2 a note asks what F and N count."""
    endpoints = read(table(N=np.array(table()["F"]) / 6 / ratio))
    assert ("flops_convention" in codes(endpoints.notes)) is flagged


def test_case_13_human_numbers() -> None:
    frame = table(3, F="1.33 GFLOPs", D=["215B", "1.2T", "215,605,043,200"])
    assert sorted(read(frame).D) == [215e9, 215605043200.0, 1.2e12]
    assert "2 rows (first: 1) not a number ('bn?')" in refusal(table(3, D=["bn?", "1.2.3", "1B"]))


def test_case_14_tokens_in_billions() -> None:
    frame = table(D=[20.486, 41.0, 62.4, 113.6, 167.0, 215.6])
    assert refusal(frame) == (
        "runs.csv: column D, median 88 tokens: too small for D in tokens; add --unit D=B (or another of "
        "tokens, K, M, B, T; --unit D=tokens keeps it)"
    )
    raw = table(D=[20486000000, 41000000000, 62400000000, 113600000000, 167000000000, 215600000000])
    assert read(frame, units={"D": "B"}).digest == read(raw).digest


def test_case_14a_the_unit_is_not_applied_twice() -> None:
    """Raw tokens with --unit D=B would be 1e19 tokens and more."""
    line = refusal(table(), units={"D": "B"})
    assert line.endswith("beyond any training run; the column is in tokens already: leave out --unit D=B")
    assert "FLOPs of the whole run, name them with --map C=COLUMN" in refusal(table(F=1e19))


def test_case_14b_two_units_in_one_column() -> None:
    line = refusal(table(D=[1e10, 2e10, 30.5, 4e10, 50.5, 6e10]))
    assert "column D, 2 rows (first: 3) below 100000 tokens beside a median of 1.5e+10: two units" in line


# ---------------------------------------------------------------------- rows that are no endpoints


def test_case_16_unfinished_runs() -> None:
    """17 of 24 cells done: the others are left out, and the result is provisional."""
    status = np.where(
        np.isin(FRAME["cell"] + FRAME["arch"], sorted(set(FRAME["cell"] + FRAME["arch"]))[:7]),
        "crashed",
        "Finished",
    )
    endpoints = read(FRAME.assign(status=status))
    found = note(endpoints.notes, "unfinished")
    assert (found.count, found.severity, len(endpoints)) == (42, "warning", 102)
    provisional = note(endpoints.notes, "provisional")
    assert "PROVISIONAL: 7/24 cells missing" in provisional.message
    assert (provisional.count, provisional.severity) == (7, "warning")
    assert "none of 6 rows is an endpoint" in refusal(table(status="running"))


def test_case_17_stable_phase_beside_decayed() -> None:
    """2.050 at constant learning rate and 1.985 after the decay, both at 62.4e9 tokens."""
    base = table(4, F=1e9, D=[62.4e9, 62.4e9, 1e11, 1e11], loss=[2.050, 1.985, 1.95, 1.9], run=list("rrss"))
    for extra in ({"phase": ["stable", "decay"] * 2}, {"lr": [1e-3, 0.0] * 2}):
        endpoints = read(base.assign(**extra))
        assert sorted(endpoints.loss) == [1.9, 1.985]
        assert note(endpoints.notes, "not_annealed").count == 2
    line = refusal(base)
    assert "rows 1 and 2: run r has losses 2.05 and 1.985 at one horizon (2 such)" in line
    assert "add phase or lr" in line


def test_case_17a_a_branch_and_its_trunk() -> None:
    """The stable run and its branch have different names and one trunk."""
    base = table(2, F=1e9, D=62.4e9, loss=[2.050, 1.985], run=["trunk", "branch"], trunk="t")
    assert "trunk t has losses 2.05 and 1.985" in refusal(base)
    assert read(base.assign(lr=[1e-3, 1e-6])).loss.tolist() == [1.985]


def test_case_17b_only_stable_rows_are_kept_with_a_warning() -> None:
    endpoints = read(table(phase="stable"))
    assert len(endpoints) == 6
    assert note(endpoints.notes, "not_annealed").severity == "warning"


def test_case_17c_peak_learning_rates_exclude_nothing() -> None:
    """A sweep: each run has one row, with its own peak."""
    assert len(read(table(run=list("abcdef"), lr=[1e-2, 1e-3, 1e-4, 1e-2, 1e-3, 1e-4]))) == 6


# ---------------------------------------------------------------------- designs


def test_case_19_a_dense_tier_beside_sparse_ones() -> None:
    """(1 - 0)**b is 1: legal; --exclude-tier 0 gives the 144 endpoints back."""
    dense = FRAME[FRAME["S"] < 0.9].assign(
        S=0.0, cell=lambda f: f["scale"] + "/dense", loss=lambda f: f["loss"] * 1.1
    )
    both = read(pd.concat([FRAME, dense.assign(run=dense["run"] + "/dense")]))
    assert len(both) == 192
    assert both.exclude_tier(0).digest == read(FRAME).digest
    assert fit(both, bootstrap=0).certified


def test_case_20_one_tier() -> None:
    """b is not identified; a gain at the tier is allowed, elsewhere refused."""
    study = fit(read(FRAME[(FRAME["S"] > 0.93) & (FRAME["S"] < 0.96)]), bootstrap=0)
    assert all("b" in one.unidentified for one in study.fits.values())
    assert ce_gain(study, 1e21)["gain"].notna().all()
    with pytest.raises(FrontierError, match="one sparsity"):
        ce_gain(study, 1e21, sparsities=[0.846])


def test_case_22_too_few_endpoints() -> None:
    """5 endpoints for 6 parameters are refused; 3 for 3 interpolate and say so."""
    few = table(5, F=[6e8, 1e9, 6e8, 1e9, 2e9], S=[0.5, 0.5, 0.9, 0.9, 0.9])
    with pytest.raises(FitError, match=r"5 endpoints for \d parameters"):
        fit(read(few), bootstrap=0)
    ladder = fit(
        read({"C": [2.19e17, 1.70e18, 9.00e18], "loss": [3.7404, 3.3834, 3.1230]}), "power-c", bootstrap=0
    )
    (one,) = ladder.fits.values()
    # solved by hand, to the digits typed
    assert one.surface.coefficients == pytest.approx({"E": 0.5778, "A": 32.625, "alpha": 0.05845}, rel=1e-3)
    assert "ill_conditioned" in codes(one.notes)
    assert not codes(one.notes) & {"outlier", "low_precision"}


@pytest.mark.parametrize(("column", "lost"), [("D", {"K", "c"}), ("F", {"a"})])
def test_case_23_one_horizon_or_one_scale(column: str, lost: set[str]) -> None:
    one = FRAME[FRAME["D"] == FRAME["D"].min()] if column == "D" else FRAME[FRAME["scale"] == "600M"]
    study = fit(read(one), bootstrap=0)
    for result in study.fits.values():
        assert lost <= set(result.unidentified)
    with pytest.raises(FrontierError, match="not identified"):
        ce_gain(study, 1e21)


def test_case_23a_ragged_cells() -> None:
    """A cell with one horizon is one cell."""
    ragged = FRAME[(FRAME["cell"] != "600M/95%") | (FRAME["D"] == FRAME["D"].min())]
    study = fit(read(ragged), bootstrap=0)
    assert [one.n_cells for one in study.fits.values()] == [12, 12]
    assert [one.n for one in study.fits.values()] == [67, 67]


def test_case_25_losses_that_do_not_overlap() -> None:
    """The reference would have to go far beyond its runs; the factor stands beside the gain."""
    loss = np.where(FRAME["arch"] == "smelt", FRAME["loss"] - 0.5, FRAME["loss"])
    study = fit(read(FRAME.assign(loss=loss)), bootstrap=0)
    reference, target = study.endpoints.by_arch()["baseline"].loss, study.endpoints.by_arch()["smelt"].loss
    assert target.min() < reference.min()
    row = ce_gain(study, 2e21, target="smelt", reference="baseline").iloc[0]
    beyond = [item for item in row["support"] if item["arch"] == "baseline" and item["code"] == "out_C"]
    assert row["unreachable"] or beyond[0]["factor"] > 10


# ---------------------------------------------------------------------- comparisons


def test_case_26_identical_architectures() -> None:
    """The same rows under another name: 0 % and 1.000 at every budget, paired interval [0, 0]."""
    base = FRAME[FRAME["arch"] == "baseline"]
    study = fit(read(pd.concat([base, base.assign(arch="copy")])), bootstrap=60)
    rows = ce_gain(study, [1e19, 1e20, 1e21, 1e23], target="copy", reference="baseline")
    assert (rows["gain"] == 0).all()
    assert (rows["multiplier"] == 1).all()
    assert (rows[["gain_lo", "gain_hi"]] == 0).all(axis=None)


def test_case_28_negative_gains_and_two_crossings() -> None:
    """Zeros and peaks of the published surfaces, to 1e-4 relative."""
    rows = ce_gain(load_paper("smelt"), np.geomspace(1e18, 1e26, 9), target="smelt", reference="baseline")
    expected = [
        (0.846, 1.0908e19, 1.8243e25, 8.1948e22, 0.25320),
        (0.947, 1.6889e19, 8.8302e24, 5.4924e22, 0.22227),
        (0.969, 2.1262e19, 6.0516e24, 4.4915e22, 0.20623),
    ]
    for turn, (sparsity, first, last, peak, gain) in zip(rows.attrs["turnover"], expected, strict=True):
        assert turn["sparsity"] == sparsity
        assert turn["zero_crossings"] == pytest.approx([first, last], rel=1e-4)
        assert turn["peak_budget"] == pytest.approx(peak, rel=1e-4)
        assert turn["peak_gain"] == pytest.approx(gain, abs=1e-5)
    assert (rows.loc[rows["budget"] == 1e18, "gain"] < 0).all()
    assert (rows.loc[rows["budget"] == 1e26, "gain"] < 0).all()


def test_case_29_budgets_outside_the_window() -> None:
    """23.4, 20.9 and 19.6 % at 1e22, marked as 4.5 times beyond the runs."""
    rows = ce_gain(load_paper("smelt"), 1e22, target="smelt", reference="baseline")
    assert rows["gain"].tolist() == pytest.approx([0.234, 0.209, 0.196], abs=5e-4)
    assert rows["extrapolated"].all()
    # 1e22 over the largest run, 2.2e21 FLOPs
    factors = [item["factor"] for item in rows["support"][0] if item["arch"] == "smelt"]
    assert factors == pytest.approx([1e22 / 2.2e21])
    assert "extrapolated" in codes(notes_of(rows))


@pytest.mark.parametrize("budget", [0, -1e21, float("nan"), float("inf"), "1e21 tokens"])
def test_case_29a_budgets_that_are_none(budget: Any) -> None:
    with pytest.raises(UsageError, match="budget"):
        ce_gain(load_paper("smelt"), budget)


@pytest.mark.parametrize("column", ["tokenizer", "eval_set"])
def test_case_34_tokenizers_and_evaluation_sets(column: str) -> None:
    """Different ones are fitted each on its own and never compared; a mixture is not even fitted."""
    study = fit(
        read(FRAME.assign(**{column: np.where(FRAME["arch"] == "smelt", "llama3", "gpt-neox-50k")})),
        bootstrap=0,
    )
    assert "incomparable_losses" in codes(study.notes)
    with pytest.raises(DataError, match=f"{column} differs: llama3 for smelt, gpt-neox-50k for baseline"):
        ce_gain(study, 1e21, target="smelt", reference="baseline")
    mixed = FRAME.assign(**{column: ["x", "y"] * 72})
    lines = fit_refusal(mixed)
    assert len(lines) == 2
    assert f"column {column}, 2" in lines[0]
    same = fit(read(FRAME.assign(**{column: "x"})), bootstrap=0)
    assert ce_gain(same, 1e21)["gain"].notna().all()


def test_case_34a_a_third_architecture_may_differ() -> None:
    """Only the two that are compared must agree, and a blank says nothing."""
    third = FRAME[FRAME["arch"] == "smelt"].assign(arch="third")
    frame = pd.concat([FRAME, third])
    names = frame["arch"].map({"baseline": "a", "smelt": "a", "third": "b"})
    study = fit(read(frame.assign(tokenizer=names)), bootstrap=0)
    assert ce_gain(study, 1e21, target="smelt", reference="baseline")["gain"].notna().all()
    with pytest.raises(DataError, match="tokenizer differs"):
        ce_gain(study, 1e21, target="third", reference="baseline")
    blank = fit(read(frame.assign(tokenizer=names.where(names == "a", ""))), bootstrap=0)
    assert ce_gain(blank, 1e21, target="third", reference="baseline")["gain"].notna().all()


def test_case_35_perplexity() -> None:
    """Asked for by name; e**loss with its unit is the loss: ln 7 = 1.945910."""
    ppl = table(loss=None, perplexity=[13.2, 11.0, 10.0, 9.0, 8.0, 7.0])
    assert "--unit loss=ppl" in refusal(ppl, mapping={"loss": "perplexity"})
    endpoints = read(ppl, mapping={"loss": "perplexity"}, units={"loss": "ppl"})
    assert endpoints.loss.min() == pytest.approx(1.945910, abs=5e-7)
    assert "add --unit loss=ppl" in refusal(table(loss=[24.0, 23, 22, 21, 20.5, 20.1]))


def test_case_35a_high_losses_are_questioned() -> None:
    """A median of 9.5 may be a perplexity under any name."""
    endpoints = read(table(loss=[13.2, 11.0, 10.0, 9.0, 8.0, 7.0]))
    assert note(endpoints.notes, "high_loss").severity == "warning"
    assert "high_loss" not in codes(read(table()).notes)


def test_case_35b_bits() -> None:
    """Bits per token are declared, 1 bit is 0.693147 nats; bits per byte are asked for by name, and kept."""
    bits = read(table(loss=[4.0, 3.9, 3.8, 3.7, 3.6, 3.5]), units={"loss": "bits"})
    assert bits.loss.max() == pytest.approx(2.772589, abs=5e-7)
    assert bits.loss_unit == "nats/token"
    bpb = table(loss=None, loss_se=0.01).assign(**{"eval/bpb": 0.79})
    assert "add --unit loss=bpb" in refusal(bpb, mapping={"loss": "eval/bpb"})
    kept = read(bpb, mapping={"loss": "eval/bpb"}, units={"loss": "bpb"})
    assert (kept.loss.tolist(), kept["loss_se"].tolist(), kept.loss_unit) == (
        [0.79] * 6,
        [0.01] * 6,
        "bits/byte",
    )


def test_case_36_sparsity_conventions() -> None:
    """Percent, active shares and their mixtures are told apart, in both directions."""
    tiers = np.array([0.846, 0.846, 0.947, 0.947, 0.969, 0.969])
    fraction = read(table(S=tiers))
    assert (
        read(table(S=[84.6, 84.6, 94.7, 94.7, 96.9, 96.9]), units={"S": "percent"}).digest == fraction.digest
    )
    active = {"active_ratio": [0.154, 0.154, 0.053, 0.053, 0.031, 0.031]}
    assert "add --unit S=active" in refusal(table().assign(**active), mapping={"S": "active_ratio"})
    shares = read(table().assign(**active), mapping={"S": "active_ratio"}, units={"S": "active"})
    assert shares.digest == fraction.digest
    named = table().assign(activation_sparsity=tiers)
    assert read(named, mapping={"S": "activation_sparsity"}).digest == fraction.digest
    mixed = refusal(table(S=[84.6, 0.846, 94.7, 0.947, 96.9, 0.969]))
    assert "3 rows (first: 1) in (1, 100]" in mixed
    assert "3 rows (first: 2) in (0, 1): percent beside fractions" in mixed
    assert "holds fractions already; leave the option out" in refusal(table(S=tiers), units={"S": "percent"})


def test_case_36a_an_active_share_is_known_by_the_parameters() -> None:
    F = np.array(table()["F"])
    share = np.array([0.154, 0.154, 0.053, 0.053, 0.031, 0.031])
    line = refusal(table(S=share, N=F / 6 / share, N_act=F / 6))
    assert "close to N_act/N: an active share, while S is one minus it; add --unit S=active" in line
    assert len(read(table(S=1 - share, N=F / 6 / share, N_act=F / 6))) == 6


# ---------------------------------------------------------------------- names, repeats, pairs


def test_case_38_names_are_opaque() -> None:
    names = ["SMELT x2 中文", "a/b c", "a_b_c", "NaN", "None", "007", "=cmd()"]
    endpoints = read(table(7, arch=names))
    assert endpoints.archs == tuple(sorted(names))
    trimmed = read(table(2, arch=[" Smelt", "smelt "]))
    assert trimmed.archs == ("Smelt", "smelt")
    assert {"trimmed_text", "similar_names"} <= codes(trimmed.notes)


def test_case_40_repeated_seeds() -> None:
    """1.9445, 1.9461, 1.9430: standard deviation .0016, computed by hand; all rows are kept."""
    rows = FRAME.assign(seed="0")
    one = rows.iloc[[5]]
    frame = pd.concat(
        [
            rows.drop(index=5),
            *(
                one.assign(seed=str(i), run=f"seed{i}", loss=loss)
                for i, loss in enumerate([1.9445, 1.9461, 1.9430])
            ),
        ]
    )
    study = fit(read(frame), bootstrap=0)
    found = note(study["baseline"].notes, "seed_noise")
    assert (found.count, found.severity) == (3, "info")
    assert "3 repeats of 1 setting scatter by 0.0016 nats" in found.message
    assert study["baseline"].n == 74
    assert study["baseline"].n_cells == 12


def test_case_40a_repeats_without_names() -> None:
    """Rows that share everything the table names, and differ in loss, are kept and counted."""
    small = read(table(3, F=1e9, D=1e10, loss=[1.9445, 1.9461, 1.9430]))
    assert (note(small.notes, "repeats").severity, len(small)) == ("info", 3)
    sweep = read(table(3, F=1e9, D=1e10, loss=[1.9, 2.4, 3.0]))
    assert note(sweep.notes, "repeats").severity == "warning"


def test_case_41_unpaired_designs() -> None:
    """The target lacks a cell: kept on the other side, and named."""
    study = fit(read(FRAME[(FRAME["arch"] != "smelt") | (FRAME["cell"] != "1.6B/97%")]), bootstrap=60)
    found = note(study.notes, "unmatched_cells")
    assert found.count == 1
    assert "1.6B/97%" in found.message
    assert [one.n for one in study.fits.values()] == [72, 66]
    assert study.bootstrap.paired


def test_case_43_stacked_domains_and_sources() -> None:
    """39 domains per run are 39 losses: refused with what to keep, and so are stacked sources."""
    stacked = pd.concat([FRAME.assign(domain=f"d{i:02d}", loss=FRAME["loss"] + 0.01 * i) for i in range(39)])
    lines = fit_refusal(stacked)
    assert "column domain, 39 domains of baseline (d00, d01, d02, ...)" in lines[0]
    assert lines[0].endswith("keep the rows of one domain and fit again")
    one = fit(read(stacked[stacked["domain"] == "d00"]), bootstrap=0)
    assert one.certified
    twice = pd.concat([FRAME.assign(source="wandb"), FRAME.assign(source="csv", loss=FRAME["loss"] + 0.001)])
    assert "2 sources of baseline (csv, wandb) hold the same runs" in fit_refusal(twice)[0]
    halves = FRAME.assign(source=np.where(FRAME["D"] > 1e11, "wandb", "csv"))
    assert read(halves).one_law_problems() == []


def test_case_44_repeated_data() -> None:
    """178e9 tokens of 25e9 unique ones: 7.12 epochs; more unique tokens than tokens are refused."""
    endpoints = read(table(D=178e9 + np.arange(6.0), unique_tokens=25e9))
    found = note(endpoints.notes, "repeated_data")
    assert (found.severity, found.count) == ("warning", 6)
    assert "up to 7.12" in found.message
    assert "repeated_data" not in codes(read(table(unique_tokens=np.array(table()["D"]) / 4)).notes)
    assert "2 rows (first: 1) above column D" in refusal(table(unique_tokens=2.5e10))
    assert read(table(unique_tokens=5.0), units={"unique_tokens": "B"})["unique_tokens"][0] == 5e9


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"S": 1.0}, "column S, 6 rows (first: 1) equal to 1"),
        ({"S": -0.4}, "outside [-0.05, 1)"),
        ({"F": [1e9, 1e9, 0.0, 1e9, 1e9, -1e9]}, "column F, 2 rows (first: 3) not > 0"),
        ({"D": [1e9, 1e9, 0.0, 1e9, 1e9, 1e9]}, "use step x batch tokens"),
        ({"loss": [3.0, 2.9, 0.0, 2.8, 2.7, 2.6]}, "column loss, 1 row (first: 3) not > 0"),
    ],
)
def test_case_46_impossible_values(columns: dict[str, Any], says: str) -> None:
    assert says in refusal(table(**columns))


def test_case_46a_slightly_negative_sparsity_is_legal() -> None:
    endpoints = read(table(S=-0.05))
    assert note(endpoints.notes, "negative_sparsity").count == 6


def test_case_47_low_precision() -> None:
    """Losses in half precision, or with two digits: a step of 2**-10 or .01 beside an RMSE of .005."""
    study = fit(read(FRAME.assign(loss=FRAME["loss"].round(2))), bootstrap=0)
    for one in study.fits.values():
        assert "multiples of 0.01" in note(one.notes, "low_precision").message
    assert "low_precision" not in codes(fit(read(FRAME), bootstrap=0)["smelt"].notes)
    with np.errstate(over="ignore"):
        half = np.array([1e9] * 6).astype(np.float16)
    assert "float16 ends at 65504" in refusal(table(F=half))
    single = read(table(D=np.array(table()["D"], dtype=np.float32)))
    # half a unit in the last of 24 bits is 6e-8
    assert sorted(single.D) == pytest.approx(sorted(table()["D"]), rel=6e-8)


@given(st.integers(1, 3), st.lists(st.integers(1500, 3000), min_size=8, max_size=30, unique=True))
def test_case_47a_the_resolution_of_rounded_losses(digits: int, losses: list[int]) -> None:
    rounded = np.round(np.array(losses) / 1000, digits)
    assert resolution(rounded) >= 10.0**-digits * (1 - 1e-12)
    assert resolution(rounded.astype(np.float32).astype(float)) >= 10.0**-digits * (1 - 1e-12)


def test_case_48_products_do_not_wrap() -> None:
    """1e10 * 2.15e11 = 2.15e21, where an int64 ends at 9.2e18."""
    frame = table(2, F=np.array([10**10] * 2), D=np.array([215 * 10**9, 430 * 10**9]))
    assert frame["F"].dtype == frame["D"].dtype == np.int64
    assert read(frame).C.tolist() == [2.15e21, 4.3e21]
    assert len(read(frame.assign(C=[2.15e21, 4.3e21]))) == 2


def test_case_49_order_and_threads() -> None:
    """Shuffled rows give the same bytes."""
    one = fit(read(FRAME), bootstrap=60, seed=7)
    other = fit(read(FRAME.sample(frac=1, random_state=3)), bootstrap=60, seed=7)
    drop = ("provenance",)
    first, second = ({k: v for k, v in study.to_dict().items() if k not in drop} for study in (one, other))
    assert dumps(first) == dumps(second)
    assert ce_gain(one, 1e21).equals(ce_gain(other, 1e21))


def test_case_50_pins() -> None:
    """A pin is used, drops a degree of freedom and is said."""
    study = fit(read(FRAME), bootstrap=0, pins={"E": 1.4})
    for one in study.fits.values():
        assert one.surface.coefficients["E"] == 1.4
        assert "E = 1.4" in note(one.notes, "pinned").message


@pytest.mark.parametrize(("column", "value"), [("D", 1e300), ("F", 1e40), ("N", 1e30)])
def test_case_46b_one_cell_beyond_any_training_run(column: str, value: float) -> None:
    """A single absurd cell beside sane ones is refused by row, where a median would not see it."""
    frame = example_endpoints().to_frame()
    frame.loc[7, column] = value
    with pytest.raises(DataError, match=rf"column {column}.*1 row \(first: 8\).*beyond any training run"):
        Endpoints.from_frame(frame)


def test_case_13a_digits_that_only_python_reads() -> None:
    """Underscores are refused by row; full-width digits are read, with a note that counts them."""
    frame = example_endpoints().to_frame().astype({"D": object})
    digits = str(int(frame.loc[3, "D"]))
    wide = frame.copy()
    wide.loc[3, "D"] = chr(ord(digits[0]) - ord("0") + 0xFF10) + digits[1:]
    read = Endpoints.from_frame(wide)
    assert read.digest == example_endpoints().digest
    assert [note.count for note in read.notes if note.code == "parsed_numbers"] == [1]
    frame.loc[3, "D"] = f"{int(digits):_}"
    with pytest.raises(DataError, match=r"column D, 1 row \(first: 4\) not a number"):
        Endpoints.from_frame(frame)


# ------------------------------------------------------------------ 32: what an optimiser says of itself


def test_case_32_the_certificate_decides_not_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right point under a bad status is certified; the start under a good one is refused."""
    import scipy.optimize

    minimize = scipy.optimize.minimize

    def right(*args: Any, **options: Any) -> Any:
        found = minimize(*args, **options)
        found.message, found.success = "ABNORMAL: ", False
        return found

    def lazy(fun: Any, x0: Any, **options: Any) -> Any:
        found = minimize(fun, x0, **options)
        found.x, found.fun, found.message, found.success = x0, fun(x0)[0], "CONVERGENCE", True
        return found

    own = RUNS.by_arch()["smelt"]
    truth = fit(own, bootstrap=0)
    monkeypatch.setattr(scipy.optimize, "minimize", right)
    believed = fit(own, bootstrap=0, engine="lbfgsb")
    monkeypatch.setattr(scipy.optimize, "minimize", lazy)
    lied = fit(own, bootstrap=0, engine="lbfgsb")
    for arch, one in truth.fits.items():
        assert believed[arch].certificate.certified
        assert believed[arch].objective == pytest.approx(
            one.objective, rel=1e-9
        )  # the two engines agree so far
        assert not lied[arch].certificate.certified
