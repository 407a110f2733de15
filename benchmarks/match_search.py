"""How long it takes to find shapes that cost what each of the paper's sixteen baselines costs."""

from __future__ import annotations

from typing import Any

from benchmarks.recorder import spread, table, timed

TITLE = "Shapes of equal cost"
GOAL = 1.0  # seconds for all sixteen cells


def measure(repeats: int = 7) -> dict[str, Any]:
    """Match all sixteen cells, the middle half of the layers run twice, several times."""
    from smelt_scaling.accounting import Loop
    from smelt_scaling.accounting.match import Search, find_matches, middle_span
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.models import DOCUMENT_LENGTH, paper_models

    baselines = [
        model.config
        for model in paper_models(load_paper("smelt")).values()
        if model.arch == "baseline" and model.config is not None
    ]

    def match(multiple: int) -> int:
        searched = 0
        for base in baselines:
            first, last = middle_span(base.layers, 0.5)
            found = find_matches(
                base,
                loop=Loop(first=first, last=last, times=2),
                search=Search(head_dim_multiple=multiple),
                lengths=DOCUMENT_LENGTH,
            )
            searched += found.searched
        return searched

    result: dict[str, Any] = {"cells": len(baselines), "repeats": repeats}
    for multiple in (8, 4, 2):
        clocks = []
        for _ in range(repeats):
            searched, clock = timed(match, multiple)
            clocks.append(clock)
        result[f"multiple_{multiple}"] = {
            "searched": searched,
            "cpu": spread(clock.cpu for clock in clocks),
            "wall": spread(clock.wall for clock in clocks),
        }
    return result


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    rows = [
        [
            f"multiples of {multiple}",
            f"{values[f'multiple_{multiple}']['searched']:,}",
            f"{values[f'multiple_{multiple}']['cpu']['median']:.2f}",
            f"{values[f'multiple_{multiple}']['wall']['median']:.2f}",
            f"{values[f'multiple_{multiple}']['wall']['max']:.2f}",
        ]
        for multiple in (8, 4, 2)
    ]
    text = (
        f"All {values['cells']} baselines of the paper matched with the middle half of the layers run twice, "
        f"{values['repeats']} times in one process. The goal is {GOAL:g} s for all of them."
    )
    return (
        text
        + "\n\n"
        + table(
            ["width of a head", "shapes counted", "CPU s, median", "wall s, median", "wall s, worst"], rows
        )
    )
