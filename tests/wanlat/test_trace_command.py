"""``wanlat trace``: one command from a topology to a picture of one request."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from tests.experiments.commands import topology
from tests.late_network import accepting_late_packets
from wanlat.analysis.figures.round_trips import round_trips_of
from wanlat.analysis.packets.critical_path import LOOSE_NS
from wanlat.bundle.run import read_run


class Traced:
    """A trace of the reference store, measured once."""

    def __init__(self, out: Path, done: subprocess.CompletedProcess[str]) -> None:
        assert done.returncode == 0, done.stderr
        self.out = out
        self.said = done.stderr
        self.document: dict[str, Any] = json.loads(done.stdout)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    directory = tmp_path_factory.mktemp("trace")
    out = directory / "out"
    small = topology(directory, rtt="20ms")
    wanted = ("--system", "quorum", "--endpoint", "PutObject", "--samples", "5", "--rtt", "30ms")
    options = ("--option", "quorum.protocol=rounds:2", "--json", "--out", str(out))
    with accepting_late_packets("trace"):
        return Traced(out, here("trace", small, *wanted, *options))


def test_one_command_gives_the_picture_the_numbers_and_the_words(traced: Traced) -> None:
    messages = traced.document["messages"]
    assert (traced.out / "trace.svg").read_text().count('id="message-') == len(messages)
    assert (traced.out / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((traced.out / "trace.json").read_text())["endpoint"] == "PutObject"
    assert all(f"{number} of 4 hops: " in traced.said for number in range(1, 5))
    assert "answered after" in traced.said


def test_two_rounds_are_four_hops_each_after_the_one_before(traced: Traced) -> None:
    document = traced.document
    assert document["chain_round_trips"] == 2
    assert 29.9 <= document["measured_rtt_ms"] < 60
    chain = document["chain"]
    assert [one["from"] == "n1" for one in chain] == [True, False, True, False]
    for before, after in pairwise(chain):
        assert after["entry_ms"] >= before["departure_ms"]
        assert before["departure_ms"] - before["entry_ms"] >= 14.99
    assert document["latency_ms"] >= chain[-1]["departure_ms"]
    assert any(message["bytes"] > 1024 for message in document["messages"])
    messages = document["messages"]
    assert {message["kind"] for message in messages} <= {"request", "other"}
    mine = [each for each in messages if each["kind"] == "request" and each["departure_ms"]]
    for other in (each for each in messages if each["kind"] == "other"):
        # Requests are apart and nothing sends by itself: only a machine that paused explains it.
        came = [each["departure_ms"] for each in mine if each["to"] == other["from"]]
        idle = other["entry_ms"] - max((ms for ms in came if ms <= other["entry_ms"]), default=0)
        assert other["entry_ms"] < 0 or idle > LOOSE_NS / 1e6, other


def test_its_directory_is_a_bundle_from_which_it_is_drawn_again(traced: Traced) -> None:
    (entry,) = round_trips_of(read_run(traced.out))
    assert (entry.endpoint, entry.n, entry.chain_round_trips) == ("PutObject", 5, 2)
    assert entry.round_trips is None and "only one RTT" in (entry.why or "")
    wanted = ("--system", "quorum", "--endpoint", "PutObject", "--json")
    done = here("trace", "--bundle", str(traced.out), *wanted)
    assert json.loads(done.stdout)["messages"] == traced.document["messages"]
    assert (traced.out / "charts" / "trace-quorum-PutObject.png").is_file()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("--system quorum --endpoint GetObjct", "it has PutObject of quorum"),
        ("--system quorun --endpoint PutObject", "did you mean `PutObject of quorum`"),
        ("--system quorum --endpoint PutObject --placement local", "unknown"),
        ("--system quorum --endpoint PutObject --seed 0", "--seed cannot count"),
    ],
)
def test_what_a_bundle_has_not_is_said(traced: Traced, wanted: str, says: str) -> None:
    done = here("trace", "--bundle", str(traced.out), *wanted.split())
    assert done.returncode == 2
    assert says in done.stderr
