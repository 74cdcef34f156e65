"""`make results`: what is listed is measured once, resumed where interrupted, and packed."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT
from tools import results


def write_bundle(place: Path, status: str = "complete") -> Path:
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(json.dumps({"status": status}))
    return place


def test_a_bundle_is_begun_and_then_resumed(tmp_path: Path) -> None:
    place = tmp_path / "redis"
    command = "run envelope --systems redis --replicates 5"
    assert results.arguments(command, place) == [
        *command.split(),
        *("--jobs", "auto", "--out", str(place)),
    ]
    write_bundle(place, "interrupted")
    resumed = ["run", "--jobs", "1", "--resume", str(place)]
    assert results.arguments(f"{command} --jobs 1", place) == resumed
    assert results.arguments("drill run a --jobs 1", place) == ["drill", *resumed]


def test_what_is_complete_is_not_measured_again(tmp_path: Path) -> None:
    write_bundle(tmp_path / "a")
    assert results.measure({"a": "no such command"}, tmp_path) == 0
    assert not results.is_complete(write_bundle(tmp_path / "b", "running"))
    assert not results.is_complete(tmp_path / "c")


def test_all_bundles_are_in_one_archive_with_its_hash_and_the_same_bytes(tmp_path: Path) -> None:
    point = write_bundle(tmp_path / "in" / "x" / "points" / "one")
    (point / "samples.parquet").write_bytes(b"rows")
    write_bundle(tmp_path / "in" / "x" / "points" / "one.attempt-1")
    (point / "packets.parquet").write_bytes(b"packets")
    write_bundle(tmp_path / "in" / "y")
    archives = [tmp_path / out / "results.tar.gz" for out in ("one", "two")]
    digests = {results.pack(["y", "x"], tmp_path / "in", archive) for archive in archives}
    assert digests == {hashlib.sha256(archives[0].read_bytes()).hexdigest()}
    (line,) = archives[0].with_name("results.tar.gz.sha256").read_text().splitlines()
    assert line == f"{digests.pop()}  results.tar.gz"
    with tarfile.open(archives[0]) as tar:
        names = [name.partition("/")[2] for name in tar.getnames()]
        inside = tar.extractfile(f"{results.NAME}/x/points/one/samples.parquet")
        assert inside is not None and inside.read() == b"rows"
    assert names == [
        "x/points/one/manifest.json",
        "x/points/one/samples.parquet",
        "y/manifest.json",
    ]
    assert {file.name for file in archives[0].parent.iterdir()} == {
        *("results.tar.gz", "results.tar.gz.sha256")
    }


def test_a_name_that_is_not_listed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main(["no-such"]) == 2
    assert "envelope/redis" in capsys.readouterr().err


def test_what_is_listed_has_figures_beside_its_page() -> None:
    """But for what is not measured yet, and on no page."""
    pages = CHECKOUT / "docs" / "results"
    lacking = {
        name
        for name in results.listed()
        if not any((pages / name / file).is_file() for file in ("summary.json", "matrix.json"))
    }
    assert lacking == {"envelope/nats", "envelope/garage-nodelay"}
