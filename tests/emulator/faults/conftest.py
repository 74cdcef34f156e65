"""What tests of faults share."""

from __future__ import annotations

import pytest

from tests.emulator.faults.heartbeats import Noise


@pytest.fixture
def noise():
    with Noise() as made:
        yield made
