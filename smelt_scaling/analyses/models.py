"""A model by any of its names: a Hugging Face config.json, our TOML, or one of a published study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from smelt_scaling.accounting import Lengths, ModelConfig
from smelt_scaling.errors import DataError, Note, UsageError, info, warning
from smelt_scaling.formatting import format_percent

__all__ = ["NamedModel", "long_documents", "open_model", "read_lengths"]


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model with what its source says besides.

    Parameters
    ----------
    name : str
        As it was asked for.
    config : ModelConfig
        Its dimensions.
    lengths : Lengths or None
        Documents of its training, where the source states them.
    notes : tuple of Note
        What was inferred, and what is not counted.
    """

    name: str
    config: ModelConfig
    lengths: Lengths | None = None
    notes: tuple[Note, ...] = ()


def open_model(name: str) -> NamedModel:
    """Open a model.

    Parameters
    ----------
    name : str
        A file that ends in ``.json`` (a Hugging Face configuration) or ``.toml`` (our fields), a folder with a
        ``config.json``, or ``PAPER:ARCH/SCALE/TIER`` such as ``smelt:baseline/200M/95%``.

    Raises
    ------
    DataError
        If the file breaks a rule, or the paper leaves dimensions undetermined.
    UsageError
        If nothing has that name.

    Examples
    --------
    >>> open_model("smelt:smelt/200M/95%").config.hidden
    1056
    """
    path = Path(name)
    if ":" in name and not path.exists():
        return _published(name)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".toml":
        from smelt_scaling.accounting.toml_files import read_toml

        return NamedModel(name=name, config=read_toml(path))
    if path.suffix == ".json":
        from smelt_scaling.accounting.huggingface import read_huggingface

        config, notes = read_huggingface(path)
        return NamedModel(name=name, config=config, notes=notes)
    raise UsageError(
        f"model {name!r}: give a config.json, a .toml file, or a published one such as smelt:baseline/200M/95%"
    )


def _published(name: str) -> NamedModel:
    """Return a model of a shipped paper."""
    from smelt_scaling.papers import PAPERS, load_paper
    from smelt_scaling.papers.models import DOCUMENT_LENGTH, paper_models

    source, _, wanted = name.partition(":")
    if source not in PAPERS:
        raise UsageError(
            f"model {name!r}: there is no file of that name, and no paper {source!r}; "
            f"papers are {', '.join(PAPERS)}"
        )
    models = paper_models(load_paper(source))
    if wanted not in models:
        near = get_close_matches(wanted, models, n=1)
        hint = f"did you mean {source}:{near[0]}?" if near else f"the first is {source}:{next(iter(models))}"
        raise UsageError(f"model {name!r}: paper {source} has no such configuration; {hint}")
    model = models[wanted]
    if model.config is None:
        raise DataError(
            f"model {name}: the paper's numbers do not determine its dimensions; "
            f"its FLOPs per token are about {model.F:.4g} and its parameters {model.N:.4g}"
        )
    note = info(
        "inferred_dimensions",
        f"{name}: {', '.join(model.inferred)} are not printed; they are solved from the printed numbers",
        len(model.inferred),
    )
    return NamedModel(
        name=name, config=replace(model.config, name=name), lengths=DOCUMENT_LENGTH, notes=(note,)
    )


def long_documents(documents: Lengths | None, sequence: int) -> list[Note]:
    """Say that documents are longer than the sequences they are cut to.

    Examples
    --------
    Three documents of 100 tokens and one of 300:

    >>> (note,) = long_documents(Lengths.of([100, 300], [3, 1]), 200)
    >>> note.message
    '50 % of the tokens lie in documents of up to 300 tokens, longer than sequences of 200: attention ends with the \
    sequence, so scores are overcounted; give lengths as cut, or longer sequences'
    """
    if documents is None or documents.lengths.max() <= sequence:
        return []
    share = (
        float((documents.weights * documents.lengths)[documents.lengths > sequence].sum()) / documents.mean
    )
    return [
        warning(
            "long_documents",
            f"{format_percent(share, 0)} of the tokens lie in documents of up to {documents.lengths.max():.0f} tokens, "
            f"longer than sequences of {sequence}: attention ends with the sequence, so scores are overcounted; give "
            "lengths as cut, or longer sequences",
        )
    ]


def read_lengths(text: str) -> Lengths:
    """Read document lengths: one number, or a table.

    Parameters
    ----------
    text : str
        A mean length such as ``784``; a CSV or Parquet file with a column ``length`` and, if lengths repeat, ``count``;
        or a file with the one column ``cu_seqlens``, running sums from 0.

    Raises
    ------
    DataError
        If the file cannot be read or has other columns.
    UsageError
        If the text is neither a number nor a file, or a length is below 1.
    """
    try:
        return Lengths.of(float(text))
    except ValueError:
        pass
    path = Path(text)
    if not path.is_file():
        raise UsageError(
            f"document lengths {text!r}: give a mean length such as 784, or a file with a column length"
        )
    import pandas as pd

    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:  # not Parquet, not UTF-8, or no table
        raise DataError(f"{text}: cannot be read as a table ({str(error).splitlines()[0]})") from error
    for name in [name for name in ("length", "count", "cu_seqlens") if name in frame]:
        wrong = pd.to_numeric(frame[name], errors="coerce").isna().to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"{text}: column {name}, {wrong.sum()} rows (first: {row}): {str(frame[name].iloc[row])!r} is no "
                "number; write a whole number"
            )
    columns = {str(name): frame[name].to_numpy() for name in frame}
    try:
        if "cu_seqlens" in columns:
            return Lengths.from_cu_seqlens(columns["cu_seqlens"])
        if "length" in columns:
            return Lengths.of(columns["length"], columns.get("count"))
    except (UsageError, ValueError) as error:
        raise DataError(f"{text}: {error}") from error
    raise DataError(
        f"{text}: columns {', '.join(columns)}; a column length (and count) or cu_seqlens is needed"
    )
