"""Every figure of a stored bundle comes out again, whatever becomes of the code that makes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import opened

from wanlat.analysis.summary import summarize
from wanlat.bundle.documents import SCHEMA_VERSION

FIRST_RELEASED = 2
RESULTS = Path(__file__).parents[2] / "docs" / "results"
STORED = (
    *("endpoint-latency/five-sites", "disk-reclaim/bob", "at-scale/cluster-growth"),
    *("round-trips/minio-2021-five-sites", "object-sizes/on-disk", "mixed-load/one-drive-first"),
)
"""One of each kind of report; their figures were checked by other code (docs/results)."""
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


@pytest.mark.parametrize("path", [*map(RESULTS.joinpath, STORED), *OF_VERSIONS], ids=str)
def test_every_figure_comes_out_again(path: Path) -> None:
    summary = summarize(opened(path))
    made = dict(figures(summary.to_json()))
    for where, stored in figures(json.loads((path / "summary.json").read_text("utf-8"))):
        close = isinstance(stored, float)
        assert made[where] == (pytest.approx(stored, rel=1e-6) if close else stored), where
