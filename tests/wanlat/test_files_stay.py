"""A file of the user's is replaced by no command, unless --force says so."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, here
from wanlat.bundle.write import take_directory
from wanlat.output import replace_junit
from wanlat.topologies.errors import UserError

BUNDLES = CHECKOUT / "tests" / "data" / "bundles" / "2"
WRITING = [
    (f"report {BUNDLES}/study {BUNDLES}/round-trips -o both.html", "both.html"),
    (f"report --index {BUNDLES} -o .", "README.md"),
    (f"report --index {BUNDLES} -o .", "round-trips.png"),
    (f"report --claims {BUNDLES} -o .", "README.md"),
    (f"drill matrix {BUNDLES}/drill -o .", "matrix.json"),
    (f"drill matrix {BUNDLES}/drill -o .", "drills.md"),
    ("topology export one-site --to containerlab -o net.txt", "net.txt"),
    ("capture table record.rows -o packets.parquet", "packets.parquet"),
    ("capture table record.rows", "packets.parquet"),
    ("calibrate one-site --chart photo.png", "photo.png"),
    (f"trace --bundle {BUNDLES}/study --system quorum --endpoint E --out .", "trace.json"),
    ("lab exec --capture . three-datacenters n1 -- true", "packets.pcapng"),
    ("lab exec --capture . three-datacenters n1 -- true", "capture.json"),
    (f"compare {BUNDLES}/study {BUNDLES}/study --junit notes.txt", "notes.txt"),
    ("system new toy", "toy/system.yaml"),
    ("run endpoint-latency --systems quorum --out .", "notes.txt"),
    ("run endpoint-latency --systems quorum --out .", ".env"),
    ("trace five-sites --system quorum --endpoint GetObject --out .", "notes.txt"),
]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a file of the user's into the current directory."""
    monkeypatch.chdir(tmp_path)

    def put(name: str) -> Path:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
        return tmp_path / name

    return put


@pytest.mark.parametrize(("words", "name"), WRITING)
def test_it_stays_and_is_named(words: str, name: str, mine: Callable[[str], Path]) -> None:
    file = mine(name)
    if "record.rows" in words:
        Path("record.rows").touch()
    done = here(*shlex.split(words))
    assert done.returncode == 2, done.stderr
    assert Path(name).parts[0] in done.stderr or "not empty" in done.stderr
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "name"), [each for each in WRITING if each[0].startswith(("report", "drill matrix"))]
)
def test_with_force_it_is_replaced(words: str, name: str, mine: Callable[[str], Path]) -> None:
    file = mine(name)
    assert here(*shlex.split(words), "--force").returncode == 0
    assert file.read_bytes() != b"mine"


def test_a_report_for_a_ci_replaces_the_one_before(mine: Callable[[str], Path]) -> None:
    words = ("compare", f"{BUNDLES}/study", f"{BUNDLES}/study", "--junit", "junit.xml")
    assert [here(*words).returncode for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    "text", ["<?xml version='1.0'?>\n<project/>", "<testsuitesque/>", "<?xml?><a><testsuites/></a>"]
)
def test_a_report_for_a_ci_replaces_no_other_xml(mine: Callable[[str], Path], text: str) -> None:
    file = mine("pom.xml")
    file.write_text(text)
    with pytest.raises(UserError, match="another file"):
        replace_junit(file, "<testsuites/>")
    assert file.read_text() == text


def test_a_report_for_a_ci_follows_no_link(mine: Callable[[str], Path]) -> None:
    file, link = mine("before.xml"), Path("junit.xml")
    file.write_text("<testsuites/>")
    link.symlink_to(file)
    with pytest.raises(UserError, match="another file"):
        replace_junit(link, "<testsuites></testsuites>")
    assert file.read_text() == "<testsuites/>"


def test_a_bundle_that_came_with_a_link_is_no_way_out_of_it(mine: Callable[[str], Path]) -> None:
    """The file that keeps room on the disk is one of the bundle's own."""
    file, bundle = mine("notes.txt"), Path("bundle")
    bundle.mkdir()
    (bundle / ".wanlat-reserve").symlink_to(file)
    (bundle / ".reserve").symlink_to(file)
    take_directory(bundle, "", is_new=False).close()
    assert file.read_text() == "mine"
    with pytest.raises(UserError, match="not empty"):
        take_directory(bundle, "")


def test_a_file_that_is_called_as_our_own_stays(mine: Callable[[str], Path]) -> None:
    """A run that is killed leaves one with a random name, which the next removes."""
    left, file = mine("out/.wanlat-reserve.0123456789abcdef.partial"), mine("out/.wanlat-reserve")
    with pytest.raises(UserError, match="not empty"):
        take_directory(file.parent, "")
    take_directory(file.parent, "", is_new=False).close()
    assert file.read_text() == "mine"
    assert not left.exists()


def test_cleaning_removes_no_environment_of_the_users(tmp_path: Path) -> None:
    own = tmp_path / "venv"
    own.mkdir()
    listed = ["make", "-n", "clean", f"VENV={own}"]
    done = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert str(own) not in done.stdout
