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
    asking = [
        item
        for item in request.session.items
        if isinstance(item, pytest.Function) and "labs" in item.fixturenames
    ]
    wanted = {item.callspec.params["run"] for item in asking if hasattr(item, "callspec")}
    if not all(hasattr(item, "callspec") for item in asking):
        wanted |= {*KNOWN, *DISTURBED}
    wanted |= {RUNS[name].twin for name in wanted}
    started = Labs(
        {name: RUNS[name] for name in RUNS if name in wanted},
        tmp_path_factory.mktemp("round-trips"),
    )
    yield started
    started.close()


@pytest.fixture
def came(labs: Labs, run: str) -> Came:
    """What came of the run that a test is parametrized with."""
    ended = labs.came(run)
    assert ended.status == "complete", ended
    return ended
