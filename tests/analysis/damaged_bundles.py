"""Stored bundles, and what damages them: other values, ends cut off, words that are no words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from wanlat.bundle.documents import SCHEMA_VERSION

STORED = Path(__file__).parents[1] / "data" / "bundles" / str(SCHEMA_VERSION)
"""A study, a matrix, a study of round trips and a drill, of a few requests each."""
HOSTILE = """</script></style><script>alert(1)</script><img src=x onerror=alert(1)>"'{{ 7*7 }}"""
HOSTILE += "\x1b]0;mine\x07\x1b[31m\x9b1m\u202e$x^{"
VERBATIM = ("kind", "status", "verdict", "outcome", "phase", "placement", "directory")
"""Keys and columns whose words are an enumeration, or name a file of the bundle."""

Place = tuple[str | int, ...]


def stored(name: str, directory: Path) -> Path:
    """A copy of a stored bundle."""
    shutil.rmtree(directory, ignore_errors=True)
    return shutil.copytree(STORED / name, directory)


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Where every value of a document stands; of a list the first two."""
    yield path
    inner: Any = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value[:2]) if isinstance(value, list) else inner:
        yield from places(each, (*path, key))


def replaced(document: Any, path: Place, value: Any) -> Any:
    """The document with another value in one place."""
    if not path:
        return value
    key: Any = path[0]
    made = list(document) if isinstance(document, list) else dict(document)
    made[key] = replaced(document[key], path[1:], value)
    return made


def make_hostile(directory: Path) -> None:
    """Have every word of a study's bundle end in what a page or a terminal might obey."""
    for path in directory.rglob("*.json"):
        path.write_text(json.dumps(_hostile(json.loads(path.read_text("utf-8")))))
    for path in directory.rglob("*.parquet"):
        rows = pd.read_parquet(path)
        for name in rows.columns.difference([*VERBATIM, "subject"]):
            if pd.api.types.is_string_dtype(rows[name]):
                rows[name] = rows[name].map(_hostile_text, na_action="ignore")
        if "error" in rows.columns:
            rows["error"] = HOSTILE
        rows.to_parquet(path)


def _hostile_text(text: object) -> str:
    """Of an object in JSON every word."""
    if str(text).startswith("{"):
        return json.dumps(_hostile(json.loads(str(text))))
    return f"{text}{HOSTILE}"


def _hostile(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        is_named = key in ("tcp", "options", "load")
        return {f"{k}{HOSTILE}" if is_named else k: _hostile(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_hostile(each, key) for each in value]
    return value + HOSTILE if isinstance(value, str) and key not in VERBATIM else value
