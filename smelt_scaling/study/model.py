"""Study: fits, draws, settings and provenance of one run of the main job, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError
from smelt_scaling.fitting import FitResult, FitSettings
from smelt_scaling.laws import AdditiveLaw
from smelt_scaling.resampling import Draws

__all__ = ["SCHEMA_VERSION", "Bootstrap", "Study"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """What was resampled and how it went.

    Parameters
    ----------
    status : {"ok", "none", "refused"}
        Whether there are draws.
    reason : str
        Why there are none.
    replicates, seed : int
        How many, from which seed.
    unit : str
        What one label is: cell, scale*tier, trunk, run or row.
    paired : bool
        Whether the architectures share the resampled labels.
    certified_share : float
        Share of refits, over all architectures, with a certified optimum.
    degenerate : int
        Replicates in which some architecture could not identify every parameter.
    improved_by_extra_start : float
        Share of refits whose objective an extra start lowered.
    at_bound : mapping
        Architecture -> parameter -> number of refits that ended on its bound.
    no_wild : str
        Why there are no wild draws; empty if there are.
    """

    status: Literal["ok", "none", "refused"]
    reason: str
    replicates: int
    seed: int
    unit: str
    paired: bool
    certified_share: float | None
    degenerate: int
    improved_by_extra_start: float | None
    at_bound: Mapping[str, Mapping[str, int]]
    no_wild: str = "none were asked for; fit again with --wild"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "status": self.status,
            "reason": self.reason,
            "replicates": self.replicates,
            "seed": self.seed,
            "unit": self.unit,
            "paired": self.paired,
            "certified_share": self.certified_share,
            "degenerate": self.degenerate,
            "improved_by_extra_start": self.improved_by_extra_start,
            "at_bound": {arch: dict(counts) for arch, counts in self.at_bound.items()},
            "no_wild": self.no_wild,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """Fitted architectures with their draws: what every analysis takes.

    Parameters
    ----------
    law : AdditiveLaw
        The law, one for all architectures.
    fits : mapping of str to FitResult
        Architecture -> point estimate.
    draws : mapping of str to Draws, or None
        Architecture -> bootstrap replicates.
    jackknife : mapping of str to Draws, or None
        Architecture -> leave-one-label-out fits.
    bootstrap : Bootstrap
        What was resampled.
    settings : FitSettings
        Choices of the fit.
    endpoints : Endpoints
        The data.
    provenance : mapping
        Source, digests, versions, date.
    notes : tuple of Note
        Caveats of the data and of the resampling; each fit carries its own.
    wild : mapping of str to Draws, or None
        Architecture -> replicates of the wild cluster bootstrap.
    """

    law: AdditiveLaw
    fits: Mapping[str, FitResult]
    draws: Mapping[str, Draws] | None
    jackknife: Mapping[str, Draws] | None
    bootstrap: Bootstrap
    settings: FitSettings
    endpoints: Endpoints
    provenance: Mapping[str, Any]
    notes: tuple[Note, ...]
    wild: Mapping[str, Draws] | None = None

    @property
    def archs(self) -> tuple[str, ...]:
        """Names of the architectures, sorted."""
        return tuple(self.fits)

    @property
    def certified(self) -> bool:
        """Whether every point fit is certified."""
        return all(fit.certificate.certified for fit in self.fits.values())

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """Notes of the study and of every fit."""
        from smelt_scaling.errors import merge_notes

        return merge_notes(self.notes, *(fit.notes for fit in self.fits.values()))

    def __getitem__(self, arch: str) -> FitResult:
        """Return one architecture's fit."""
        if arch not in self.fits:
            raise UsageError(f"architecture {arch!r} is not in the study; it holds {', '.join(self.fits)}")
        return self.fits[arch]

    def to_dict(self) -> dict[str, Any]:
        """Return the study as the documented JSON of ``fit``."""
        return {
            "schema_version": SCHEMA_VERSION,
            "command": "fit",
            "settings": {"law": self.law.name, "formula": self.law.formula, **self.settings.to_dict()},
            "fits": [fit.to_dict() for fit in self.fits.values()],
            "bootstrap": self.bootstrap.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "provenance": dict(self.provenance),
        }

    def save(self, folder: str | Path) -> Path:
        """Write the study folder; see `smelt_scaling.study.store.save_study`."""
        from smelt_scaling.study.store import save_study

        return save_study(self, folder)

    def summary(self) -> str:
        """Return the one-screen summary as text."""
        from smelt_scaling.study.summary import summary_lines

        return "\n".join(summary_lines(self))

    def __repr__(self) -> str:
        draws = f"{self.bootstrap.replicates} draws" if self.draws else "no draws"
        return f"Study({self.law.name}; {', '.join(self.fits)}; {len(self.endpoints)} endpoints; {draws})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary())}</pre>"
