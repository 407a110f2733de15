"""Models of published studies, with dimensions that were printed and others that the printed ones imply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smelt_scaling.accounting import Experts, Lengths, Loop, ModelConfig
from smelt_scaling.errors import UsageError
from smelt_scaling.papers.bundled import Paper
from smelt_scaling.papers.tables import parse_number

__all__ = ["DOCUMENT_LENGTH", "PaperModel", "paper_models"]

#: Mean document length of the SMELT paper's FLOPs, tokens: the one that all 12 printed ratios of FLOPs allow.
DOCUMENT_LENGTH = Lengths.of(784)


@dataclass(frozen=True, kw_only=True)
class PaperModel:
    """One row of a table of configurations.

    Parameters
    ----------
    arch, scale, tier : str
        As printed.
    S : float
        As printed.
    config : ModelConfig or None
        Dimensions; None where the printed numbers do not determine them.
    F, N : float
        FLOPs per token and parameters without embeddings where they do not; of determined rows those of ``config``.
    status : str
        "determined" or "undetermined".
    inferred : tuple of str
        Dimensions that are not printed.
    """

    arch: str
    scale: str
    tier: str
    S: float  # noqa: N815  # the field's name
    config: ModelConfig | None
    F: float  # noqa: N815
    N: float  # noqa: N815
    status: str
    inferred: tuple[str, ...] = ("d_ff", "heads", "head_dim", "kv_heads")

    @property
    def cell(self) -> str:
        """Label of its cell."""
        return f"{self.scale}/{self.tier}"


def paper_models(paper: Paper) -> dict[str, PaperModel]:
    """Return the models of a paper by name, such as ``baseline/200M/95%``.

    Raises
    ------
    UsageError
        If the paper ships none.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> models = paper_models(load_paper("smelt"))
    >>> len(models), models["smelt/200M/95%"].config.loop
    (32, Loop(first=3, last=8, times=2))
    >>> [name for name, model in models.items() if model.config is None]
    ['smelt/100M/0%', 'smelt/200M/0%', 'smelt/600M/0%', 'smelt/1.6B/0%']
    """
    if "configurations" not in paper.tables:
        raise UsageError(f"paper {paper.name}: ships no configurations")
    found = (_model(row) for row in paper.tables["configurations"].records())
    return {f"{model.arch}/{model.cell}": model for model in found}


def _model(row: Mapping[str, str]) -> PaperModel:
    determined = row["status"] == "determined"
    return PaperModel(
        arch=row["arch"],
        scale=row["scale"],
        tier=row["tier"],
        S=parse_number(row["S"]),
        config=_config(row) if determined else None,
        F=parse_number(row["F_inferred"]),
        N=parse_number(row["N_inferred"]),
        status=row["status"],
    )


def _config(row: Mapping[str, str]) -> ModelConfig:
    loop = None
    if row["loop_first"]:  # the table counts layers from 1
        first, last = int(row["loop_first"]) - 1, int(row["loop_last"]) - 1
        loop = Loop(first=first, last=last, times=int(row["loops"]))
    return ModelConfig(
        hidden=int(row["H"]),
        layers=int(row["L"]),
        heads=int(row["n_heads_inferred"]),
        kv_heads=int(row["n_kv_inferred"]),
        head_dim=int(row["head_dim_inferred"]),
        experts=Experts(
            count=int(row["experts"]), active=int(row["active_experts"]), width=int(row["d_ff_inferred"])
        ),
        loop=loop,
        name=f"{row['arch']}/{row['scale']}/{row['tier']}",
    )
