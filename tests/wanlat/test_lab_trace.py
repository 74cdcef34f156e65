"""``wanlat lab change --trace`` asks a lab for each value, and states what stays (no lab here).

What links do then is test_lab_running.py's.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Self

import pytest

from tests.command_line import here
from wanlat.emulator.control import client
from wanlat.topologies.errors import UserError


class Lab:
    """Stands for a running lab: what it is asked, and what it does about it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def query(self, operation: str, **request: Any) -> dict[str, Any]:
        self.requests.append((operation, request))
        return {"t_ns": time.monotonic_ns()}

    @property
    def applied(self) -> list[dict[str, str]]:
        return [request["settings"] for name, request in self.requests if name == "change"]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    monkeypatch.chdir(tmp_path)
    Path("delays.txt").write_text("# ms\n25\n25\n0.8\n55ms\n")
    made = Lab()
    monkeypatch.setattr(client, "find", lambda _: made)
    return made


def command(line: str) -> Any:
    return here(*line.split())


def test_each_value_is_a_change_of_the_delay_beside_what_else_is_set(lab: Lab) -> None:
    done = command("lab change a/b jitter=0ms --trace delays.txt --every 1ms --json")
    document = json.loads(done.stdout)
    assert document["values"] == 4 == document["applied"] + document["skipped"]
    assert document["complete"] and document["in_force"] == {"delay": "55ms"}
    assert {(each["jitter"], each["delay"]) for each in lab.applied} <= {
        *(("0ms", value) for value in ("25ms", "0.8ms", "55ms"))
    }
    (name, first), *_ = lab.requests  # before anything is changed
    assert (name, [each["delay"] for each in first["several"]]) == ("check", ["0.8ms", "55ms"])
    assert "delay 55ms stays in force; `wanlat lab restore a/b`" in done.stderr


def test_a_file_of_round_trips_says_so(lab: Lab) -> None:
    assert command("lab change a/b --trace rtt=delays.txt --every 1ms").returncode == 0
    assert lab.applied[0] == {"rtt": "25ms"}


def test_what_the_lab_refuses_changes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(operation: str, **_: Any) -> dict[str, Any]:
        raise UserError(f"{operation}: no room for the jitter")

    monkeypatch.setattr(lab, "query", refuse)
    done = command("lab change a/b --trace delays.txt --every 1ms")
    assert (done.returncode, lab.applied) == (2, [])
    assert "check: no room" in done.stderr


def test_ctrl_c_ends_it_between_two_changes_and_states_what_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, query = signal.getsignal(signal.SIGINT), lab.query

    def interrupted(operation: str, **request: Any) -> dict[str, Any]:
        if operation == "change":
            os.kill(os.getpid(), signal.SIGINT)
        return query(operation, **request)

    monkeypatch.setattr(lab, "query", interrupted)
    done = command("lab change a/b --trace delays.txt --every 10s")
    assert (done.returncode, len(lab.applied)) == (130, 1)
    assert "interrupted: 1 of 4" in done.stderr and "delay 25ms stays in force" in done.stderr
    assert signal.getsignal(signal.SIGINT) is before
