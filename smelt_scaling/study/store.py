"""Saving and loading a study: ``study.json``, ``draws.parquet`` and ``endpoints.parquet`` in one folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from smelt_scaling._json import dumps
from smelt_scaling._schema import NATS
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, StudyError
from smelt_scaling.fitting import Certificate, Convention, FitResult, FitSettings, FitStatus
from smelt_scaling.laws import AdditiveLaw, Surface, get_law
from smelt_scaling.resampling import Draws
from smelt_scaling.study.model import SCHEMA_VERSION, Bootstrap, Study
from smelt_scaling.study.provenance import file_sha256

__all__ = ["check_folder", "load_study", "save_study"]

FILES = ("study.json", "draws.parquet", "endpoints.parquet")
ASIDE = ".saving-"  # prefix of the folder in which a save is prepared


def save_study(study: Study, folder: str | Path) -> Path:
    """Write a study aside and move its files into place, ``study.json`` last.

    ``study.json`` holds the checksums of the other two, so a reader never takes a half-replaced folder for a study.
    Other files of the folder stay.

    Parameters
    ----------
    study : Study
        What to save.
    folder : path
        Replaced if it is a study; must not exist, or be empty, otherwise.

    Raises
    ------
    StudyError
        If the folder holds something else.
    """
    target = check_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=ASIDE, dir=target) as name:
        aside = Path(name)
        _write_draws(study, aside / FILES[1])
        _write_endpoints(study.endpoints, aside / FILES[2])
        parts = {part: file_sha256(str(aside / part)) for part in FILES[1:]}
        (aside / FILES[0]).write_text(dumps({**study.to_dict(), "files": parts}), encoding="utf-8")
        for part in reversed(FILES):
            (aside / part).replace(target / part)
    return target


def check_folder(folder: str | Path) -> Path:
    """Return a folder that a study may be written to; ask before a long fit rather than after it.

    Raises
    ------
    StudyError
        If it is a file, or a folder that holds something other than a study.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise StudyError(f"{target}: is a file; a study is a folder; choose another -o")
    if (target / FILES[0]).is_file() and not _ours(target / FILES[0]):
        raise StudyError(
            f"{target / FILES[0]}: was not written by smelt-scaling, so it is not replaced; choose another -o"
        )
    others = target.is_dir() and any(not path.name.startswith(ASIDE) for path in target.iterdir())
    if others and not (target / FILES[0]).is_file():
        raise StudyError(
            f"{target}: is not empty and holds no {FILES[0]}, so it will not be replaced; choose another -o"
        )
    return target


def _ours(path: Path) -> bool:
    """Tell whether a file is the record of a fit."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return record["command"] == "fit" and isinstance(record["schema_version"], int)
    except (KeyError, TypeError, ValueError):
        return False


def load_study(folder: str | Path) -> Study:
    """Read a study folder written by this or an older version.

    Raises
    ------
    StudyError
        If the folder is not a study, is incomplete, or comes from a newer version.
    """
    path = Path(folder)
    if not (path / FILES[0]).is_file():
        raise StudyError(
            f"{path}: holds no study ({FILES[0]} is missing); "
            f"make one with: smelt-scaling fit runs.parquet -o {quote(str(path))}"
        )
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise StudyError(
            f"{path}: incomplete, {', '.join(missing)} missing; fit again with -o {quote(str(path))}"
        )
    try:
        data = json.loads((path / FILES[0]).read_text(encoding="utf-8"))
        if data["schema_version"] > SCHEMA_VERSION:
            raise StudyError(
                f"{path / FILES[0]}: schema version {data['schema_version']} is newer than {SCHEMA_VERSION}; "
                "upgrade smelt-scaling"
            )
        for part, digest in data.get("files", {}).items():
            if file_sha256(str(path / part)) != digest:
                raise StudyError(
                    f"{path / part}: is not the file that {FILES[0]} was saved with; "
                    f"fit again with -o {quote(str(path))}"
                )
        settings = dict(data["settings"])
        law = _law(settings.pop("law"), settings.pop("formula"))
        endpoints = _read_endpoints(path / FILES[2], data["provenance"]["source"])
        draws = _read_draws(path / FILES[1], law)
        return Study(
            law=law,
            fits={item["arch"]: _fit_result(item, law) for item in data["fits"]},
            draws=draws.get("bootstrap"),
            jackknife=draws.get("jackknife"),
            wild=draws.get("wild"),
            bootstrap=Bootstrap(**_known(Bootstrap, data["bootstrap"])),
            settings=FitSettings(
                **_known(FitSettings, settings)
                | {
                    "delta": _number(settings["delta"]),
                    "pins": settings["pins"] or None,
                    "pin_tags": settings.get("pin_tags") or None,
                }
            ),
            endpoints=endpoints,
            provenance=data["provenance"],
            notes=_notes(data["notes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StudyError(
            f"{path}: cannot be read as a study ({type(error).__name__}: {error}); fit again"
        ) from error


def _law(name: str, formula: str) -> AdditiveLaw:
    known = get_law(name) if name != formula else None
    return known if known is not None and known.formula == formula else AdditiveLaw(name, formula)


def _number(value: Any) -> Any:
    return float("inf") if value == "inf" else value


def _notes(items: list[dict[str, Any]]) -> tuple[Note, ...]:
    return tuple(Note(**_known(Note, item)) for item in items)


def _known(kind: type[Any], item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys this version knows: a minor version may add some without a new schema version."""
    names = {field.name for field in fields(kind)}
    return {key: value for key, value in item.items() if key in names}


def _fit_result(item: dict[str, Any], law: AdditiveLaw) -> FitResult:
    values = {
        name: item["held"].get(name) if value is None else value
        for name, value in item["coefficients"].items()
    }
    certificate = dict(item["certificate"])
    condition = certificate.pop("condition")
    return FitResult(
        arch=item["arch"],
        surface=Surface(law=law, coef=np.array([values[name] for name in law.parameters])),
        certificate=Certificate(
            **_known(Certificate, certificate)
            | {
                "status": FitStatus[certificate["status"].upper()],
                "at_bounds": tuple(certificate["at_bounds"]),
                "condition": float("inf") if condition is None else condition,
            }
        ),
        objective=item["objective"],
        rmse=item["rmse"],
        rmse_log=item["rmse_log"],
        n=item["n"],
        n_cells=item["n_cells"],
        delta=_number(item["delta"]),
        window={name: (low, high) for name, (low, high) in item["window"].items()},
        unidentified=item["unidentified"],
        only_at=item["only_at"],
        collinear=tuple(item["collinear"]),
        pinned=item["pinned"],
        notes=_notes(item["notes"]),
        loss_unit=item.get("loss_unit", NATS),
        conventions=tuple(Convention(**_known(Convention, one)) for one in item.get("conventions", [])),
        rmse_without_lowest_tier=item.get("rmse_without_lowest_tier"),
    )


def _write_draws(study: Study, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parameters = study.law.parameters
    tables, labels = [], {}
    for plan, group in (("bootstrap", study.draws), ("jackknife", study.jackknife), ("wild", study.wild)):
        for arch, draws in (group or {}).items():
            labels[f"{plan}/{arch}"] = list(draws.labels)
            n = len(draws)
            bounds = [[p for p, on in zip(parameters, row, strict=True) if on] for row in draws.at_bound]
            columns: dict[str, pa.Array] = {
                "plan": pa.array([plan] * n, pa.string()),
                "replicate": pa.array(np.arange(n, dtype=np.int64)),
                "arch": pa.array([arch] * n, pa.string()),
                **{name: pa.array(draws.surface[name]) for name in parameters},
                "certified": pa.array(draws.certified),
                "degenerate": pa.array(draws.degenerate),
                "improved": pa.array(draws.improved),
                "at_bound": pa.array(bounds, pa.list_(pa.string())),
                "objective": pa.array(draws.objective),
                "counts": pa.array(list(draws.counts), pa.list_(pa.int16())),
            }
            tables.append(pa.table(columns))
    if not tables:
        tables.append(pa.table({"plan": pa.array([], pa.string())}))
    table = pa.concat_tables(tables).replace_schema_metadata(
        {"labels": json.dumps(labels, ensure_ascii=False)}
    )
    pq.write_table(table, path)


def _read_draws(path: Path, law: AdditiveLaw) -> dict[str, dict[str, Draws]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    result: dict[str, dict[str, Draws]] = {}
    for key, names in json.loads(table.schema.metadata[b"labels"]).items():
        plan, arch = key.split("/", 1)
        keep = np.flatnonzero(
            (np.array(table["plan"].to_pylist()) == plan)
            & (np.array(table["arch"].to_pylist(), dtype=object) == arch)
        )
        part = table.take(keep)
        column = {
            name: part[name].to_numpy()
            for name in (*law.parameters, "certified", "degenerate", "improved", "objective")
        }
        bounds = [set(items) for items in part["at_bound"].to_pylist()]
        result.setdefault(plan, {})[arch] = Draws(
            surface=Surface(law=law, coef=np.stack([column[name] for name in law.parameters], axis=1)),
            certified=column["certified"],
            degenerate=column["degenerate"],
            improved=column["improved"],
            at_bound=np.array([[name in items for name in law.parameters] for items in bounds]).reshape(
                -1, len(law.parameters)
            ),
            objective=column["objective"],
            counts=np.array(part["counts"].to_pylist(), dtype=np.int16),
            labels=tuple(names),
        )
    return result


def _write_endpoints(endpoints: Endpoints, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: Mapping[str, Any] = {
        name: pa.array(values.tolist(), pa.string()) if values.dtype.kind in "OUT" else pa.array(values)
        for name, values in endpoints.columns.items()
    }
    # tiers are relative to the table they were computed on, so a subset cannot recompute them
    pq.write_table(pa.table({**columns, "tier": pa.array(endpoints.tiers.astype(np.int64))}), path)


def _read_endpoints(path: Path, source: str) -> Endpoints:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = {
        name: np.array(table[name].to_pylist())
        if str(table.schema.field(name).type) == "string"
        else table[name].to_numpy()
        for name in table.column_names
    }
    tiers = columns.pop("tier")
    return Endpoints(columns=columns, source=source, tiers=tiers)
