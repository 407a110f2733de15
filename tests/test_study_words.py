"""What a study says of itself: each thing once, within 80 columns, and with a remedy."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from smelt_scaling import ce_gain, example_endpoints, fit, load_paper, notes_of, show_table
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import FrontierError, StudyError

RUNS = example_endpoints()


def test_gamma_does_not_need_the_exponent_of_sparsity() -> None:
    single = fit(RUNS.select(RUNS.tiers == 1), bootstrap=0).summary()
    assert "b            not identified" in single
    assert "\ngamma " in single
    once = fit(RUNS.select(max(RUNS.D) == RUNS.D), bootstrap=0).summary()
    assert "\ngamma " not in once


def test_a_refused_bootstrap_is_stated_once() -> None:
    cells = sorted(set(RUNS["cell"].tolist()))[:5]
    frame = RUNS.to_frame()
    study = fit(Endpoints.from_frame(frame[frame["cell"].isin(cells)]), bootstrap=100)
    summary = study.summary()
    assert summary.startswith("NO BOOTSTRAP INTERVALS: ")
    assert summary.count("resamples") == 1
    assert "bootstrap_refused" not in summary
    assert "bootstrap_refused" in {note.code for note in study.all_notes}
    assert max(map(len, summary.splitlines())) <= 80


def test_a_gain_gives_the_reason_of_a_refused_bootstrap_once() -> None:
    study = fit(RUNS.select(RUNS.tiers == 1), bootstrap=20)
    said = [note.message for note in notes_of(ce_gain(study, 1e21))]
    assert sum("resamples" in message for message in said) == 1
    assert "no percentile interval: the bootstrap was refused" in said


def test_one_label_is_not_promised_an_interval_of_another_kind() -> None:
    """Without its only label an architecture has no runs, so nothing is left to refit."""
    one = fit(RUNS.select(RUNS["cell"] == "600M/95%"), "E + K*D**-c", bootstrap=20)
    assert one.bootstrap.status == "refused"
    assert "of 1 cell label keep" in one.bootstrap.reason
    assert "jackknife" not in one.bootstrap.reason
    four = fit(RUNS.select(RUNS.tiers == 1), bootstrap=20)
    assert four.bootstrap.reason.endswith(
        "of 4 cell labels keep too few distinct labels or cannot identify every "
        "parameter; --interval jackknife-t gives one"
    )


def test_long_names_of_architectures_fit_the_summary() -> None:
    one = RUNS.to_frame().query("arch == 'smelt'")
    long = "mixture-of-experts-top-2-with-shared-expert-and-a-looped-middle-v3-after-annealing"
    runs = Endpoints.from_frame(pd.concat([one.assign(arch=name) for name in (long, "x" * 90)]))
    assert max(map(len, fit(runs, bootstrap=0).summary().splitlines())) <= 80


def test_a_frontier_that_is_not_there_names_the_architecture_and_the_remedy() -> None:
    study = fit(RUNS, "E + A*F**-a", bootstrap=0)
    with pytest.raises(FrontierError, match=r"^smelt: .*no interior optimum.*; ask predict for the loss"):
        ce_gain(study, 1e21)


def test_a_study_replaces_no_record_of_others(tmp_path: Path) -> None:
    study = fit(RUNS, bootstrap=0)
    study.save(tmp_path / "s")
    study.save(tmp_path / "s")
    (tmp_path / "s" / "study.json").write_text('{"title": "mine"}')
    with pytest.raises(StudyError, match="was not written by smelt-scaling"):
        study.save(tmp_path / "s")


def test_peaks_beyond_the_runs_are_marked_in_python_too() -> None:
    text = show_table(ce_gain(load_paper("smelt"), 1e21, sparsities=0.947))
    assert "5.49e22 †" in text
