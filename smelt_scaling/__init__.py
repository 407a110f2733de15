"""From training runs to a compute-efficiency number you can publish.

Endpoints in, fitted scaling surfaces, a compute-optimal frontier, and the compute one architecture saves over
another: `read_endpoints`, then `fit`, then `ce_gain`. Public names load on first use, so that importing the
package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names for type checkers and editors, which do not follow `__getattr__`
    from smelt_scaling.accounting import ModelConfig as ModelConfig
    from smelt_scaling.analyses import ProbeWriter as ProbeWriter
    from smelt_scaling.analyses import allocate as allocate
    from smelt_scaling.analyses import audit_fairness as audit_fairness
    from smelt_scaling.analyses import ce_gain as ce_gain
    from smelt_scaling.analyses import compare_levels as compare_levels
    from smelt_scaling.analyses import design_report as design_report
    from smelt_scaling.analyses import diagnose as diagnose
    from smelt_scaling.analyses import domains as domains
    from smelt_scaling.analyses import downstream as downstream
    from smelt_scaling.analyses import endpoint_grid as endpoint_grid
    from smelt_scaling.analyses import flops_report as flops_report
    from smelt_scaling.analyses import length_gains as length_gains
    from smelt_scaling.analyses import match_budgets as match_budgets
    from smelt_scaling.analyses import notes_of as notes_of
    from smelt_scaling.analyses import parameter_conventions as parameter_conventions
    from smelt_scaling.analyses import plan as plan
    from smelt_scaling.analyses import predict as predict
    from smelt_scaling.analyses import probe_report as probe_report
    from smelt_scaling.analyses import read_design as read_design
    from smelt_scaling.analyses import read_scores as read_scores
    from smelt_scaling.analyses import reproduce as reproduce
    from smelt_scaling.analyses import shot_gaps as shot_gaps
    from smelt_scaling.analyses import sources as sources
    from smelt_scaling.endpoints import Endpoints as Endpoints
    from smelt_scaling.endpoints import default_sparsities as default_sparsities
    from smelt_scaling.endpoints import sparsity_tiers as sparsity_tiers
    from smelt_scaling.errors import DataError as DataError
    from smelt_scaling.errors import FitError as FitError
    from smelt_scaling.errors import FrontierError as FrontierError
    from smelt_scaling.errors import IngestError as IngestError
    from smelt_scaling.errors import Note as Note
    from smelt_scaling.errors import SmeltScalingError as SmeltScalingError
    from smelt_scaling.errors import StudyError as StudyError
    from smelt_scaling.errors import SupportError as SupportError
    from smelt_scaling.errors import UsageError as UsageError
    from smelt_scaling.fitting import FitResult as FitResult
    from smelt_scaling.frontier import Frontier as Frontier
    from smelt_scaling.ingest.logs import read_logs as read_logs
    from smelt_scaling.ingest.tidy import read_endpoints as read_endpoints
    from smelt_scaling.laws import LAWS as LAWS
    from smelt_scaling.laws import AdditiveLaw as AdditiveLaw
    from smelt_scaling.laws import Surface as Surface
    from smelt_scaling.laws import get_law as get_law
    from smelt_scaling.papers import load_paper as load_paper
    from smelt_scaling.papers import read_published as read_published
    from smelt_scaling.papers.example import example_endpoints as example_endpoints
    from smelt_scaling.reporting import show_table as show_table
    from smelt_scaling.study import Study as Study
    from smelt_scaling.study import fit as fit
    from smelt_scaling.study import load_study as load_study
    from smelt_scaling.synth import simulate as simulate

__version__ = "0.1.0"

#: Every public name and the module it comes from.
_EXPORTS = {
    "AdditiveLaw": "smelt_scaling.laws",
    "DataError": "smelt_scaling.errors",
    "Endpoints": "smelt_scaling.endpoints",
    "FitError": "smelt_scaling.errors",
    "FitResult": "smelt_scaling.fitting",
    "Frontier": "smelt_scaling.frontier",
    "FrontierError": "smelt_scaling.errors",
    "IngestError": "smelt_scaling.errors",
    "LAWS": "smelt_scaling.laws",
    "ModelConfig": "smelt_scaling.accounting",
    "Note": "smelt_scaling.errors",
    "ProbeWriter": "smelt_scaling.analyses",
    "SmeltScalingError": "smelt_scaling.errors",
    "Study": "smelt_scaling.study",
    "StudyError": "smelt_scaling.errors",
    "SupportError": "smelt_scaling.errors",
    "Surface": "smelt_scaling.laws",
    "UsageError": "smelt_scaling.errors",
    "allocate": "smelt_scaling.analyses",
    "audit_fairness": "smelt_scaling.analyses",
    "ce_gain": "smelt_scaling.analyses",
    "compare_levels": "smelt_scaling.analyses",
    "default_sparsities": "smelt_scaling.endpoints",
    "design_report": "smelt_scaling.analyses",
    "diagnose": "smelt_scaling.analyses",
    "downstream": "smelt_scaling.analyses",
    "domains": "smelt_scaling.analyses",
    "endpoint_grid": "smelt_scaling.analyses",
    "example_endpoints": "smelt_scaling.papers.example",
    "fit": "smelt_scaling.study",
    "flops_report": "smelt_scaling.analyses",
    "get_law": "smelt_scaling.laws",
    "length_gains": "smelt_scaling.analyses",
    "load_paper": "smelt_scaling.papers",
    "load_study": "smelt_scaling.study",
    "match_budgets": "smelt_scaling.analyses",
    "notes_of": "smelt_scaling.analyses",
    "parameter_conventions": "smelt_scaling.analyses",
    "plan": "smelt_scaling.analyses",
    "predict": "smelt_scaling.analyses",
    "probe_report": "smelt_scaling.analyses",
    "read_design": "smelt_scaling.analyses",
    "read_endpoints": "smelt_scaling.ingest.tidy",
    "read_logs": "smelt_scaling.ingest.logs",
    "read_published": "smelt_scaling.papers",
    "read_scores": "smelt_scaling.analyses",
    "reproduce": "smelt_scaling.analyses",
    "shot_gaps": "smelt_scaling.analyses",
    "show_table": "smelt_scaling.reporting",
    "simulate": "smelt_scaling.synth",
    "sources": "smelt_scaling.analyses",
    "sparsity_tiers": "smelt_scaling.endpoints",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_EXPORTS[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*_EXPORTS, "__version__"])
