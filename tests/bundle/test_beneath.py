"""One door to a bundle's files: no way in it leads out, and a file is whole or the one before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from wanlat.bundle import beneath, documents, read, write
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import how_ended

CANARY = b"of the reader"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the reader's own."""
    place = tmp_path / "own"
    place.mkdir()
    (place / "secret").write_bytes(CANARY)
    return place / "secret"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    made.mkdir()
    return made


def test_a_link_is_not_read_wherever_it_leads(bundle: Path, outside: Path) -> None:
    (bundle / "own.json").write_text("{}")
    for name, target in (("a", outside), ("b", bundle / "own.json"), ("c", Path("nowhere"))):
        (bundle / name).symlink_to(target)
        for use in (beneath.opened, beneath.is_file, beneath.appended):
            with pytest.raises(BundleError, match="link"):
                use(bundle / name)
    assert outside.read_bytes() == CANARY


@pytest.mark.parametrize("inside", ["charts", "logs", "points", "points/x"])
def test_no_directory_of_a_bundle_is_a_link(bundle: Path, outside: Path, inside: str) -> None:
    (bundle / "manifest.json").write_text("{}")
    (bundle / inside).parent.mkdir(exist_ok=True)
    (bundle / inside).symlink_to(outside.parent)
    path = bundle / ("points/x/secret" if "points" in inside else f"{inside}/secret")
    with pytest.raises(BundleError, match="link"):
        beneath.opened(path)
    with pytest.raises(BundleError, match="link"), beneath.replacing(path) as file:
        file.write(b"mine")
    assert [*outside.parent.iterdir()] == [outside] and outside.read_bytes() == CANARY


def test_the_directory_that_the_user_names_may_be_a_link(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(bundle)
    with beneath.replacing(tmp_path / "named" / "a") as file:
        file.write(b"1")
    assert beneath.opened(tmp_path / "named" / "a").read() == b"1"


def test_a_pipe_is_refused_and_not_waited_for(bundle: Path) -> None:
    os.mkfifo(bundle / "manifest.json")
    with pytest.raises(BundleError, match="regular"):
        beneath.opened(bundle / "manifest.json")


@pytest.mark.parametrize("name", ["charts", "logs", "capture"])
def test_a_point_of_such_a_name_hides_no_link(bundle: Path, outside: Path, name: str) -> None:
    (bundle / "manifest.json").write_text("{}")
    (outside.parent / name).mkdir()
    (outside.parent / name / "tables.md").write_bytes(CANARY)
    (bundle / "points").symlink_to(outside.parent)
    path = bundle / "points" / name / "tables.md"
    with pytest.raises(BundleError, match="link"):
        beneath.opened(path)
    with pytest.raises(BundleError, match="link"), beneath.replacing(path) as file:
        file.write(b"mine")


def test_no_words_of_a_bundle_lead_out_of_its_charts(bundle: Path, outside: Path) -> None:
    (bundle / "charts").mkdir()
    climbing = bundle / "charts" / f"trace-x/../../../{outside.parent.name}/pwn.png"
    with pytest.raises(BundleError), beneath.replacing(climbing) as file:
        file.write(b"mine")
    with pytest.raises(BundleError), beneath.replacing(bundle / "a\nb") as file:
        file.write(b"mine")
    assert [*outside.parent.iterdir()] == [outside]
    for words in ("x/../../y", "..", "\n::error::", "/etc/passwd"):
        named = beneath.file_name(words)
        assert (Path("charts") / named).parts == ("charts", named) and named.isprintable()


def test_what_is_written_replaces_a_link_and_follows_none(bundle: Path, outside: Path) -> None:
    for name in ("tables.md", ".tables.md.partial"):
        (bundle / name).symlink_to(outside)
    with beneath.replacing(bundle / "tables.md") as file:
        file.write(b"mine")
    assert (bundle / "tables.md").read_bytes() == b"mine"
    assert not (bundle / "tables.md").is_symlink() and outside.read_bytes() == CANARY


def test_of_two_writers_at_once_both_leave_a_whole_file(bundle: Path) -> None:
    path = bundle / "report.html"
    with beneath.replacing(path) as first:
        first.write(b"1" * 9000)
        with beneath.replacing(path) as second:
            second.write(b"2" * 5)
            first.write(b"1" * 9000)
        assert path.read_bytes() == b"2" * 5
    assert path.read_bytes() == b"1" * 18000 and [*bundle.iterdir()] == [path]


def test_a_writer_that_fails_leaves_the_file_before(bundle: Path) -> None:
    path = bundle / "a"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), beneath.replacing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before" and [*bundle.iterdir()] == [path]


@pytest.mark.parametrize(
    "place",
    ["..", ".", "../x", "x/../../y", "/etc", "x\n::error::y", "\x1b", "charts", "logs", "capture"],
)
def test_a_point_lies_in_its_matrix(place: str) -> None:
    point = {"point": 0, "name": "x", "system": "quorum", "values": {}}
    assert documents.Point.model_validate({**point, "directory": "points/x-1.5_b"})
    for directory in (f"points/{place}", place):
        with pytest.raises(ValidationError, match="directory"):
            documents.Point.model_validate({**point, "directory": directory})


def table_of(bundle: Path, rows: int, word: str) -> None:
    words = pa.array([word]).take(pa.array([0] * rows))
    pq.write_table(pa.table({"detail": words}), bundle / "events.parquet", compression="zstd")


def test_rows_and_words_of_a_table_are_bounded(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MOST_VALUES", 5000)
    monkeypatch.setattr(read, "MOST_TABLE_BYTES", 4 << 20)
    for rows, word, is_read in (
        (5000, "x", True),
        (5001, "x", False),
        (30, "x" * 100_000, True),
        (300, "x" * 100_000, False),
    ):
        table_of(bundle, rows, word)
        assert (bundle / "events.parquet").stat().st_size < 20_000
        if is_read:
            found = read.read_table(bundle, "events")
            assert found is not None and len(found[0]) == rows
        else:
            with pytest.raises(BundleError, match="larger"):
                read.read_table(bundle, "events")


def test_a_run_that_lasts_is_told_from_one_that_was_killed(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix"
    point = matrix / "points" / "x"
    lock = write.take_directory(matrix, "")
    point.mkdir(parents=True)
    lasting = {how_ended(status, point) for status in ("running", "planned")}
    assert read.is_being_written(matrix) and read.is_being_written(point)
    assert how_ended("failed", point) == "failed" and how_ended("complete", point) is None
    lock.close()
    ended = {how_ended(status, point) for status in ("running", "planned")}
    assert not read.is_being_written(point) and not lasting & ended


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    text = "import sys; from pathlib import Path; from wanlat.bundle.write import take_directory\n"
    text += "kept = take_directory(Path(sys.argv[1]), ''); print('has it', flush=True); input()"
    argv = [sys.executable, "-c", text, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stdout.readline() == b"has it\n"
        assert read.is_being_written(tmp_path)
        writer.kill()
    assert not read.is_being_written(tmp_path)
