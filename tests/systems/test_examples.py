"""The definitions in examples/systems: written as a user's, and really run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command_line import here
from tests.needs import lab_of
from wanlat.systems import registry
from wanlat.systems.catalogue import entry_of, install_systems

EXAMPLES = Path(__file__).parents[2] / "examples" / "systems"
EVERY = sorted(each.parent for each in EXAMPLES.glob("*/system.yaml"))
QUICK = ["gofakes3", "greeter"]
"""They are built in less than two minutes, downloads included."""


@pytest.mark.parametrize("directory", EVERY, ids=lambda each: each.name)
def test_a_definition_is_short_and_without_a_program_of_its_own(directory: Path) -> None:
    system = registry.get(registry.adopt(f"{directory}/"))
    assert system.name == directory.name and system.recipe is not None
    assert system.how_to_get == f"wanlat system install {directory}"
    assert {each.suffix for each in directory.iterdir()} <= {".yaml", ".proto"}
    assert len((directory / "system.yaml").read_text("utf-8").splitlines()) < 60


@pytest.mark.registry
@pytest.mark.parametrize("name", QUICK)
def test_it_is_built_and_answers_each_request(name: str) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed (https://go.dev/dl)")
    install_systems([str(EXAMPLES / name)])
    assert_answers(name)


@pytest.mark.stores
@pytest.mark.parametrize("name", sorted({each.name for each in EVERY} - {*QUICK}))
def test_one_that_takes_minutes_to_build_answers_each_request_where_it_is_there(name: str) -> None:
    entry = entry_of(registry.get(registry.adopt(str(EXAMPLES / name))))
    if not entry.installed:
        pytest.skip(str(entry.problem))
    assert_answers(name)


def assert_answers(name: str) -> None:
    with lab_of("one-site"):
        pass  # where there can be none, this skips
    done = here("system", "check", str(EXAMPLES / name), "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert found and {each["outcome"] for each in found} == {"ok"}
