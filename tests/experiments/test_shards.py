"""Shards of a matrix and how they are merged: simulated points, and two real shards."""

from __future__ import annotations

import cProfile
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.points.__main__ import measured, simulated_points
from tests.command_line import here
from tests.experiments.commands import manifest_of
from tests.experiments.matrices import points
from wanlat.bundle.errors import BundleError
from wanlat.experiments.config.study import Study
from wanlat.experiments.matrix import merge, run_matrix
from wanlat.experiments.matrix_points import (
    PreparedPoints,
    Shard,
    StudyPoints,
    prepare_points,
)
from wanlat.experiments.resume import read_unfinished
from wanlat.experiments.session import silent
from wanlat.topologies.errors import UserError

KEYS = {"name": "many", "topology": "one-site", "nodes": 1, "endpoints": ["GetObject"], "seed": 3}

Shards = Callable[..., list[Path]]


def plan(keys: dict[str, Any], directory: Path, shard: str | None = None) -> PreparedPoints:
    part = Shard.parse(shard) if shard else None
    batch = StudyPoints(Study.model_validate(keys))
    return prepare_points(batch, directory=directory, shard=part)


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Shards]:
    """Yield what runs a study in so many shards, whose points take no time, with their bundles."""

    def run_shards(of: int, only: int | None = None, **keys: Any) -> list[Path]:
        made = []
        for number in range(1, of + 1) if only is None else [only]:
            directory = tmp_path / f"part-{number}-of-{of}"
            ended = run_matrix(plan({**KEYS, **keys}, directory, f"{number}/{of}"), silent)
            assert ended.status == "complete"
            made.append(directory)
        return made

    with simulated_points():
        yield run_shards


def test_shards_share_every_point_and_merge_to_the_whole(tmp_path: Path, shards: Shards) -> None:
    keys: dict[str, Any] = {"matrix": {"object_size": [*range(1, 34)]}, "replicates": 3}
    parts = shards(4, **keys)
    whole = plan({**KEYS, **keys}, tmp_path / "whole")
    names = [[each["name"] for each in points(part)] for part in parts]
    assert sorted(name for part in names for name in part) == sorted(
        point.name for point in whole.points
    )
    assert [len(each) for each in names] == [25, 25, 25, 24]
    assert [manifest_of(part)["shard"] for part in parts] == ["1/4", "2/4", "3/4", "4/4"]
    merged = merge(parts[::-1], tmp_path / "merged")
    expected = [(p.name, p.point, p.directory, dict(p.values)) for p in whole.points]
    found = points(merged)
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
        merge([first / points(first)[0]["directory"]], tmp_path / "point")
    with pytest.raises(UserError, match="is not empty"):
        merge([first, second], first)


@pytest.mark.parametrize(
    ("key", "change", "named"),
    [
        ("systems", {"files": {"system.yaml": "another"}}, r"quorum: .*system\.yaml"),
        ("systems", {"sha256": "another"}, r"quorum: its program"),
        ("instruments", {"sha256": "another"}, r"oneshot: its program"),
    ],
)
def test_parts_that_other_programs_measured_do_not_merge(
    tmp_path: Path, shards: Shards, key: str, change: dict[str, Any], named: str
) -> None:
    first, second = shards(2, matrix={"object_size": [1, 2, 3, 4]})
    manifest = manifest_of(second)
    assert manifest[key]
    manifest[key][0] |= change
    (second / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=named):
        merge([first, second], tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_a_part_without_a_complete_point_is_refused(tmp_path: Path, shards: Shards) -> None:
    parts = shards(2, matrix={"object_size": [1, 2, 3, 4]})
    lost = points(parts[1])[0]["directory"]
    shutil.rmtree(parts[1] / lost)
    with pytest.raises(UserError, match=lost):
        merge(parts, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_what_a_point_costs_does_not_grow_with_their_number() -> None:
    def calls(points: int) -> float:
        """Of functions, for each point: what no busy machine changes."""
        profile = cProfile.Profile()
        profile.runcall(measured, points, shards=1)
        return sum(each.callcount for each in profile.getstats()) / points

    calls(5)  # what is imported once
    assert calls(100) < 1.3 * calls(10)


HOSTILE = "from pathlib import Path\nPath(__file__).with_name('canary').write_text('ran')\n"


def test_no_code_is_loaded_because_a_bundle_names_it(tmp_path: Path, shards: Shards) -> None:
    parts = shards(2, matrix={"object_size": [1, 2, 3]})
    own = tmp_path / "theirs"
    own.mkdir()
    (own / "system.yaml").write_text("schema: 1\nname: theirs\nextends: quorum\n")
    (own / "hooks.py").write_text(HOSTILE)
    for part in parts:
        path = part / "manifest.json"
        path.write_text(json.dumps(manifest_of(part) | {"adopted": {"theirs": str(own)}}))
    merged = ("merge", *map(str, parts), "-o", str(tmp_path / "merged"))
    for command in (merged, ("run", "--resume", str(parts[0]))):
        ended = here(*command)
        assert ended.returncode == 2 and "--systems" in ended.stderr
        assert not (own / "canary").exists()
    here(*merged, "--systems", f"{own}/")
    assert (own / "canary").exists()  # the user named it


def test_merging_and_resuming_follow_no_link(tmp_path: Path, shards: Shards) -> None:
    parts = shards(2, matrix={"object_size": [1, 2, 3]})
    (tmp_path / "own").write_text("canary")
    (parts[0] / points(parts[0])[0]["directory"] / "notes").symlink_to(tmp_path / "own")
    with pytest.raises(BundleError, match="link"):
        merge(parts, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    for name in (".wanlat-reserve", f".manifest.json.{'0a' * 8}.partial", "logs"):
        (parts[1] / name).symlink_to(tmp_path / "own")
    unfinished = read_unfinished(parts[1])
    with pytest.raises(BundleError, match="link"):
        run_matrix(unfinished.prepared(), silent, unfinished=unfinished)
    assert (tmp_path / "own").read_text() == "canary"
