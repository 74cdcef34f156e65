"""What holds for all tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.fixed_environment import fix_process
from wanlat.systems import registry

fix_process()

# How long an example takes is the machine's matter: a stall of it is no failure.
settings.register_profile("wanlat", deadline=None)
settings.load_profile("wanlat")

MARKS = ("minutes", "alone", "programs", "registry", "stores")
LONGEST = (
    "wanlat/test_wheel.py",
    "systems/test_running_clusters.py",
    "drills/test_planted_defects.py",
    "wanlat/test_tutorial_program.py",
    "wanlat/test_tutorial_s3.py",
    "experiments/envelope/test_planted_limits.py",
    "wanlat/test_tutorial_grpc.py",
    "wanlat/test_action.py",
    "wanlat/test_report_browser.py",
    "experiments/test_interruptions.py",
    "probes/test_other_clients.py",
    "experiments/test_dask.py",
    "experiments/test_jobs.py",
    "round_trips/test_known_round_trips.py",
    "emulator/test_traces.py",
    "experiments/envelope/test_envelope_run.py",
    "experiments/envelope/test_advice_run.py",
    "systems/test_promised_round_trips.py",
    "systems/test_drills_and_loads.py",
    "systems/test_studies.py",
    "wanlat/test_drill_command.py",
    "second_person/test_recomputed.py",
    "experiments/test_dask_ends.py",
    "experiments/drill/test_failures.py",
    "experiments/test_workload_runs.py",
)
"""The files that take longest begin first, or the other workers wait for them in the end."""
APART = {
    "experiments/test_dask.py",
    "experiments/test_dask_ends.py",
    "experiments/test_interruptions.py",
    "experiments/test_jobs.py",
    "systems/test_drills_and_loads.py",
    "systems/test_promised_round_trips.py",
    "systems/test_running_clusters.py",
    "systems/test_studies.py",
}
"""Files whose tests share no more than their first parameter."""


def unit_of(nodeid: str) -> str:
    """What one worker runs: a file, or of one in APART what has the same first parameter."""
    file, _, test = nodeid.partition("::")
    if file.removeprefix("tests/") not in APART:
        return file
    name, _, parameters = test.partition("[")
    return f"{file}::{parameters.rstrip(']').partition('-')[0] or name}"


class Units(LoadFileScheduling):
    """Hands units to workers, in their order."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Units | None:
    """Have `--dist loadfile` distribute units."""
    return Units(config, log) if config.getvalue("dist") == "loadfile" else None


def _same_systems() -> Iterator[None]:
    with patch.dict(registry._ADOPTED):
        yield


# What a test registers is known while that test lasts, and a file's fixtures while that lasts.
systems_of_a_test = pytest.fixture(autouse=True)(_same_systems)
systems_of_a_file = pytest.fixture(scope="module", autouse=True)(_same_systems)


@cache
def marks_in(file: Path) -> tuple[str, ...]:
    """The marks that a file names."""
    text = file.read_text("utf-8")
    return tuple(mark for mark in MARKS if f"mark.{mark}" in text)


def may_be_asked_for(file: Path, asked: str) -> bool:
    """Whether a test with some of the marks that a file names is one that `-m` asks for."""
    held = marks_in(file)
    every = (some for n in range(len(held) + 1) for some in combinations(held, n))
    return any(eval(asked, {}, {mark: mark in some for mark in MARKS}) for some in every)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that `-m` asks for: what they import takes seconds."""
    asked = config.option.markexpr
    if not re.fullmatch(rf"(\b({'|'.join(MARKS)}|and|or|not)\b|[ ()])+", asked):
        return None
    is_test = collection_path.match("test_*.py")
    return True if is_test and not may_be_asked_for(collection_path, asked) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first."""
    for item in items:
        unnamed = {mark.name for mark in item.iter_markers()} & {*MARKS} - {*marks_in(item.path)}
        assert not unnamed, f"{item.path}: write `pytest.mark.{unnamed.pop()}` there"
    places = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
