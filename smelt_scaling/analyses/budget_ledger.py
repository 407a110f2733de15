"""What a model costs, term by term, under every convention; and beside another model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from smelt_scaling.accounting import CONVENTIONS, Lengths, flops_per_token, get_convention, make_ledger
from smelt_scaling.accounting.budgets import budgets_of, sparsity
from smelt_scaling.accounting.conventions import TRAINING, Convention, flops_of_term
from smelt_scaling.accounting.ledger import Ledger
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.models import NamedModel, long_documents, open_model
from smelt_scaling.errors import UsageError, info, merge_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DTYPES", "SEQUENCE_LENGTH", "flops_report"]

#: Bytes of an element of the key-value cache.
DTYPES = {"float32": 4.0, "bf16": 2.0, "fp8": 1.0, "int4": 0.5}
#: Tokens of a training sequence where nothing states them.
SEQUENCE_LENGTH = 4096

#: What is counted as parameters, in words.
EMBEDDINGS: dict[str, Literal["none", "output", "all"]] = {
    "without embedding and head": "none",
    "without the input embedding": "output",
    "all": "all",
}


def flops_report(
    model: str | NamedModel,
    *,
    convention: str = "smelt",
    seq_len: int | None = None,
    documents: Lengths | None = None,
    control: str | NamedModel | None = None,
    compare: str | NamedModel | None = None,
) -> pd.DataFrame:
    """Account for a model: training FLOPs per token, parameters, key-value cache.

    Parameters
    ----------
    model : str or NamedModel
        See `open_model`.
    convention : str
        How FLOPs are counted: smelt, megatron, palm, torchtitan, chinchilla or 6n.
    seq_len : int, optional
        Tokens of a training sequence; 4096 by default.
    documents : Lengths, optional
        Documents as packed under a mask that keeps them apart; by default those that the source of the model, or of
        the reference, states, else whole sequences.
    control : str or NamedModel, optional
        Dense model of the same scale, against which S = 1 - (F/F0) N0/N is counted.
    compare : str or NamedModel, optional
        A reference, for the three ratios that a fair comparison keeps at 1.

    Returns
    -------
    DataFrame
        The ledger, one row per term: ``kind, term, parameters, active, forward_flops, training_flops, flops_share,
        kv_elements``; FLOPs per token as the convention counts them, and 0 where it does not. ``.attrs`` holds
        ``notes``, ``settings``, and lists of rows: ``totals`` (parameters stored and active by what is counted),
        ``conventions`` (FLOPs per token at the mean document and as packed, and over 6N), ``cache`` (bytes per token
        by type), ``summary`` (F, N, N_act, KV and S), ``ratios`` (against ``compare``) and ``compared`` (its ledger).

    Raises
    ------
    DataError, UsageError
        As `open_model` and `get_convention` do.

    Examples
    --------
    >>> report = flops_report("smelt:smelt/200M/95%", compare="smelt:baseline/200M/95%")
    >>> [(row["budget"], round(row["ratio"], 4)) for row in report.attrs["ratios"]]
    [('FLOPs per token', 1.0287), ('parameters', 1.0043), ('KV cache', 1.0312)]
    """
    import pandas as pd

    one = _opened(model)
    other = None if compare is None else _opened(compare)
    rule = get_convention(convention)
    if seq_len is not None and seq_len < 1:
        raise UsageError(f"seq_len {seq_len}: must be 1 or more")
    packed = documents or one.lengths or (other.lengths if other else None)
    length = seq_len or SEQUENCE_LENGTH
    notes = list(one.notes)
    if seq_len is None and (packed is None or rule.over == "sequence"):
        notes.append(
            info("sequence_length", f"sequences of {length} tokens are assumed; state them with --seq-len")
        )
    notes += long_documents(packed, length)
    if not one.config.vocab:
        counting = ", ".join(name for name, one_rule in CONVENTIONS.items() if "head" in one_rule.counts)
        notes.append(
            info(
                "no_vocabulary",
                f"{one.name}: no vocabulary is stated, so the head is not in FLOPs of {counting}",
            )
        )
    sequence = Lengths.of(length)
    ledger = make_ledger(one.config)
    over = _Over(sequence=sequence, documents=packed or sequence)
    seen = over.at_mean(rule)
    frame = pd.DataFrame(_terms(ledger, rule, seen))
    own = budgets_of(one.config, rule, seen)
    settings: dict[str, Any] = {
        "model": one.name,
        "convention": rule.name,
        "includes": rule.includes,
        "seq_len": length,
        "document_mean": over.documents.mean,
        "document_effective": over.documents.effective,
        "executed_layers": one.config.executed_layers,
        "layers": one.config.layers,
    }
    summary = {
        "model": one.name,
        "F": own.flops,
        "N": own.parameters,
        "N_act": own.active,
        "kv_bytes": own.cached * DTYPES["bf16"],
        "F_over_6N": own.flops / (6 * own.active),
        "S": None,
        "control": None,
    }
    if control is not None:
        dense = _opened(control)
        notes += dense.notes
        summary |= {
            "S": sparsity(own, budgets_of(dense.config, rule, seen)),
            "control": dense.name,
        }
    ratios: list[dict[str, Any]] = []
    compared: list[dict[str, Any]] = []
    if other is not None:
        notes += other.notes
        compared = _terms(make_ledger(other.config), rule, seen)
        ratios = _ratios(one, other, rule, seen)
        settings["compare"] = other.name
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(notes)],
        "settings": settings,
        "summary": Carried([summary]),
        "totals": Carried(_totals(ledger)),
        "compared": Carried(compared),
        "conventions": Carried(_conventions(ledger, over, own.active)),
        "cache": Carried(
            {"dtype": name, "bytes_per_token": own.cached * size} for name, size in DTYPES.items()
        ),
        "ratios": Carried(ratios),
    }
    return frame


def _terms(ledger: Ledger, rule: Convention, seen: Lengths) -> list[dict[str, Any]]:
    """Return a row per term, with its share of the FLOPs."""
    rows: list[dict[str, Any]] = []
    for term in ledger.terms:
        forward = flops_of_term(term, rule, seen)
        rows.append(
            {
                "kind": term.kind,
                "term": term.name + (f", window {term.window}" if term.window else ""),
                "parameters": term.parameters,
                "active": term.active,
                "forward_flops": forward,
                "training_flops": TRAINING * forward,
                "kv_elements": term.cached,
            }
        )
    total = sum(row["training_flops"] for row in rows)
    for row in rows:
        row["flops_share"] = row["training_flops"] / total if total else 0.0
    return rows


class _Over:
    """What a token attends to under each convention."""

    def __init__(self, *, sequence: Lengths, documents: Lengths) -> None:
        self.sequence, self.documents = sequence, documents

    def at_mean(self, rule: Convention) -> Lengths:
        """Return the lengths that the convention takes: one document of mean length, or one sequence."""
        return Lengths.of(self.documents.mean) if rule.over == "documents" else self.sequence


def _opened(model: str | NamedModel) -> NamedModel:
    return model if isinstance(model, NamedModel) else open_model(str(model))


def _totals(ledger: Ledger) -> list[dict[str, Any]]:
    return [
        {
            "counted": words,
            "parameters": ledger.parameters(embedding=which),
            "active": ledger.active(embedding=which),
        }
        for words, which in EMBEDDINGS.items()
    ]


def _conventions(ledger: Ledger, over: _Over, active: int) -> list[dict[str, Any]]:
    """Count FLOPs per token under every convention, beside what attention under the mask of documents costs."""
    rows = []
    for rule in CONVENTIONS.values():
        flops = flops_per_token(ledger, rule, over.at_mean(rule))
        packed = None if rule.over == "nothing" else flops_per_token(ledger, rule, over.documents)
        rows.append(
            {
                "convention": rule.name,
                "F": flops,
                "F_packed": packed,
                "over_6n": flops / (6 * active),
                "includes": rule.includes,
                "source": rule.source,
            }
        )
    return rows


def _ratios(one: NamedModel, other: NamedModel, rule: Convention, seen: Lengths) -> list[dict[str, Any]]:
    mine, theirs = budgets_of(one.config, rule, seen), budgets_of(other.config, rule, seen)
    return [
        {"budget": name, "model": a, "reference": b, "ratio": a / b, "deviation": a / b - 1}
        for name, a, b in (
            ("FLOPs per token", mine.flops, theirs.flops),
            ("parameters", mine.parameters, theirs.parameters),
            ("KV cache", mine.cached, theirs.cached),
        )
    ]
