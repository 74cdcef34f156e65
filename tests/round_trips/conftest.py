"""All runs that the chosen tests are about go on at once; each test waits for its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.round_trips.labs import Came, Labs
from tests.round_trips.runs import DISTURBED, KNOWN, RUNS


@pytest.fixture(scope="session")
def labs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Labs]:
    wanted: set[str | None] = set()
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "labs" in item.fixturenames:
            of_one = hasattr(item, "callspec")
            wanted |= {item.callspec.params["run"]} if of_one else {*KNOWN, *DISTURBED}
    wanted |= {RUNS[name].twin for name in wanted if name}
    runs = {name: run for name, run in RUNS.items() if name in wanted}
    started = Labs(runs, tmp_path_factory.mktemp("round-trips"))
    yield started
    started.close()


@pytest.fixture
def came(labs: Labs, run: str) -> Came:
    """What came of the run that a test is parametrized with."""
    ended = labs.came(run)
    assert ended.status == "complete", ended
    return ended
