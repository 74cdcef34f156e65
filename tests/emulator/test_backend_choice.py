"""A lab gets the backend that does what is asked of it, or an error that says what is not done."""

from __future__ import annotations

import pytest

from tests.emulator.plans import ms
from wanlat.emulator.backends import choice
from wanlat.emulator.links import wan
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment

LINK = wan("dc1", "dc2")
REORDERED = ms(20, 5, reorder=True, rate_bps=10**6)


@pytest.mark.parametrize(
    ("wanted", "asked", "netem_available", "expected"),
    [
        (None, ms(20), True, "netem"),
        (None, ms(20), False, "wire"),
        (None, REORDERED, True, "wire"),
        ("wire", ms(20), True, "wire"),
        ("netem", ms(20), False, "netem"),  # which then says why the kernel has none
    ],
)
def test_the_backend_that_fits(
    wanted: str | None, asked: Impairment, netem_available: bool, expected: str
) -> None:
    assert choice.choose(wanted, {LINK: asked}, netem_available=netem_available) == expected


def test_a_wanted_backend_that_does_not_do_it_is_an_error_that_names_the_other() -> None:
    with pytest.raises(MachineError, match=r"netem does not do jitter that .*dc1->dc2.*wire"):
        choice.choose("netem", {LINK: REORDERED}, netem_available=True)
    with pytest.raises(MachineError, match=r"wire does not do corruption .*dc1->dc2.*netem"):
        choice.choose(None, {LINK: ms(20, corrupt=0.1)}, netem_available=False)
