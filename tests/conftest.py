"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# How long an example takes is the machine's matter: a stall of it is no failure.
settings.register_profile("wanlat", deadline=None)
settings.load_profile("wanlat")

LONGEST = (
    "experiments/envelope/test_planted_limits.py",
    "drills/test_planted_defects.py",
    "experiments/test_interruptions.py",
    "wanlat/test_tutorial_program.py",
    "wanlat/test_tutorial_grpc.py",
    "wanlat/test_tutorial_s3.py",
    "wanlat/test_action.py",
    "experiments/envelope/test_envelope_run.py",
    "round_trips/test_known_round_trips.py",
    "experiments/test_dask.py",
    "experiments/test_jobs.py",
    "probes/test_other_clients.py",
    "emulator/test_traces.py",
)
"""The files that take longest begin first, or the other workers wait for them in the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first."""
    places = {f"tests/{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
