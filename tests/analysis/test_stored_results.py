"""Every figure of a stored bundle comes out again, whatever becomes of the code that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import opened

from wanlat.analysis.summary import summarize
from wanlat.bundle.documents import SCHEMA_VERSION
from wanlat.bundle.read import read_json

FIRST_RELEASED = 2
VERSIONS = Path(__file__).parents[1] / "data" / "bundles"
OF_VERSIONS = sorted(path.parent for path in VERSIONS.glob("*/*/summary.json"))
"""Small bundles of each version of their schema that was released, and of the present one."""


def figures(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, word and verdict of a summary by where it stands; no sentence."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inner:
        if key in ("definitions", "notes", "sentence"):
            continue
        if isinstance(each, dict | list):
            yield from figures(each, f"{path}/{key}")
        else:
            yield f"{path}/{key}", each


def test_there_are_bundles_of_the_present_version_and_the_one_before() -> None:
    versions = {path.parent.name for path in OF_VERSIONS}
    assert {str(SCHEMA_VERSION), str(max(SCHEMA_VERSION - 1, FIRST_RELEASED))} <= versions


@pytest.mark.parametrize("path", OF_VERSIONS, ids=lambda path: str(path.relative_to(VERSIONS)))
def test_every_figure_comes_out_again(path: Path) -> None:
    summary = summarize(opened(path))
    made = dict(figures(summary.to_json()))
    for where, stored in figures(read_json(path / "summary.json")):
        close = isinstance(stored, float)
        assert made[where] == (pytest.approx(stored, rel=1e-6) if close else stored), where
