"""The LaTeX tables of a report compile; without an engine, what compilers stumble over is looked for in their text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from smelt_scaling import Endpoints, ce_gain, example_endpoints, fit, load_paper
from smelt_scaling.analyses import diagnose, domains
from smelt_scaling.analyses.reproduction import reproduce
from smelt_scaling.reporting.build import build_report

ENGINE = next(filter(None, map(shutil.which, ("tectonic", "lualatex", "xelatex", "pdflatex"))), None)
PREAMBLE = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"


@pytest.fixture(scope="module")
def tex(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every table of two reports, of which one has architectures and domains of names full of special characters."""
    folder = tmp_path_factory.mktemp("latex")
    runs = example_endpoints()
    frame = runs.to_frame().replace({"arch": {"smelt": "50%_of {A&B} #1 ~$x^2\\"}})
    study = fit(Endpoints.from_frame(frame), bootstrap=40)
    parts = [frame.assign(domain=name, source=name) for name in ("[web]", "C_1 & <D> 5%")]
    losses = Endpoints.from_frame(pd.concat(parts), source="losses.parquet")
    results = {
        "domains": domains(study, losses, 1e21),
        "diagnose": diagnose(study, parts=("fairness", "noise")),
        "reproduce": reproduce(load_paper("smelt")),
    }
    build_report(study, folder, results=results, formats=())
    build_report(load_paper("smelt"), folder / "published", budgets=[1e18, 1e25], formats=())
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.tex"))
    }


def spoken(text: str) -> str:
    """Return LaTeX without comments."""
    return "\n".join(re.sub(r"(?<!\\)%.*", "", line) for line in text.splitlines())


def rows(body: str) -> list[str]:
    """Return the rows of a tabular without rules."""
    body = re.sub(r"\\(?:top|mid|bottom)rule", "", body)
    return [row.strip() for row in body.split(r" \\") if row.strip()]


def test_there_are_tables_of_every_kind(tex: dict[str, str]) -> None:
    names = {"gain", "optima", "coefficients", "domains", "diagnose", "reproduce"}
    assert set(tex) == {
        *(f"tables/{name}.tex" for name in names),
        "published/tables/gain.tex",
        "published/tables/optima.tex",
    }


def test_environments_and_braces_are_closed_in_order(tex: dict[str, str]) -> None:
    for name, text in tex.items():
        opened: list[str] = []
        for kind, what in re.findall(r"\\(begin|end)\{(\w+)\}", spoken(text)):
            if kind == "begin":
                opened.append(what)
            else:
                assert opened.pop() == what, name
        assert not opened, name
        bare = re.sub(r"\\[\\{}]", "", spoken(text))
        depth = 0
        for character in bare:
            depth += {"{": 1, "}": -1}.get(character, 0)
            assert depth >= 0, name
        assert depth == 0, name


def test_every_row_has_the_columns_that_are_declared(tex: dict[str, str]) -> None:
    counted = 0
    for name, text in tex.items():
        for kinds, body in re.findall(
            r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", spoken(text), re.DOTALL
        ):
            for row in rows(body):
                spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", row))
                cells = len(re.findall(r"(?<!\\)&", row)) + 1
                assert cells + spanned == len(kinds), f"{name}: {row}"
                counted += 1
    assert counted > 100


def test_special_characters_are_escaped(tex: dict[str, str]) -> None:
    assert (
        r"50\%\_of \{A\&B\} \#1 \textasciitilde{}\$x\textasciicircum{}2\textbackslash{}"
        in (tex["tables/gain.tex"])
    )
    assert r"C\_1 \& \textless{}D\textgreater{} 5\%" in tex["tables/domains.tex"]
    for name, text in tex.items():
        words = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", spoken(text))  # sub- and superscripts are mathematics
        assert not re.search(r"(?<!\\)[_^#]", words), name
        assert len(re.findall(r"(?<!\\)\$", spoken(text))) % 2 == 0, name
        assert spoken(text).isascii(), (name, [c for c in spoken(text) if not c.isascii()])


def test_no_row_opens_with_a_bracket_that_its_line_break_would_take(tex: dict[str, str]) -> None:
    for name, text in tex.items():
        assert not re.search(r"\\\\\s*\[", spoken(text)), name


def test_the_gain_is_the_one_computed(tex: dict[str, str]) -> None:
    (gain,) = ce_gain(load_paper("smelt"), 1e25, sparsities=0.947)["gain"]
    assert f"${100 * gain:.1f}\\,\\%$" in tex["published/tables/gain.tex"]


@pytest.mark.skipif(
    ENGINE is None, reason="no TeX engine (tectonic, lualatex, xelatex, pdflatex) is installed"
)
def test_every_table_compiles(tex: dict[str, str], tmp_path: Path) -> None:
    assert ENGINE is not None
    document = "\n".join([PREAMBLE, *(f"{text}\\clearpage" for text in tex.values()), r"\end{document}"])
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    options = [] if "tectonic" in ENGINE else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run(
        [ENGINE, *options, "all.tex"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
