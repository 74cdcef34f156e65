"""What breaks a promise, and what is this machine's doing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from wanlat.experiments.envelope.trial import Sending
from wanlat.experiments.requests import Workers
from wanlat.topologies.errors import MachineError

S, MS = 10**9, 10**6


def row(user: str, due_s: float, late_ms: int, took_ms: int, outcome: str = "ok") -> dict[str, Any]:
    due_ns = round(due_s * S)
    start_ns = due_ns + late_ms * MS
    found = {"drill_client": user, "operation": "write", "phase": "window", "outcome": outcome}
    return {**found, "due_ns": due_ns, "start_ns": start_ns, "elapsed_ns": took_ms * MS}


FINE = [row(f"user{number}", 1.0, 1, 10) for number in range(19)]
OURS = row("user19", 1.0, 1, 0, "not_sent") | {"error": "no descriptor"}
LATE = row("user19", 1.0, 300, 700, "unknown")


@pytest.mark.parametrize(
    ("rows", "is_broken", "is_disturbed"),
    [
        ([*FINE, row("user19", 1.0, 1, 10)], False, False),
        # Late, and answered nevertheless: whether a trial counts does not depend on its outcome.
        ([*FINE, row("user19", 1.0, 300, 10)], False, True),
        ([*FINE, LATE], True, True),
        ([*FINE, row("user19", 1.0, 5, 1000, "unknown")], True, False),
        # Its user was still waiting: the cluster is late, not this machine.
        ([*FINE, row("user19", 0.0, 1, 1300, "unknown"), LATE], True, False),
        ([LATE], True, True),
        # One of two hundred that this machine could not send: of the others all were answered.
        ([*10 * FINE, *10 * [FINE[0]], OURS], False, False),
    ],
)
def test_a_request_that_this_machine_sent_late_disturbs_a_trial_whatever_came_of_it(
    rows: list[dict[str, Any]], is_broken: bool, is_disturbed: bool
) -> None:
    stop = threading.Event()
    lab: Any = None
    sending = Sending(lab, Workers({}, stop), stop, 0, rows)
    came = sending.outcome("window", 0, 0.99, 25 * MS)
    assert ((came.broken is not None), came.is_disturbed) == (is_broken, is_disturbed)


def test_a_trial_of_which_this_machine_could_not_send_much_says_nothing() -> None:
    stop = threading.Event()
    lab: Any = None
    sending = Sending(lab, Workers({}, stop), stop, 0, [*FINE, OURS])
    with pytest.raises(MachineError, match=r"1 of 20 requests .* no descriptor"):
        sending.outcome("window", 0, 0.9, 25 * MS)
