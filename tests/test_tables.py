"""Results as text, markdown, CSV, JSON and LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling.analyses import ce_gain
from smelt_scaling.errors import UsageError, info, warning
from smelt_scaling.papers import load_paper
from smelt_scaling.reporting import FORMATS, render_frame, render_study, show_table
from smelt_scaling.reporting.columns import Column, support_text
from smelt_scaling.reporting.latex import escape_latex
from smelt_scaling.reporting.raw import plain_rows, to_csv, write_parquet

GOLDEN = Path(__file__).parent / "golden"


def gain_row(**changes: Any) -> dict[str, Any]:
    """Return a row of a gain table; numbers chosen by hand."""
    row: dict[str, Any] = {
        "target": "ours",
        "reference": "base",
        "budget": 1e21,
        "sparsity": 0.95,
        "gain": 0.18,
        "gain_lo": 0.081,
        "gain_hi": 0.279,
        "multiplier": 1.2195,
        "multiplier_lo": 1.088,
        "multiplier_hi": 1.387,
        "reference_budget": 1.2195e21,
        "loss": 1.7433,
        "unreachable": False,
        "hi_unreachable": False,
        "extrapolated": False,
        "support": [],
        "unreachable_draws": 0,
        "draws": 100,
        "gain_positive_share": 1.0,
    }
    return row | changes


def gain_frame(*rows: dict[str, Any]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows))
    frame.attrs = {
        "settings": {"law": "sparse-additive", "level": 0.95, "interval": "percentile"},
        "notes": [warning("unpaired", "no common cell | at all").to_dict()],
        "turnover": [
            {
                "sparsity": 0.95,
                "peak_budget": 8.2e22,
                "peak_gain": 0.253,
                "zero_crossings": [1.1e19, 1.8e25],
                "unreachable_from": None,
            }
        ],
    }
    return frame


OUTSIDE = [
    {"code": "out_F", "arch": "base", "factor": 1.0123},
    {"code": "out_C", "arch": "ours", "factor": 4.5454},
]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return gain_frame(
        gain_row(),
        gain_row(
            budget=1e22,
            gain_hi=None,
            multiplier_hi=None,
            hi_unreachable=True,
            extrapolated=True,
            support=OUTSIDE,
        ),
        gain_row(
            budget=1e25,
            gain=None,
            gain_lo=None,
            gain_hi=None,
            multiplier=None,
            reference_budget=None,
            unreachable=True,
            hi_unreachable=True,
        ),
    )


@pytest.mark.parametrize("form", ["table", "md", "latex"])
def test_people_read_what_is_compared_and_what_the_interval_holds(frame: pd.DataFrame, form: str) -> None:
    text = " ".join(render_frame("ce-gain", frame, form).split())
    assert "Compute saved by ours relative to base" in text
    assert "sampling of cells under this law only" in text
    assert "extrapolated: the optimum lies outside the runs" in text
    assert "at no finite compute does base reach that loss of ours" in text
    assert "100" not in text.replace("1.0e", "")


def test_an_interval_stands_beside_its_value_as_people_print_it(frame: pd.DataFrame) -> None:
    text = render_frame("ce-gain", frame)
    assert "18.0 % [8.1 %, 27.9 %]" in text
    assert "18.0 % [8.1 %, unreachable]" in text
    lost = next(line for line in text.splitlines() if line.startswith("1.0e25"))
    assert lost.split() == ["1.0e25", "0.950", "unreachable", "unreachable", "unreachable", "1.743"]
    assert "    † out_F ×1.01 (base), out_C ×4.5 (ours)" in text.splitlines()
    assert "1.1e19, 1.8e25" in text


def test_no_interval_is_claimed_where_there_is_none() -> None:
    table = ce_gain(load_paper("smelt"), 1e21, target="smelt", reference="baseline")
    text = render_frame("ce-gain", table)
    assert "Point estimates, no intervals" in text
    assert "[" not in text
    assert "†" not in text.partition("Where the saving peaks")[0]


@pytest.mark.parametrize("form", ["table", "md", "csv", "latex"])
def test_published_gains_as_pinned(form: str) -> None:
    suffix = {"table": "txt", "latex": "tex"}.get(form, form)
    table = ce_gain(load_paper("smelt"), [1e20, 1e21, 1e22], target="smelt", reference="baseline")
    expected = (GOLDEN / f"ce_gain_published.{suffix}").read_text(encoding="utf-8")
    actual = render_frame("ce-gain", table, form)
    if form == "csv":  # full precision differs in the last digit between platforms
        number = re.compile(r"\d\.\d{8,}")
        expected, actual = (number.sub(lambda m: m[0][:12], text) for text in (expected, actual))
    assert actual == expected


def test_text_fits_a_terminal_of_80_columns(frame: pd.DataFrame) -> None:
    assert max(map(len, render_frame("ce-gain", frame).splitlines())) <= 80


def test_columns_of_numbers_are_aligned() -> None:
    text = render_frame("ce-gain", gain_frame(gain_row(gain=0.099), gain_row(budget=1e22)))
    first, second = (line for line in text.splitlines() if line.startswith("1.0e2"))
    assert first.index("[") == second.index("[")
    assert first.index(" %") == second.index(" %")


def test_markdown_escapes_cell_borders_and_holds_the_notes() -> None:
    text = render_frame(
        "ce-gain", gain_frame(gain_row(support=OUTSIDE[:1] + [OUTSIDE[1] | {"arch": "a|b_c"}])), "md"
    )
    assert r"out\_C ×4.5 (a\|b\_c)" in text
    assert "- warning `unpaired`: no common cell \\| at all" in text
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")}
    assert widths == {8, 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50% of A_B & C#1", r"50\% of A\_B \& C\#1"),
        (r"\input{x} $5 ~ ^", r"\textbackslash{}input\{x\} \$5 \textasciitilde{} \textasciicircum{}"),
        ("× †", r"$\times$ $^\dagger$"),
    ],
)
def test_latex_escapes(text: str, expected: str) -> None:
    assert escape_latex(text) == expected


def test_latex_sets_names_and_numbers() -> None:
    row = gain_row(target="ours_50%", reference="a&b", support=OUTSIDE, extrapolated=True)
    text = render_frame("ce-gain", gain_frame(row), "latex")
    assert r"\caption{Compute saved by ours\_50\% relative to a\&b at equal loss." in text
    cells = r"$1.0 \times 10^{21}$ $^\dagger$ & $0.950$ & $18.0\,\%$ [$8.1\,\%$, $27.9\,\%$] & $\times 1.22$"
    assert cells in text
    # as wide as the text of a page, and no wider: where a row leaves the runs stands below it
    assert r"\multicolumn{6}{l}{\quad\footnotesize $^\dagger$ out\_F $\times$1.01 (base), out" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{rule}") == 2
    # a percent sign, unescaped, would comment out the rest of a line
    body = [line for line in text.splitlines() if not line.startswith("% ")]
    assert not any(re.search(r"(?<!\\)%", line) for line in body)


def test_csv_carries_full_precision_and_defuses_formulas() -> None:
    rows = [
        {"arch": "=HYPERLINK(1)", "gain": 0.1 + 0.2, "hi": None, "support": OUTSIDE, "ok": True},
        {"arch": "-x", "gain": -0.25, "hi": 1e21, "support": [], "ok": False},
        {"arch": "@x", "gain": 0.0, "hi": 2.0, "support": [], "ok": False},
        {"arch": "+x, y", "gain": 0.0, "hi": 2.0, "support": [], "ok": False},
    ]
    found = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [row["arch"] for row in found] == ["'=HYPERLINK(1)", "'-x", "'@x", "'+x, y"]
    assert [float(row["gain"]) for row in found[:2]] == [0.1 + 0.2, -0.25]
    assert (found[0]["hi"], found[0]["ok"]) == ("", "true")
    assert json.loads(found[0]["support"]) == OUTSIDE
    assert found[1]["support"] == ""


def test_json_is_strict_and_complete(frame: pd.DataFrame) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    text = render_frame("ce-gain", frame.assign(gain=[np.nan, np.inf, 0.1]), "json", provenance={"argv": []})
    record = json.loads(text, parse_constant=refuse)
    assert list(record) == [
        "schema_version",
        "command",
        "settings",
        "rows",
        "notes",
        "provenance",
        "turnover",
    ]
    assert record["schema_version"] == 1
    assert record["command"] == "ce-gain"
    assert [row["gain"] for row in record["rows"]] == [None, None, 0.1]
    assert record["rows"][1]["support"] == OUTSIDE
    assert record["notes"] == [
        {"code": "unpaired", "severity": "warning", "message": "no common cell | at all", "count": 1}
    ]


def test_plain_rows_hold_plain_values() -> None:
    frame = pd.DataFrame(
        {
            "n": np.array([1, 2]),
            "b": np.array([True, False]),
            "x": [np.float64(0.5), np.nan],
            "s": ["a", None],
        }
    )
    rows = plain_rows(frame)
    assert [{key: type(value) for key, value in row.items()} for row in rows] == [
        {"n": int, "b": bool, "x": float, "s": str},
        {"n": int, "b": bool, "x": type(None), "s": type(None)},
    ]


def test_parquet_keeps_values_and_types(frame: pd.DataFrame, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(write_parquet(frame, tmp_path / "gain.parquet"))
    assert table.to_pylist() == plain_rows(frame)
    types = {
        name: str(table.schema.field(name).type) for name in ("budget", "draws", "unreachable", "target")
    }
    assert types == {"budget": "double", "draws": "int64", "unreachable": "bool", "target": "string"}
    # a column without values keeps its type, so that files of several runs can be joined
    empty = pq.read_table(write_parquet(gain_frame(gain_row(gain_hi=None)), tmp_path / "empty.parquet"))
    assert str(empty.schema.field("gain_hi").type) == "double"
    assert empty.schema.field("support").type == table.schema.field("support").type


def test_a_factor_beyond_one_never_prints_as_one() -> None:
    assert support_text([{"code": "out_D", "arch": "a", "factor": 1.0042}]) == "out_D ×1.0042 (a)"
    assert support_text([{"code": "out_C", "arch": "a", "factor": 45454.0}]) == "out_C ×4.55e4 (a)"


@pytest.mark.parametrize(
    ("column", "row", "expected"),
    [
        (Column(key="x", header="x", kind="quantity"), {"x": 1.5e21}, "1.5e21"),
        (Column(key="x", header="x", kind="size"), {"x": 1.5e9}, "1.5B"),
        (Column(key="x", header="x", kind="multiplier"), {"x": 1.355}, "×1.35"),
        (Column(key="x", header="x", kind="number", digits=3), {"x": None}, "n/a"),
        (Column(key="x", header="x", kind="quantity", absent="none"), {"x": None}, "none"),
        (Column(key="x", header="x", kind="quantities"), {"x": []}, "none"),
        (
            Column(key="x", header="x", kind="multiplier", interval=True),
            {"x": 1.2, "x_lo": 1.1, "x_hi": math.inf},
            "×1.20 [×1.10, unreachable]",
        ),
        (
            Column(key="x", header="x", kind="quantity", interval=True),
            {"x": 1e9, "x_lo": 9e8, "x_hi": 2e9},
            "1.0e9 [9.0e8, 2.0e9]",
        ),
        (
            Column(key="x", header="x", kind="percent", interval=True, unreachable=True),
            {"x": 0.5, "x_lo": None, "x_hi": None, "hi_unreachable": True},
            "50.0 % unreachable",
        ),
    ],
)
def test_cells(column: Column, row: dict[str, Any], expected: str) -> None:
    assert str(column.cell(row)) == expected


def test_unknown_formats_and_commands_are_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="format 'xml' is unknown; choose from table, md, csv, json, latex"):
        render_frame("ce-gain", frame, "xml")
    with pytest.raises(UsageError, match="command 'gain' has no table"):
        render_frame("gain", frame, "md")
    assert FORMATS == ("table", "md", "csv", "json", "latex", "html")


def test_a_study_as_a_table_names_what_was_not_fitted() -> None:
    from smelt_scaling.endpoints import Endpoints
    from smelt_scaling.study import fit

    size, tokens = (
        axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9, 6.4e9], [2e9, 8e9, 3.2e10, 1.3e11])
    )
    runs = Endpoints.from_frame(
        {
            "arch": ["a"] * len(size),
            "run": [str(i) for i in range(len(size))],
            "F": 6 * size,
            "S": [0.9] * len(size),
            "D": tokens,
            "loss": 1.7 + 400 * size**-0.34 + 410 * tokens**-0.28,
        }
    )
    study = fit(runs, bootstrap=0, pins={"E": 1.7})
    rows = {row["parameter"]: row for row in csv.DictReader(io.StringIO(render_study(study, "csv")))}
    assert (rows["b"]["state"], rows["b"]["value"]) == ("not identified", "")
    assert rows["E"]["state"] == "held"
    assert float(rows["E"]["value"]) == pytest.approx(1.7, rel=1e-15)
    assert float(rows["c"]["value"]) == pytest.approx(
        0.28, abs=1e-6
    )  # noise-free, so the optimum is the truth
    markdown = render_study(study, "md")
    assert "| b | not identified |" in markdown
    assert "| E | 1.700 (held) |" in markdown
    assert "Point estimates, no intervals." in markdown


def test_a_wide_table_wraps_its_widest_column_of_text() -> None:
    from smelt_scaling.reporting.document import Cell, Document, Grid
    from smelt_scaling.reporting.text import to_text

    row = (Cell(point="a name that goes on " * 4), Cell(point="1.0", beside="[0.9, 1.1]"))
    grid = Grid(headers=("name", "value"), numeric=(False, True), rows=(row, row))
    lines = to_text(Document(title="t", caption=(), grids=(grid,))).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("name ")
    assert lines[3].endswith("  1.0 [0.9, 1.1]")
    place = lines[2].index("value")
    assert (
        " ".join(line[:place].strip() for line in lines[3:]).split() == ("a name that goes on " * 8).split()
    )


def test_an_end_below_zero_keeps_its_sign() -> None:
    row = gain_row(gain=0.024, gain_lo=-0.004, gain_hi=0.0961)
    for form, expected in {"table": "2.4 % [-0.4 %, 9.6 %]", "md": "2.4 % [-0.4 %, 9.6 %]"}.items():
        assert expected in render_frame("ce-gain", gain_frame(row), form)
    assert r"$2.4\,\%$ [$-0.4\,\%$, $9.6\,\%$]" in render_frame("ce-gain", gain_frame(row), "latex")


@pytest.mark.parametrize("form", ["table", "md", "latex"])
def test_budgets_of_peaks_outside_the_runs_are_marked(form: str) -> None:
    table = gain_frame(gain_row())
    table.attrs["window"] = (1.3e19, 2.2e21)  # 1.1e19, 8.2e22 and 1.8e25 are outside
    text = " ".join(render_frame("ce-gain", table, form).split())
    if form == "latex":
        assert r"$8.2 \times 10^{22}$ $^\dagger$ & $25.3\,\%$ & $1.1 \times 10^{19}$ $^\dagger$" in text
        assert r"the runs cover C from $1.3 \times 10^{19}$ to $2.2 \times 10^{21}$" in text
    else:
        assert re.search(r"8\.2e22 † [| ]*25\.3 % [| ]*1\.1e19 †, 1\.8e25 †", text)
        assert "the runs cover C from 1.3e19 to 2.2e21" in text
    assert text.count("extrapolated: ") == 1
    table.attrs["window"] = (1e19, 1e26)
    inside = render_frame("ce-gain", table, form)
    assert "†" not in inside
    assert "dagger" not in inside
    table.attrs["window"] = None
    unknown = " ".join(render_frame("ce-gain", table, form).split())
    assert "which budgets the runs cover is not known" in unknown
    table.attrs["window"] = (1e22, 1e20)
    apart = " ".join(render_frame("ce-gain", table, form).split())
    assert "the runs of the two have no budget in common" in apart


def test_warnings_of_a_latex_table_can_be_seen() -> None:
    table = gain_frame(gain_row())
    table.attrs["notes"] = [
        warning("simulated", "144 endpoints are simulated").to_dict(),
        info("sampling_only", "intervals hold the sampling of cells").to_dict(),
    ]
    body = [line for line in render_frame("ce-gain", table, "latex").splitlines() if not line.startswith("%")]
    assert sum("144 endpoints are simulated" in line for line in body) == 1
    assert not any("intervals hold the sampling of cells" in line for line in body)


def test_latex_tables_have_at_most_seven_columns() -> None:
    from smelt_scaling.analyses import allocate

    text = render_frame("allocate", allocate(load_paper("smelt"), [1e21, 1e22]), "latex")
    assert "{tabular}{lrrrrrr}" in text
    assert "N* &" not in text.replace("D*/N*", "")  # F* says it already
    assert " D*/N* & loss" in text


def test_show_table_is_what_the_command_line_prints() -> None:
    from smelt_scaling import allocate, design_report, example_endpoints, predict, reproduce

    paper = load_paper("smelt")
    frames = {
        "ce-gain": ce_gain(paper, 1e21),
        "allocate": allocate(paper, 1e21),
        "predict": predict(paper, {"F": 1e10, "D": 1e11, "S": 0.9}),
        "check": design_report(example_endpoints()),
        "reproduce": reproduce(paper),
    }
    for command, table in frames.items():
        for form in FORMATS:
            assert show_table(table, form) == render_frame(command, table, form)
    assert show_table(frames["allocate"][["arch", "tokens_per_param"]], "csv").startswith("arch,")
    for other in (pd.DataFrame({"gain": [1.0]}), pd.DataFrame({"x": [1.0]})):
        with pytest.raises(UsageError, match="not the result of an analysis"):
            show_table(other)


def test_a_prediction_says_what_its_mark_means_and_claims_no_interval() -> None:
    from smelt_scaling.analyses import predict

    text = " ".join(
        render_frame("predict", predict(load_paper("smelt"), {"F": 1e10, "D": 1e11, "S": 0.99})).split()
    )
    assert "Point estimates, no intervals" in text
    assert "Intervals are" not in text
    text = render_frame("predict", predict(load_paper("marin"), {"C": 1e30}))
    if "†" in text:
        assert "the requested point lies outside the runs" in " ".join(text.split())


def test_folding_breaks_at_separators_and_never_within_a_word() -> None:
    from smelt_scaling.formatting import fold

    assert fold("mixture-of-experts/top-2 model", 12) == ["mixture-of-", "experts/top-", "2 model"]
    assert fold("one two", 3) == ["one", "two"]
    assert fold("abcdefgh-ij", 6) == ["abcde…", "ij"]
    assert fold("a b c", 5, first="* ", indent="    ") == ["* a b", "    c"]
    assert fold("", 5) == []


def test_many_or_long_architectures_fit_80_columns() -> None:
    from smelt_scaling import allocate, design_report, example_endpoints, fit, predict
    from smelt_scaling.endpoints import Endpoints

    long = "mixture-of-experts-top-2-with-shared-expert-and-a-looped-middle-v3"
    single = "x" * 90
    one = example_endpoints().to_frame().query("arch == 'smelt'")
    runs = Endpoints.from_frame(pd.concat([one.assign(arch=name) for name in (long, single, "c", "d")]))
    study = fit(runs, bootstrap=0)
    tables = [
        design_report(runs),
        allocate(study, 1e21),
        predict(study, {"F": 1e10, "D": 1e11, "S": 0.99}),
        ce_gain(study, [1e21, 1e22], target=long, reference="c"),
    ]
    for table in tables:
        lines = show_table(table).splitlines()
        assert max(map(len, lines)) <= 80
    design = show_table(tables[0])
    assert design.count("cell labels ") == 2  # blocks of whole columns, the first column in each
    assert "sparsity tiers" in design
    assert "mixture-of-experts-\n" in re.sub(" +\n", "\n", design) or "mixture-of-experts-" in design
    assert re.search(r"x+… is", design)  # what was shortened is spelled out
    assert design.count("x") >= 90


def test_two_columns_of_long_names_share_the_width_that_is_left() -> None:
    """One of them at its narrowest and the other at ease would shorten words that have room."""
    from smelt_scaling.reporting.document import Cell, Document, Grid
    from smelt_scaling.reporting.text import to_text

    names = [f"wandb/run-{share}%_lr3e-4_wd0.1-very-long-configuration-name" for share in (33, 50)]
    rows = tuple((Cell(point=one), Cell(point=other), Cell(point="0.5")) for one in names for other in names)
    grid = Grid(headers=("level", "against", "P"), numeric=(False, False, True), rows=rows)
    lines = to_text(Document(title="t", caption=(), grids=(grid,))).splitlines()[2:]
    head = lines[0]
    first, second = head.index("against"), head.index("P") - head.index("against")
    assert abs(first - second) <= len("configuration-")  # a fold takes the longest word that fits
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert "".join(line[:first].strip() for line in lines[1:]).startswith(names[0])
