"""Clients as processes: how they are driven, and how they may fail."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from wanlat.experiments.crosscheck.requests import rounds
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.independent.driver import Client
from wanlat.probes.plan import Request
from wanlat.probes.process import spawn_here

READY = 'say({"name": "it", "version": "1", "configured": "as it is"})'
PUT = Request(7, "measure", "PutObject", "b", "k", object_bytes=4, body_seed=1)

HEAD = """
import json, sys
sys.path.insert(0, {checkout!r})
def say(line):
    print(json.dumps(line), flush=True)
"""
FIRST_LINE = "at = json.loads(input())\n"


def client(tmp_path: Path, program: str) -> Client:
    checkout = str(Path(__file__).parents[2])
    file = tmp_path / "it.py"
    file.write_text(HEAD.format(checkout=checkout) + program)
    return Client(spawn_here, [sys.executable, str(file)], "it", {"host": "h", "port": 1})


SERVED = """
from wanlat.probes.independent.serve import IndependentClient, body_of, same_as, serve

class It(IndependentClient):
    name, version, configured = "it", "1", "as it is"
    def __init__(self, at):
        assert at == {"host": "h", "port": 1}
    def prepare(self, request):
        if request["endpoint"] == "GetObject":
            return lambda: b"another", same_as(body_of(request))
        if request["endpoint"] == "RemoveObject":
            return lambda: 1 / 0, same_as(b"")
        return lambda: body_of(request), same_as(body_of(request))

serve(It)
"""


def test_a_call_is_timed_and_its_answer_checked(tmp_path):
    with client(tmp_path, SERVED) as it:
        assert (it.version, it.configured) == ("1", "as it is")
        timed = it.ask(PUT)
        assert (timed.seq, timed.error) == (7, None)
        assert timed.end_ns > timed.start_ns
        got = Request(8, "measure", "GetObject", "b", "k", object_bytes=4, body_seed=1)
        assert "7 bytes came back that are not the 4 stored" in (it.ask(got).error or "")
        raised = it.ask(Request(9, "measure", "RemoveObject", "b", "k"))
        assert "ZeroDivisionError" in (raised.error or "")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("raise SystemExit('no such thing')", "no such thing"),
        ('say({"name": "it"})', "version"),
        ('print("hello", flush=True)', "hello"),
        (f"{READY}; input(); raise SystemExit('it broke')", "it broke"),
        (f"{READY}; input(); say([1])", "no JSON object"),
        (f'{READY}; input(); say({{"seq": 7}})', "start_ns"),
        (
            f'{READY}; input(); say({{"seq": 6, "start_ns": 1, "end_ns": 2, "ok": True}})',
            "answered request 6 when 7 was due",
        ),
    ],
)
def test_a_client_that_breaks_the_protocol_is_told_with_its_last_words(tmp_path, program, says):
    with pytest.raises(ProbeFailed, match=says), client(tmp_path, FIRST_LINE + program) as it:
        it.ask(PUT)


def test_every_lane_has_every_endpoint_once_a_round_in_an_order_of_its_own():
    endpoints = ("GetObject", "PutObject")
    requests = [Request(i, "measure", endpoints[i % 2], "b", "k") for i in range(2 * 3 * 5)]
    turns = list(rounds(requests, 3, random.Random(1)))
    assert sorted(request.seq for _, request in turns) == list(range(30))
    each = [turns[i : i + 6] for i in range(0, 30, 6)]
    for turn in each:
        assert set(Counter((lane, request.endpoint) for lane, request in turn).values()) == {1}
    assert len({tuple((lane, request.endpoint) for lane, request in turn) for turn in each}) == 5
