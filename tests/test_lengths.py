"""Gains by document length: ratios a simulated world was built to have, and what bad tables say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from smelt_scaling import DataError, UsageError, length_gains, load_paper, notes_of
from smelt_scaling.analyses.ratio_sets import fieller

BUCKETS = [32, 64, 128, 256, 512, 1024, 2048, 4096]
CELLS = [f"{size}/{tier}" for size in ("200M", "400M", "800M", "1.6B") for tier in ("85%", "95%", "97%")]
#: Printed ratios of the survey's three contrasts, in its own order.
PRINTED = {
    name: float(ratio)
    for name, ratio in zip(
        load_paper("smelt").tables["lengths"].column("contrast"),
        load_paper("smelt").tables["lengths"].column("ratio"),
        strict=True,
    )
}


def world(ratios: dict[str, float], *, noise: float = 0.0, seed: int = 0, horizons: int = 2) -> pd.DataFrame:
    """Pairs whose long documents (above 256 tokens) gain ``ratio`` times what short ones gain, on average over cells.

    Sizes of the gain differ by cell; noise of a cell's bucket has mean 0 over cells, so means are exact.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for contrast, ratio in ratios.items():
        scatter = rng.normal(size=(len(CELLS), len(BUCKETS)))
        scatter -= scatter.mean(axis=0)
        for c, cell in enumerate(CELLS):
            size = 0.02 * (1 + 0.1 * np.cos(2 * np.pi * c / len(CELLS)))  # mean 0.02 over the cells
            for b, bucket in enumerate(BUCKETS):
                gain = size * (ratio if bucket > 256 else 1.0) + noise * scatter[c, b]
                for horizon in range(horizons):
                    loss = 3.5 - 0.1 * b - 0.05 * horizon
                    rows.append((contrast, cell, f"h{horizon}", bucket, loss, loss - gain))
    return pd.DataFrame(rows, columns=["contrast", "cell", "horizon", "bucket", "loss_ref", "loss_new"])


def ratios_of(frame: pd.DataFrame) -> dict[str, float]:
    return {row["contrast"]: row["ratio"] for row in frame.attrs["ratios"]}


def test_a_world_built_with_the_printed_ratios_shows_them() -> None:
    assert list(PRINTED.values()) == [1.52, 0.88, 0.98]
    frame = length_gains(world(PRINTED, noise=0.001), bootstrap=200)
    for name, ratio in ratios_of(frame).items():
        assert ratio == pytest.approx(
            PRINTED[name], rel=1e-9
        )  # noise has mean 0 over the cells: only rounding
    for row in frame.attrs["ratios"]:
        assert row["ratio_set"] == "bounded"
        assert row["ratio_lo"] < PRINTED[row["contrast"]] < row["ratio_hi"]
        assert (row["cells"], row["pairs"]) == (12, 24)
    # of two ratios that were drawn together the ratio is that of the two
    first = frame.attrs["comparisons"][0]
    assert first["ratio_of_ratios"] == pytest.approx(1.52 / 0.88, rel=1e-9)
    assert first["ratio_of_ratios_lo"] < 1.52 / 0.88 < first["ratio_of_ratios_hi"]
    assert len(frame.attrs["comparisons"]) == 3
    assert not notes_of(frame)


def test_relative_gains_average_one_and_the_normaliser_cancels_in_the_ratio() -> None:
    frame = length_gains(world({"x": 1.52}, noise=0.002))
    relative, drop = frame["relative"].to_numpy(), frame["loss_drop"].to_numpy()
    assert relative.mean() == pytest.approx(1.0, abs=1e-12)
    long = np.array(BUCKETS) > 256
    by_relative, by_drop = (values[long].mean() / values[~long].mean() for values in (relative, drop))
    assert by_relative == pytest.approx(by_drop, rel=1e-12)
    assert ratios_of(frame)["x"] == pytest.approx(by_drop, rel=1e-12)
    # all losses and gains in bits instead of nats: no ratio moves
    scaled = world({"x": 1.52}, noise=0.002)
    scaled[["loss_ref", "loss_new"]] /= np.log(2)
    again = length_gains(scaled)
    np.testing.assert_allclose(again["relative"], relative, rtol=1e-9)
    assert again.attrs["ratios"][0]["ratio_hi"] == pytest.approx(
        frame.attrs["ratios"][0]["ratio_hi"], rel=1e-9
    )


def test_loss_drops_have_the_t_interval_of_the_cell_means() -> None:
    table = world({"x": 1.52}, noise=0.002)
    frame = length_gains(table)
    by_cell = (
        table.assign(drop=table.loss_ref - table.loss_new)
        .groupby(["bucket", "cell"])["drop"]
        .mean()
        .unstack()
        .to_numpy()
    )
    half = t.ppf(0.975, 11) * by_cell.std(axis=1, ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(frame["loss_drop_hi"] - frame["loss_drop"], half, rtol=1e-9)


def test_fieller_covers_at_its_level_in_a_normal_world() -> None:
    """Exact for normal cell means; 2000 worlds have a Monte-Carlo error of 0.5 points, so 4 of them are 2 points."""
    rng = np.random.default_rng(5)
    cells = rng.multivariate_normal([1.52, 1.0], [[0.5, 0.2], [0.2, 0.3]], size=(2000, 12))
    quantile = t.ppf(0.975, 11)
    hits = 0
    for world_ in cells:
        found = fieller(world_.mean(axis=0), np.cov(world_, rowvar=False) / 12, quantile)
        inside = found.lo is None or found.hi is None or found.lo <= 1.52 <= found.hi
        hits += inside if found.kind == "bounded" else found.kind == "any" or not inside
    assert hits / 2000 == pytest.approx(0.95, abs=0.02)


def test_the_fieller_set_is_what_a_scan_of_t_statistics_accepts() -> None:
    rng = np.random.default_rng(1)
    for centre in ((1.5, 1.0), (1.5, 0.05), (0.05, 0.05)):
        x = rng.multivariate_normal(centre, [[0.04, 0.01], [0.01, 0.05]], size=12)
        found = fieller(x.mean(axis=0), np.cov(x, rowvar=False) / 12, 2.2)
        for r in np.linspace(-20, 20, 801):
            parts = x[:, 0] - r * x[:, 1]
            accepted = abs(parts.mean()) <= 2.2 * parts.std(ddof=1) / np.sqrt(12)
            between = found.lo is not None and found.hi is not None and found.lo <= r <= found.hi
            assert accepted == {"bounded": between, "outside": not between, "any": True}[found.kind]


def test_an_unbounded_set_is_said_in_words() -> None:
    from smelt_scaling import show_table

    table = world({"x": 1.52})
    short = table["bucket"] <= 256
    rng = np.random.default_rng(3)
    noisy = {cell: rng.normal(0, 0.05) for cell in CELLS}
    table.loc[short, "loss_new"] += table.loc[short, "cell"].map(noisy)
    frame = length_gains(table)
    (row,) = frame.attrs["ratios"]
    assert row["ratio_set"] in ("outside", "any")
    assert "unbounded" in show_table(frame)
    assert "unbounded_ratio" in {note.code for note in notes_of(frame)}


def test_contrasts_that_share_cells_are_drawn_together() -> None:
    """Two contrasts with the same numbers: the ratio of their ratios is 1 in every draw."""
    one = world({"x": 1.52}, noise=0.002)
    frame = length_gains(pd.concat([one, one.assign(contrast="y")]), bootstrap=100)
    (row,) = frame.attrs["comparisons"]
    assert (row["ratio_of_ratios"], row["ratio_of_ratios_lo"], row["ratio_of_ratios_hi"]) == (1.0, 1.0, 1.0)


def test_rows_of_single_architectures_pair_up() -> None:
    """The long form gives what the wide one gives; values under the names that a long table of endpoints has."""
    wide = world({"smelt over baseline": 1.52}, noise=0.001)
    sides = [
        wide.assign(arch=arch, value=wide[column], member=wide["bucket"].astype(str), loss=2.0)
        for arch, column in (("baseline", "loss_ref"), ("smelt", "loss_new"))
    ]
    long = (
        pd.concat(sides)
        .drop(columns=["contrast", "loss_ref", "loss_new", "bucket"])
        .sample(frac=1, random_state=0)
    )
    mapping = {"bucket": "member", "loss": "value"}
    frame = length_gains(long, mapping=mapping, target="smelt", reference="baseline")
    pd.testing.assert_frame_equal(frame, length_gains(wide), rtol=1e-9)
    alone = long[~((long["arch"] == "smelt") & (long["cell"] == CELLS[0]))]
    left = length_gains(alone, mapping=mapping, target="smelt", reference="baseline")
    assert left.attrs["ratios"][0]["cells"] == 11
    (note,) = [note for note in notes_of(left) if note.code == "unpaired_rows"]
    assert note.count == 16


def test_documents_are_resampled_within_their_bucket_and_widen_the_interval() -> None:
    rng = np.random.default_rng(2)
    rows = []
    for bucket in (256, 512):
        luck = rng.normal(0, 0.01, 30)
        rows += [
            {"cell": cell, "bucket": bucket, "document": f"d{d}", "loss_ref": 3.0, "loss_new": 2.98 - luck[d]}
            for cell in CELLS
            for d in range(30)
        ]
    table = pd.DataFrame(rows)
    by_document = length_gains(table, bootstrap=500)
    whole = table.groupby(["cell", "bucket"], as_index=False)[["loss_ref", "loss_new"]].mean()
    by_cell = length_gains(whole, bootstrap=500)
    np.testing.assert_allclose(by_document["loss_drop"], by_cell["loss_drop"], atol=1e-12)
    assert by_document.attrs["settings"]["unit"] == "cell and document"
    # every cell has the same documents and no noise of its own: all of the scatter is that of 30 documents
    spread = (by_document["loss_drop_hi"] - by_document["loss_drop_lo"]) / 2 / t.ppf(0.975, 11)
    luck = table.assign(drop=table.loss_ref - table.loss_new).drop_duplicates(["bucket", "document"])
    expected = luck.groupby("bucket")["drop"].std(ddof=0).to_numpy() / np.sqrt(30)
    np.testing.assert_allclose(
        spread, expected, rtol=0.15
    )  # the sd of 500 draws is known to 3 %: 4 sd and more
    assert (by_cell["loss_drop_hi"] - by_cell["loss_drop_lo"]).max() < 1e-12


def per_document(contrast: str, documents: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cells of different gains and numbers of documents; documents of a cell are alike."""
    size = (0.03, 0.02, 0.024, 0.018)
    return [
        {
            "contrast": contrast,
            "cell": f"c{c}",
            "bucket": bucket,
            "document": f"{contrast} {c} {d}",
            "loss_ref": 3.0,
            "loss_new": 3.0 - size[c] * ratio,
        }
        for c, count in enumerate(documents)
        for bucket, ratio in ((256, 1.0), (512, 1.5 + 0.1 * c))
        for d in range(count)
    ]


@pytest.mark.parametrize("documents", [(30, 2), (30, 2, 2), (2, 5, 30, 2)])
def test_documents_without_scatter_leave_the_interval_of_the_cell_means(documents: tuple[int, ...]) -> None:
    """Every cell counts once however many documents it has, and few cells have the t interval of few cells."""
    table = pd.DataFrame(per_document("x", documents))
    frame = length_gains(table, bootstrap=200)
    drop = (3.0 - table.groupby(["bucket", "cell"])["loss_new"].first()).unstack()
    n = len(documents)
    half = t.ppf(0.975, n - 1) * drop.std(axis=1, ddof=1) / np.sqrt(n)
    np.testing.assert_allclose(frame["loss_drop"], drop.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(frame["loss_drop_hi"] - frame["loss_drop"], half, rtol=1e-9)


def test_cells_count_once_in_every_draw_however_many_documents_they_have() -> None:
    rows = per_document("x", (30, 2, 2, 9)) + per_document("y", (2, 30, 7, 2))
    frame = length_gains(rows, bootstrap=200)
    (row,) = frame.attrs["comparisons"]  # the same gains of the same cells
    for name in ("ratio_of_ratios", "ratio_of_ratios_lo", "ratio_of_ratios_hi"):
        assert row[name] == pytest.approx(1.0, rel=1e-9)
    (note,) = [note for note in notes_of(frame) if note.code == "too_few_units"]
    assert "x over y: 4 cells" in note.message


def test_contrasts_in_any_order_have_the_same_draws() -> None:
    """Of cells that are not shared: the other way round the ends are reciprocal, as order statistics are."""
    one, other = world({"x": 1.52}, noise=0.004), world({"y": 0.88}, noise=0.004, seed=1)
    other["cell"] += " of y"
    (row,) = length_gains(pd.concat([one, other]), bootstrap=200).attrs["comparisons"]
    (turned,) = length_gains(pd.concat([other, one]), bootstrap=200).attrs["comparisons"]
    assert (row["contrast"], turned["contrast"]) == ("x", "y")
    ends = 1 / turned["ratio_of_ratios_hi"], 1 / turned["ratio_of_ratios_lo"]
    assert (row["ratio_of_ratios_lo"], row["ratio_of_ratios_hi"]) == pytest.approx(ends, rel=1e-12)


def test_same_seed_same_numbers_and_row_order_does_not_matter() -> None:
    table = world(PRINTED, noise=0.003)
    one = length_gains(table, bootstrap=100, seed=3)
    other = length_gains(table.sample(frac=1, random_state=1), bootstrap=100, seed=3)
    by = {row["contrast"]: row for row in other.attrs["ratios"]}
    assert by == {row["contrast"]: row for row in one.attrs["ratios"]}  # to the last bit
    assert length_gains(table, bootstrap=100, seed=3).attrs == one.attrs
    assert length_gains(table, bootstrap=100, seed=4).attrs["comparisons"] != one.attrs["comparisons"]


def test_endpoints_without_every_bucket_are_left_out_and_counted() -> None:
    table = world({"x": 1.52})
    hole = (table["cell"] == CELLS[0]) & (table["horizon"] == "h1") & (table["bucket"] == 4096)
    frame = length_gains(table[~hole])
    (note,) = notes_of(frame)
    assert (note.code, note.count) == ("incomplete_buckets", 1)
    assert frame.attrs["ratios"][0]["pairs"] == 23


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="loss_new"), "no column loss_new"),
        (lambda f: f.assign(loss_new=np.exp(f["loss_new"] * 2)), "column loss_new, median"),
        (lambda f: f.assign(bucket=0), "column bucket"),
        (lambda f: f.assign(cell=None), "column cell, 192 rows"),
        (lambda f: pd.concat([f, f.head(1)]), "rows 1 and 193 share"),
        (lambda f: f.drop(columns="horizon"), "--map horizon=COLUMN"),
        (lambda f: f[f["bucket"] == 32], "one bucket"),
        (lambda f: f.head(0), "no rows"),
    ],
)
def test_a_bad_table_gets_one_clear_line(change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        length_gains(change(world({"x": 1.52})))
    assert "\n" not in str(caught.value)


def test_bad_options_are_refused() -> None:
    table = world({"x": 1.52})
    for options in (
        {"split": 16.0},
        {"level": 95.0},
        {"bootstrap": -1},
        {"target": "a"},
        {"mapping": {"size": "b"}},
    ):
        with pytest.raises(UsageError):
            length_gains(table, **options)


def test_the_command_says_what_the_function_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    from smelt_scaling.cli import run
    from smelt_scaling.reporting.raw import plain_rows

    monkeypatch.chdir(tmp_path)
    world(PRINTED, noise=0.002).to_csv("lengths.csv", index=False)
    assert run(["lengths", "lengths.csv", "--bootstrap", "100", "--format", "json", "-o", "out"]) == 0
    record = json.loads(capsys.readouterr().out)
    frame = length_gains("lengths.csv", bootstrap=100)
    assert record["rows"] == plain_rows(frame)
    assert record["ratios"] == frame.attrs["ratios"]
    assert pd.read_parquet("out/lengths.parquet")["bucket"].tolist() == BUCKETS * 3
    for form in ("table", "md", "csv", "latex"):
        assert run(["lengths", "lengths.csv", "--bootstrap", "0", "--format", form]) == 0
        assert "1.52" in capsys.readouterr().out or form == "csv"


def test_output_shown_in_help_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from smelt_scaling.cli import app, run

    monkeypatch.chdir(tmp_path)
    table = world(PRINTED, noise=0.004)
    table["contrast"] = table["contrast"].str.removeprefix("baseline with ").str.removesuffix(" parameters")
    table.to_csv("lengths.csv", index=False)
    group: Any = typer.main.get_command(app)
    block = group.commands["lengths"].help.partition("Example:\n")[2].partition("\n\n")[0]
    first, *lines = [line[2:] for line in block.splitlines()]
    assert run(first.removeprefix("$ smelt-scaling ").split()) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != "..." and line.rstrip() not in out] == []
