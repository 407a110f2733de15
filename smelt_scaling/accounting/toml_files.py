"""Model dimensions as TOML: read strictly, written so that reading gives the same model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from smelt_scaling.accounting.config import Experts, LatentAttention, Loop, ModelConfig
from smelt_scaling.errors import DataError, UsageError

__all__ = ["parse_toml", "read_toml", "to_toml"]

#: Tables of the file -> what they hold.
_TABLES: dict[str, type] = {"experts": Experts, "latent": LatentAttention, "loop": Loop}


def read_toml(path: str | Path) -> ModelConfig:
    """Read a model from a TOML file.

    Raises
    ------
    DataError
        If it cannot be read, is no TOML, or breaks a rule of `ModelConfig`; it names the key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    return parse_toml(text, source=str(path))


def parse_toml(text: str, *, source: str = "model") -> ModelConfig:
    r"""Take a model from TOML: the fields of `ModelConfig`, with tables ``experts``, ``latent`` and ``loop``.

    Examples
    --------
    >>> text = "hidden = 64\nlayers = 4\nheads = 4\nkv_heads = 2\nhead_dim = 16\n"
    >>> text += "[experts]\ncount = 8\nactive = 2\nwidth = 32\n"
    >>> parse_toml(text).experts.count
    8
    >>> parse_toml(text.replace("width", "widht"), source="m.toml")
    Traceback (most recent call last):
        ...
    smelt_scaling.errors.DataError: m.toml: key experts.widht is unknown; did you mean width?
    """
    try:
        record = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{source}: is not TOML ({error})") from error
    values: dict[str, Any] = {"name": source, **record}
    for table, kind in _TABLES.items():
        if table in record:
            if not isinstance(record[table], Mapping):
                raise DataError(f"{source}: key {table} must be a table, [{table}]")
            values[table] = _made(kind, record[table], source, f"{table}.")
    made = _made(ModelConfig, values, source, "")
    assert isinstance(made, ModelConfig)
    return made


def _made(kind: type, record: Mapping[str, Any], source: str, prefix: str) -> Any:
    """Make one value of a dataclass, with every key known and every needed one there."""
    known = {field.name: field for field in fields(kind)}
    for key in record:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise DataError(f"{source}: key {prefix}{key} is unknown; {hint}")
    for name, field in known.items():
        if name not in record and field.default is MISSING:
            raise DataError(f"{source}: key {prefix}{name} is missing")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    for key, value in values.items():
        whole = str(known[key].type) in ("int", "tuple[int, ...]")
        items = value if isinstance(value, tuple) else (value,)
        if whole and any(isinstance(item, bool) or not isinstance(item, int) for item in items):
            raise DataError(f"{source}: key {prefix}{key} {value!r}: must be a whole number")
        if str(known[key].type) == "bool" and not isinstance(value, bool):
            raise DataError(f"{source}: key {prefix}{key} {value!r}: must be true or false")
    try:
        return kind(**values)
    except UsageError as error:
        raise DataError(str(error)) from error


def to_toml(config: ModelConfig) -> str:
    """Write a model as TOML; what is at its default is left out.

    Examples
    --------
    >>> config = ModelConfig(hidden=64, layers=4, heads=4, kv_heads=2, head_dim=16, d_ff=128, name="tiny",
    ...                      loop=Loop(first=1, last=2, times=2))
    >>> print(to_toml(config))
    name = "tiny"
    hidden = 64
    layers = 4
    heads = 4
    kv_heads = 2
    head_dim = 16
    d_ff = 128
    <BLANKLINE>
    [loop]
    first = 1
    last = 2
    times = 2
    <BLANKLINE>
    """
    lines = [f"name = {_value(config.name)}", *_lines(config, skip=("name", *_TABLES))]
    for table in _TABLES:
        held = getattr(config, table)
        if held is not None:
            lines += ["", f"[{table}]", *_lines(held, skip=())]
    return "\n".join(lines) + "\n"


def _lines(value: Any, skip: tuple[str, ...]) -> list[str]:
    return [
        f"{field.name} = {_value(getattr(value, field.name))}"
        for field in fields(value)
        if field.name not in skip and getattr(value, field.name) != field.default
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
