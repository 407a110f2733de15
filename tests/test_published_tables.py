"""Coefficients typed from a paper: read with their digits, checked, and as good as those of a paper that is shipped.

Expected gains are those computed from the paper's printed coefficients outside this package, and closed forms.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt_scaling import (
    allocate,
    ce_gain,
    load_paper,
    notes_of,
    predict,
    read_published,
    reproduce,
    show_table,
)
from smelt_scaling.cli import run
from smelt_scaling.errors import DataError, SmeltScalingError, UsageError

TYPED = """arch,E,A,K,a,b,c
baseline,1.4439,1.366e3,1.975e6,0.3703,0.1530,0.6594
smelt,1.4493,1.963e3,5.264e6,0.3892,0.1460,0.7011
"""
#: Gains of these coefficients at 1e20, 1e21 and 1e22 FLOPs, for S = .846, .947, .969: computed in plain
#: arithmetic from the closed form, outside this package.
GAINS = {
    0.846: (0.09908, 0.17996, 0.23434),
    0.947: (0.07815, 0.15799, 0.20907),
    0.969: (0.06728, 0.14646, 0.19562),
}
BUDGETS = [1e20, 1e21, 1e22]


@pytest.fixture
def typed(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "typed.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refusal(path: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_published(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def note(frame: pd.DataFrame, code: str) -> str:
    (found,) = [one.message for one in notes_of(frame) if one.code == code]
    return found


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", GAINS)
def test_a_table_typed_by_hand_gives_the_published_gains(typed: Callable[..., Path], sparsity: float) -> None:
    frame = ce_gain(
        read_published(typed(TYPED)), BUDGETS, target="smelt", reference="baseline", sparsities=sparsity
    )
    assert frame["gain"].tolist() == pytest.approx(GAINS[sparsity], abs=1e-5)  # five printed decimals
    shipped = ce_gain(load_paper("smelt"), BUDGETS, target="smelt", reference="baseline", sparsities=sparsity)
    for name in ("gain", "multiplier", "reference_budget", "loss", "gain_rounding"):
        assert frame[name].tolist() == shipped[name].tolist()  # the same digits, so the same arithmetic


def test_two_architectures_in_closed_form(typed: Callable[..., Path]) -> None:
    """At a = c = 1/2 the frontier is E + 2 sqrt(A K) C^-1/4: a quarter of A K is 16 times the compute."""
    path = typed("arch,E,A,K,a,c\nref,1.5,400,400,0.5,0.5\ntgt,1.5,200,200,0.5,0.5\n")
    paper = read_published(path)
    frame = ce_gain(paper, [1e18, 1e24], target="tgt", reference="ref")
    assert frame["multiplier"].tolist() == pytest.approx([16, 16], rel=1e-12)  # rounding of doubles
    assert frame["gain"].tolist() == pytest.approx([15 / 16, 15 / 16], rel=1e-12)
    assert frame["loss"].tolist() == pytest.approx(
        [1.5 + 400 * 1e18**-0.25, 1.5 + 400 * 1e24**-0.25], rel=1e-12
    )
    best = allocate(paper, 1e18, archs="ref")
    assert best["flops_per_token"].tolist() == pytest.approx([1e9], rel=1e-12)


@pytest.mark.parametrize("form", ["records", "text", "columns", "parquet", "semicolons", "utf-16"])
def test_every_format_of_a_table_is_one_table(tmp_path: Path, form: str) -> None:
    frame = pd.read_csv(io.StringIO(TYPED), dtype=str)
    path = tmp_path / "typed"
    if form == "records":
        path.write_text(pd.read_csv(io.StringIO(TYPED)).to_json(orient="records"))
    elif form == "text":
        path.write_text(json.dumps(frame.to_dict("records")))
    elif form == "columns":
        path.write_text(json.dumps(frame.to_dict("list")))
    elif form == "parquet":
        frame.to_parquet(path)
    elif form == "semicolons":
        path.write_text("# typed from the paper\n\n" + TYPED.replace(",", ";"))
    else:
        path.write_text(TYPED, encoding="utf-16")
    paper, shipped = read_published(path), load_paper("smelt")
    for arch in ("baseline", "smelt"):
        assert paper.surfaces[arch].coefficients == shipped.surfaces[arch].coefficients
    gains = [ce_gain(p, 1e21, sparsities=0.947)["gain_rounding"][0] for p in (paper, shipped)]
    # numbers of JSON have lost trailing zeros (0.1530 is 0.153), so they count as rounded more coarsely, never less
    assert gains[0] >= gains[1] if form == "records" else gains[0] == gains[1]


def test_the_law_is_known_by_its_columns_or_named(typed: Callable[..., Path]) -> None:
    def law(text: str) -> str:
        return next(iter(read_published(typed(text)).surfaces.values())).law.name

    assert law(TYPED) == "sparse-additive"
    assert law("arch,E,A,K,a,c\nx,1,2,3,.3,.4\n") == "additive"
    assert law("arch,E,A,B,alpha,beta\nx,1,2,3,.3,.4\n") == "chinchilla"
    assert law("arch,alpha,A,E\nx,.3,2,1\n") == "power-c"
    assert law("arch,law,alpha,A,E\nx,,.3,2,1\ny,E + A*D**-alpha,.3,2,1\n") == "E + A*D**-alpha"
    assert law("arch,law,E,A,B,a,b\nx,E + A*N_act**-a + B*D**-b,1,2,3,.3,.4\n") == "E + A*N_act**-a + B*D**-b"


def test_logarithms_and_another_ratio_of_flops_to_parameters(typed: Callable[..., Path]) -> None:
    """Chinchilla's TeX coefficients: N* = 2.2170e9 at 1e21 with C = 6 N D; with 8 it is that of 6/8 of the compute."""
    row = "tex,log,0.5267228,6.0073404,6.0179186,0.33917084,0.2849083"
    head = "arch,form,E,A,B,alpha,beta"
    paper = read_published(typed(f"{head}\n{row}\n"))
    assert paper.surfaces["tex"].coef.tolist() == load_paper("chinchilla").surfaces["tex"].coef.tolist()
    six = allocate(paper, [1e21, 7.5e20])
    assert six["dense_params"][0] == pytest.approx(2.2170e9, rel=5e-5)  # five printed digits
    eight = read_published(typed(f"{head},flops_per_param\n{row},8\n"))
    frame = allocate(eight, 1e21)
    assert frame["dense_params"][0] == pytest.approx(six["dense_params"][1], rel=1e-12)
    assert "F = 8 N" in note(frame, "flops_per_param")
    assert frame.attrs["settings"]["flops_per_param"] == 8


def test_windows_are_those_of_each_architecture(typed: Callable[..., Path]) -> None:
    text = TYPED.replace("c\n", "c,C_lo,C_hi,F_lo,F_hi,S\n", 1)
    lines = text.splitlines()
    path = typed(f"{lines[0]}\n{lines[1]},1e18,1e21,,,94.7%\n{lines[2]},1e18,1e22,1e8,2e9,0.947\n")
    frame = ce_gain(read_published(path), [1e19, 1e21], target="smelt", reference="baseline")
    assert frame["sparsity"].tolist() == [0.947, 0.947]
    support = [[(item["code"], item["arch"]) for item in items] for items in frame["support"]]
    # at 1e21 smelt's F* of 9.0e9 is beyond 2e9, and baseline's C_ref of 1.19e21 beyond 1e21
    assert support == [[], [("out_F", "smelt"), ("out_C", "baseline")]]


def test_nothing_says_at_which_sparsity_to_compare(typed: Callable[..., Path]) -> None:
    paper = read_published(typed(TYPED))
    with pytest.raises(UsageError, match="name one with --sparsity 0.947, or a column S"):
        ce_gain(paper, 1e21)
    assert len(ce_gain(paper, 1e21, sparsities=0.5)) == 1


# -- rounding ----------------------------------------------------------------------------------------------------------


def brute_force(budget: float, digits: list[tuple[float, float]]) -> float:
    """Move each of E, A, alpha of target and reference by half its last digit, in the formula written out."""

    def gain(v: list[float]) -> float:
        loss = v[0] + v[1] * budget ** -v[2]
        return float(1 - budget / ((loss - v[3]) / v[4]) ** (-1 / v[5]))

    point = [value for value, _ in digits]
    total = 0.0
    for i, (value, half) in enumerate(digits):
        moved = [gain([*point[:i], value + sign * half, *point[i + 1 :]]) for sign in (1, -1)]
        total += max(abs(one - gain(point)) for one in moved)
    return total


def test_the_digits_typed_bound_the_gain(typed: Callable[..., Path]) -> None:
    path = typed("arch,E,A,alpha\ntgt,1.60,81.68,0.0912\nref,1.6,88.32,0.0914\n")
    frame = ce_gain(read_published(path), [1e20, 1e22], target="tgt", reference="ref")
    tgt, ref = [(1.6, 0.005), (81.68, 0.005), (0.0912, 5e-5)], [(1.6, 0.05), (88.32, 0.005), (0.0914, 5e-5)]
    expected = [brute_force(budget, tgt + ref) for budget in (1e20, 1e22)]
    assert frame["gain_rounding"].tolist() == pytest.approx(
        expected, rel=1e-9
    )  # differences of doubles near 1
    message = note(frame, "rounded_coefficients")
    assert f"a gain by up to {100 * max(expected):.2g} points (column gain_rounding)" in message


def test_a_trailing_zero_is_a_digit(typed: Callable[..., Path]) -> None:
    coarse, fine = (
        ce_gain(
            read_published(typed(f"arch,E,A,alpha\nx,1.5,{a},0.0912\ny,1.5,88,0.0941\n")), 1e20, target="x"
        )["gain_rounding"][0]
        for a in ("82", "82.000")
    )
    assert fine < coarse


def test_rounding_explains_what_the_paper_printed_otherwise(typed: Callable[..., Path]) -> None:
    """18.0 % was printed where these coefficients give 17.996 %: within rounding, and so is every other gain."""
    paper = read_published(typed(TYPED))
    printed = load_paper("smelt").tables["ce_gain"]
    at = printed.sparsities()
    judged = reproduce(load_paper("smelt"))
    judged = judged[(judged["table"] == "ce_gain") & (judged["quantity"] == "gain")].set_index("row")
    for row in printed.records():
        name = f"{row['budget']} {row['tier']}"
        frame = ce_gain(
            paper, float(row["budget"]), target="smelt", reference="baseline", sparsities=at[row["tier"]]
        )
        # allowed = this rounding, and half a unit of the last printed digit, .1 point
        assert frame["gain_rounding"][0] == pytest.approx(judged["allowed"][name] - 0.0005, rel=1e-9)


def test_rounding_may_decide_whether_there_is_a_gain_at_all(typed: Callable[..., Path]) -> None:
    """Far out, a floor rounded to 1.45 or 1.44 is or is not below the target's loss: no bound is made up."""
    path = typed("arch,E,A,alpha\ntgt,1.45,80.0,0.0912\nref,1.45,88.0,0.0912\n")
    frame = ce_gain(read_published(path), 1e50, target="tgt", reference="ref")
    assert frame["gain"].notna().all()
    assert frame["gain_rounding"].isna().all()
    assert "may be out of reach" in note(frame, "rounded_coefficients")


def test_a_gain_out_of_reach_has_no_rounding_either(typed: Callable[..., Path]) -> None:
    """At exponents of a thousandth the reference needs e^700 times as much: no gain, and nothing that bounds it."""
    path = typed("arch,E,A,alpha\ntgt,1.6,8.832,0.003\nref,1.6,8.832,0.001\n")
    frame = ce_gain(read_published(path), 1e21, target="tgt", reference="ref")
    assert frame["unreachable"].all()
    assert frame["gain"].isna().all()
    assert frame["gain_rounding"].isna().all()
    message = note(frame, "rounded_coefficients")
    assert message == (
        "coefficients are rounded as printed: in 1 row nothing bounds the gain, since within it the loss may be "
        "out of reach"
    )


def test_strict_refuses_what_nothing_says_to_be_within_the_runs(
    typed: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    strict = ["--budget", "1e21", "--strict", "--target", "x", "--reference", "y"]
    head, rows = "arch,E,A,alpha", ("x,1.6,82.0,0.0912", "y,1.6,88.0,0.0912")
    known = typed(f"{head},C_lo,C_hi\n{rows[0]},1e18,1e23\n{rows[1]},1e18,1e23\n")
    assert run(["ce-gain", "--published", str(known), *strict]) == 0
    for path in (
        typed(f"{head}\n{rows[0]}\n{rows[1]}\n"),
        typed(f"{head},C_lo,C_hi\n{rows[0]},1e18,1e23\n{rows[1]},,\n"),
    ):
        assert run(["ce-gain", "--published", str(path), *strict]) == 5
        assert "1 of 1 rows: no window of the runs is known" in capsys.readouterr().err
    assert run(["predict", "--published", str(path), "--at", "C=1e21", "--strict"]) == 5


@pytest.mark.parametrize(
    "text",
    [
        "arch,E,A,alpha\nref,1.6,8.832,0.003\ntgt,1.6,88.32,0.003\n",
        "arch,E,A,K,a,c\nref,1.6,8.832,8.832,0.006,0.006\ntgt,1.6,88.32,88.32,0.006,0.006\n",
    ],
)
def test_a_loss_that_costs_the_reference_nothing(typed: Callable[..., Path], text: str) -> None:
    """C_ref/C = 10^(-1/.003) = 10^-333: below any double, and so is the gain; neither an error nor a warning."""
    frame = ce_gain(read_published(typed(text)), 1e21, target="tgt", reference="ref")
    assert frame[["multiplier", "reference_budget"]].iloc[0].tolist() == [0.0, 0.0]
    assert not frame["unreachable"].any()
    row = json.loads(show_table(frame, "json"))["rows"][0]
    assert (row["gain"], row["gain_rounding"]) == (None, None)


def test_surfaces_without_a_printed_table_have_no_rounding(typed: Callable[..., Path]) -> None:
    paper = replace(read_published(typed("arch,E,A,alpha\nx,1.6,82,0.09\ny,1.6,88,0.09\n")), tables={})
    frame = ce_gain(paper, 1e21, target="x", reference="y")
    # (88/82)^(1/.09) by hand
    assert frame["multiplier"][0] == pytest.approx((88 / 82) ** (1 / 0.09), rel=1e-12)
    assert "gain_rounding" not in frame


def test_allocations_and_predictions_carry_the_rounding(typed: Callable[..., Path]) -> None:
    paper = read_published(typed("arch,E,A,K,a,c\nx,1.5,400,400,0.50,0.50\n"))
    at = {"F": 1e9, "D": 1e10}
    point = 1.5 + 400 * 1e9**-0.5 + 400 * 1e10**-0.5
    expected = 0.05 + sum(0.5 * x**-0.5 + 400 * (x**-0.495 - x**-0.5) for x in at.values())
    frame = predict(paper, at)
    assert frame["loss"][0] == pytest.approx(point, rel=1e-12)
    assert f"the loss by up to {expected:.2g} nats/token" in note(frame, "rounded_coefficients")
    # F* = (a A C^c/(c K))^(1/(a+c)): dlnF* is half of dlnA, and so on; the exponents weigh most
    message = note(allocate(paper, 1e18), "rounded_coefficients")
    assert "moves F* by up to" in message
    assert "D*/N* by up to" in message


def test_fitted_surfaces_have_no_printed_digits() -> None:
    from smelt_scaling import example_endpoints, fit

    frame = ce_gain(fit(example_endpoints(), bootstrap=0), 1e21)
    assert "gain_rounding" not in frame.columns
    assert "rounded_coefficients" not in {one.code for one in notes_of(frame)}


# -- what is refused ---------------------------------------------------------------------------------------------------

HEAD, ONE, TWO = TYPED.splitlines()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TYPED.replace("arch,", "model,"), "no column arch"),
        (f"{HEAD}\n", "no rows: a table of coefficients has one per architecture"),
        (TYPED.replace("smelt", "baseline"), "baseline (row 2) is there before"),
        (TYPED.replace("smelt", ""), "no name (row 2): an architecture needs a name"),
        (f"{HEAD},rmse\n{ONE},.005\n{TWO},.009\n", "column rmse: no coefficient of law sparse-additive"),
        (TYPED.replace(",K,", ",K2,"), "no column K: law sparse-additive has E, A, K, a, b, c"),
        (TYPED.replace("1.366e3", ""), "column A, baseline (row 1) missing"),
        (TYPED.replace("1.366e3", "about 1400"), "column A, baseline (row 1) is 'about 1400': no number"),
        (TYPED.replace("1.366e3", "nan"), "column A, baseline (row 1) is 'nan': no number"),
        (TYPED.replace("1.366e3", "inf"), "column A, baseline (row 1) is 'inf': no number"),
        (TYPED.replace("1.366e3", "1e400"), "column A, baseline (row 1) is 1e400: it must be > 0 and finite"),
        (TYPED.replace("1.366e3", "1_366"), "is '1_366': no number"),
        (TYPED.replace("1.366e3", "\u0661366"), "no number"),
        (TYPED.replace("1.366e3", "0"), "column A, baseline (row 1) is 0: it must be > 0"),
        (TYPED.replace("1.4493", "-1.4493"), "column E, smelt (row 2) is -1.4493: it must be >= 0"),
        (TYPED.replace("0.3703", "-0.3703"), "it must be > 0 and finite; the minus is in the law"),
        (f"{HEAD},law\n{ONE},additive\n{TWO},sparse-additive\n", "column law: 2 laws"),
        (f"{HEAD},law\n{ONE},quadratic\n{TWO},\n", "column law, row 1: law 'quadratic' is unknown"),
        (f"{HEAD},C_lo\n{ONE},1e19\n{TWO},\n", "columns C_lo, C_hi, baseline (row 1): a range is two numbers"),
        (f"{HEAD},C_lo,C_hi\n{ONE},2e21,1e19\n{TWO},,\n", "the lower first"),
        (f"{HEAD},S\n{ONE},.9\n{TWO},.95\n", "column S says .9 and .95: it holds for the whole table"),
        (f"{HEAD},S\n{ONE},95\n{TWO},95\n", "(row 2): it must be a fraction in [0, 1)"),
        (f"{HEAD},flops_per_param\n{ONE},0\n{TWO},0\n", "it must be > 0 and finite"),
        (f"{HEAD},loss_unit\n{ONE},bits/byte\n{TWO},\n", "column loss_unit says bits/byte and nats/token"),
        (f"{HEAD},loss_unit\n{ONE},dits\n{TWO},dits\n", "it says nats/token or bits/byte"),
        (f"{HEAD},form\n{ONE},ln\n{TWO},\n", "column form, baseline (row 1): it says natural or log"),
        (f"{HEAD},form\n{ONE},log\n{TWO},\n", "is 1.366e3: it must be > 0 and finite"),  # e**1366
    ],
)  # fmt: skip
def test_a_table_of_coefficients_is_checked_cell_by_cell(
    typed: Callable[..., Path], text: str, says: str
) -> None:
    lines = refusal(typed(text))
    assert any(says in line for line in lines), lines


def test_every_problem_is_told_at_once(typed: Callable[..., Path]) -> None:
    lines = refusal(typed(TYPED.replace("1.366e3", "x").replace("0.7011", "").replace("smelt", "baseline")))
    assert len(lines) == 3


def test_a_name_that_is_neither_a_paper_nor_a_file(
    typed: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        UsageError, match=r"neither a paper that is shipped \(smelt, chinchilla, marin\) nor a file"
    ):
        read_published("gpt")
    monkeypatch.chdir(typed(TYPED.replace("smelt", "mine"), "smelt").parent)
    assert read_published("smelt") is load_paper("smelt")  # a shipped name is never shadowed by a file
    assert sorted(read_published("./smelt").surfaces) == ["baseline", "mine"]


@given(
    cells=st.lists(
        st.sampled_from(
            ["1.4", "-1", "", "nan", "1e999", "x", "0", "log", "1e-400", "95%", "\u0661", "1,5", '"']
        ),
        min_size=9,
        max_size=9,
    )
)
def test_no_table_ends_in_a_traceback(cells: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "typed.csv"
    path.write_text("arch,E,A,K,a,c,form,S,C_lo,C_hi\nx," + ",".join(cells) + "\n", encoding="utf-8")
    try:
        coefficients = read_published(path).surfaces["x"].coef
    except SmeltScalingError as error:
        said = str(error)
    else:
        said = f"{path}: read"
        assert np.isfinite(coefficients).all()
        assert (coefficients[1:] > 0).all()
    assert said.startswith(f"{path}: ")


# -- the command line --------------------------------------------------------------------------------------------------

ASKED = {
    "ce-gain": ["--budget", "1e21", "--target", "smelt", "--reference", "baseline", "--sparsity", "0.947"],
    "allocate": ["--budget", "1e21", "--sparsity", "0.947"],
    "predict": ["--at", "F=1e10,D=1e11,S=0.947"],
}


@pytest.mark.parametrize("command", ASKED)
def test_the_notebook_is_the_command_line(
    typed: Callable[..., Path], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = typed(TYPED)
    assert run([command, "--published", str(path), *ASKED[command], "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    paper = read_published(path)
    frame = {
        "ce-gain": lambda: ce_gain(paper, 1e21, target="smelt", reference="baseline", sparsities=0.947),
        "allocate": lambda: allocate(paper, 1e21, sparsities=0.947),
        "predict": lambda: predict(paper, {"F": 1e10, "D": 1e11, "S": 0.947}),
    }[command]()
    for name in ("gain", "gain_rounding", "loss", "tokens"):
        if name in frame.columns:
            assert [row[name] for row in document["rows"]] == frame[name].tolist()
    assert "rounded_coefficients" in {one["code"] for one in document["notes"]}
    assert document["provenance"]["published"] == str(path)
    assert len(document["provenance"]["input_sha256"]) == 64
    for form in ("table", "md", "csv", "latex"):
        assert run([command, "--published", str(path), *ASKED[command], "--format", form]) == 0
        said = capsys.readouterr()
        assert "rounded" in said.out + said.err


def test_exit_codes(typed: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ASKED["ce-gain"]
    assert run(["ce-gain", "--published", "gpt", *asked]) == 2
    assert run(["ce-gain", "--published", str(typed(TYPED.replace("1.366e3", "x"))), *asked]) == 3
    assert run(["ce-gain", "--published", str(typed("x").parent), *asked]) == 2
    assert "a folder; name the table in it, or read a saved study with --study" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TYPED.encode())))
    assert run(["ce-gain", "--published", "-", *ASKED["ce-gain"], "--format", "csv"]) == 0
    assert "0.15799" in capsys.readouterr().out


def test_commas_and_the_name_of_the_first_column_are_met_with_their_fix(typed: Callable[..., Path]) -> None:
    """1,366 is 1.366 in one country and 1366 in another: both readings are named, none is taken."""
    (said,) = refusal(typed("arch;E;A;K;a;b;c\nx;1.4;1,366;1e6;0.3;0.1;0.6\n"))
    assert said.endswith(
        "is '1,366': no number such as 0.3703, 1.366e3 or 94.7%; use a decimal point, and "
        "nothing between thousands"
    )
    (said,) = refusal(typed("model,E,A,B,alpha,beta\nx,1.69,406.4,410.7,0.34,0.28\n"))
    assert said.endswith("; call the column model arch")
