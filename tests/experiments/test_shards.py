"""Shards of a matrix and how they are merged: simulated points, and two real shards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from tests.experiments.commands import manifest_of
from wanlat.bundle.write import BundleWriter
from wanlat.experiments import matrix_points
from wanlat.experiments.config.study import Study
from wanlat.experiments.matrix import merge, run_matrix
from wanlat.experiments.matrix_points import PreparedMatrix, Shard, prepare_matrix
from wanlat.experiments.prepare import Prepared
from wanlat.experiments.session import Outcome, silent
from wanlat.topologies.errors import UserError

KEYS = {"name": "many", "topology": "one-site", "nodes": 1, "endpoints": ["GetObject"], "seed": 3}

Shards = Callable[..., list[Path]]


def plan(keys: dict[str, Any], directory: Path, shard: str | None = None) -> PreparedMatrix:
    part = Shard.parse(shard) if shard else None
    return prepare_matrix(Study.model_validate(keys), directory=directory, shard=part)


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shards:
    """Return what runs a study in so many shards, whose points take no time, with their bundles."""

    def run(prepared: Prepared, _report: object) -> Outcome:
        manifest = {"kind": "study", "study": prepared.study.to_dict(), "seed": prepared.seed}
        BundleWriter.create(prepared.directory, manifest).close("complete", None)
        return Outcome(prepared.directory, "complete")

    monkeypatch.setattr(matrix_points, "run", run)

    def run_shards(of: int, only: int | None = None, **keys: Any) -> list[Path]:
        made = []
        for number in range(1, of + 1) if only is None else [only]:
            directory = tmp_path / f"part-{number}-of-{of}"
            ended = run_matrix(plan({**KEYS, **keys}, directory, f"{number}/{of}"), silent)
            assert ended.status == "complete"
            made.append(directory)
        return made

    return run_shards


def points_of(bundle: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((bundle / "points.json").read_text())["points"]
    return found


def test_shards_share_every_point_and_merge_to_the_whole(tmp_path: Path, shards: Shards) -> None:
    keys: dict[str, Any] = {"matrix": {"object_size": [*range(1, 34)]}, "replicates": 3}
    parts = shards(4, **keys)
    whole = plan({**KEYS, **keys}, tmp_path / "whole")
    names = [[each["name"] for each in points_of(part)] for part in parts]
    assert sorted(name for part in names for name in part) == sorted(
        point.name for point in whole.points
    )
    assert [len(each) for each in names] == [25, 25, 25, 24]
    assert [manifest_of(part)["shard"] for part in parts] == ["1/4", "2/4", "3/4", "4/4"]
    merged = merge(parts[::-1], tmp_path / "merged")
    expected = [(p.name, p.point, p.directory, dict(p.values)) for p in whole.points]
    found = points_of(merged)
    assert [(p["name"], p["point"], p["directory"], p["values"]) for p in found] == expected
    assert {point["status"] for point in found} == {"complete"}
    assert all((merged / point["directory"] / "manifest.json").exists() for point in found)
    manifest = manifest_of(merged)
    assert (manifest["status"], manifest["shard"]) == ("complete", None)
    assert sorted(part["shard"] for part in manifest["parts"]) == ["1/4", "2/4", "3/4", "4/4"]
    # Its own report knows all of it; nothing is left to resume.
    resumed = here("run", "--resume", str(merged), "-q")
    assert "nothing is left to measure" in resumed.stderr


def test_only_parts_of_one_run_merge(tmp_path: Path, shards: Shards) -> None:
    keys = {"matrix": {"object_size": [1, 2, 3, 4]}}
    first, second = shards(2, **keys)
    with pytest.raises(UserError, match=r"object_size-\dB was measured in .* and in "):
        merge([first, second, first], tmp_path / "twice")
    (other_seed,) = shards(3, only=2, **keys, **{"seed": 4})
    with pytest.raises(
        UserError, match=r"they differ in study and seed\. Give all shards the same"
    ):
        merge([first, other_seed], tmp_path / "seeds")
    with pytest.raises(UserError, match="a bundle of kind study"):
        merge([first / points_of(first)[0]["directory"]], tmp_path / "point")
    with pytest.raises(UserError, match="is not empty"):
        merge([first, second], first)
