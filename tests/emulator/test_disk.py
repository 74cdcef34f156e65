"""Labs on disk: what a user keeps where they are put stays, whatever it is called."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.plans import mesh
from wanlat.emulator import disk
from wanlat.emulator.disk import LabDirectory
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import UserError


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a user's own data, which the environment names for labs."""
    place = tmp_path / "mydata"
    for directory in (place / "lab-photos", place / "thesis" / "nodes" / "n1"):
        directory.mkdir(parents=True)
        (directory / "file").write_text("mine")
    (place / "file").write_text("mine")
    monkeypatch.setenv("WANLAT_LABS", str(place))
    return place


def contents(place: Path) -> dict[str, str]:
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_text() for path in files}


def store_of(mine: Path) -> Path:
    return mine / f"wanlat-labs-{os.geteuid()}"


def leave_dead() -> Path:
    """The data of a lab that was killed."""
    made = disk.make_directory()
    os.close(made.lock)
    return made.path


@pytest.fixture
def lab_directory(mine: Path) -> Iterator[LabDirectory]:
    made = disk.make_directory()
    yield made
    made.remove()


def test_a_lab_beside_a_users_data_leaves_it_as_it_was(mine: Path) -> None:
    before = contents(mine)
    with Lab(mesh(1), storage="disk") as lab:
        lab.run("n1", ["sh", "-c", "echo kept > file"])
    assert contents(mine) == before


def test_no_program_of_a_lab_keeps_its_data_from_being_removed(mine: Path) -> None:
    with Lab(mesh(1), storage="disk") as lab:
        (made,) = store_of(mine).iterdir()
        script = 'cd "$0"; echo kept >nodes/n1/file; echo x >.wanlat || rm .wanlat || touch other'
        assert lab.run("n1", ["sh", "-c", script, str(made)]).returncode != 0
        assert (lab.node("n1").host_directory / "file").read_text() == "kept\n"
        assert lab.node("n1").host_directory == made / "nodes" / "n1"
    assert not made.exists()


def test_what_dead_labs_left_is_removed_and_living_ones_stay(
    mine: Path, lab_directory: LabDirectory
) -> None:
    dead = leave_dead()
    disk.make_directory().remove()
    assert not dead.exists()
    assert lab_directory.path.is_dir()


def test_what_is_not_of_a_lab_stays_where_labs_are_and_is_reported(mine: Path) -> None:
    """A copy of a lab's data under another name, a link to a directory, one called like a lab's."""
    dead, store = leave_dead(), store_of(mine)
    shutil.copytree(dead, store / "lab-saved")
    (store / "lab-link").symlink_to(mine / "thesis")
    shutil.copytree(mine / "lab-photos", store / "lab-photos")
    before = contents(mine / "thesis") | contents(store / "lab-photos")
    made = disk.make_directory()
    made.remove()
    assert not dead.exists()
    assert {path.name for path in made.foreign} == {"lab-saved", "lab-link", "lab-photos"}
    assert contents(mine / "thesis") | contents(store / "lab-photos") == before
    assert (store / "lab-saved" / "nodes").is_dir()


def test_a_link_in_a_dead_labs_data_leads_to_no_removal(mine: Path) -> None:
    before = contents(mine)
    (leave_dead() / "nodes" / "n1").symlink_to(mine)
    disk.make_directory().remove()
    assert contents(mine) == before


def test_a_directory_that_another_could_swap_is_refused(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    store_of(mine).symlink_to(tmp_path / "theirs")
    with pytest.raises(UserError, match="WANLAT_LABS"):
        disk.make_directory()
    assert not any((tmp_path / "theirs").iterdir())
