"""``wanlat trace``: one command from a topology to a picture of one request."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.commands import command, topology
from tests.wanlat.running import Done, in_process
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.summary import summarize


class Traced:
    """A trace of the reference store, measured once."""

    def __init__(self, out: Path, done: Any) -> None:
        self.out = out
        self.done = done
        self.document: dict[str, Any] = json.loads(done.stdout)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    directory = tmp_path_factory.mktemp("trace")
    out = directory / "out"
    small = topology(directory, rtt="20ms")
    wanted = ("--system", "quorum", "--endpoint", "PutObject", "--samples", "5", "--rtt", "30ms")
    options = ("--option", "quorum.protocol=rounds:2", "--json", "--out", str(out))
    done = subprocess.run(
        command("trace", small, *wanted, *options),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Traced(out, done)


def test_one_command_gives_the_picture_the_numbers_and_the_words(traced: Traced) -> None:
    assert (traced.out / "trace.svg").read_text().count('id="message-') == len(
        traced.document["messages"]
    )
    assert (traced.out / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((traced.out / "trace.json").read_text())["endpoint"] == "PutObject"
    for number in range(1, 5):
        assert f"{number} of 4  " in traced.done.stderr
    assert "answered after" in traced.done.stderr


def test_two_rounds_are_four_crossings_each_after_the_one_before(traced: Traced) -> None:
    document = traced.document
    assert document["chain_round_trips"] == 2
    assert 29.9 <= document["measured_rtt_ms"] < 60
    chain = document["chain"]
    assert [one["from"] == "n1" for one in chain] == [True, False, True, False]
    for before, after in pairwise(chain):
        assert after["entry_ms"] >= before["departure_ms"]
        assert before["departure_ms"] - before["entry_ms"] >= 14.99
    assert document["latency_ms"] >= chain[-1]["departure_ms"]


def test_what_is_on_the_arrows_is_what_the_store_sends(traced: Traced) -> None:
    labels = {message["label"] for message in traced.document["messages"]}
    assert "Write" in labels
    there = [m for m in traced.document["messages"] if m["label"] == "Write"]
    assert all(message["bytes"] > 1024 for message in there)


def test_requests_are_apart_so_that_nothing_is_left_over(traced: Traced) -> None:
    kinds = {message["kind"] for message in traced.document["messages"]}
    assert "other" not in kinds


def test_its_directory_is_a_bundle_of_one_rtt(traced: Traced) -> None:
    (entry,) = summarize(read_bundle(traced.out)).round_trips or ()
    assert (entry.endpoint, entry.n, entry.chain_round_trips) == ("PutObject", 5, 2)
    assert entry.round_trips is None and "only one RTT" in (entry.why or "")


def test_a_trace_is_drawn_again_from_the_bundle(traced: Traced) -> None:
    wanted = ["--system", "quorum", "--endpoint", "PutObject", "--json"]
    done = in_process(["trace", "--bundle", str(traced.out), *wanted])
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["messages"] == traced.document["messages"]
    assert (traced.out / "charts" / "trace-quorum-PutObject.svg").is_file()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (["--system", "quorum", "--endpoint", "GetObjct"], "it has PutObject"),
        (["--system", "quorun", "--endpoint", "PutObject"], "did you mean `quorum`"),
        (["--system", "quorum", "--endpoint", "PutObject", "--placement", "local"], "unknown"),
        (["--system", "quorum", "--endpoint", "PutObject", "--rtt", "5ms"], "--rtt cannot count"),
    ],
)
def test_what_a_bundle_has_not_is_said(traced: Traced, wanted: list[str], says: str) -> None:
    done = in_process(["trace", "--bundle", str(traced.out), *wanted])
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["three-datacenters", "--system", "quorum", "--endpoint", "PutObjct"], "`PutObject`"),
        (["three-datacenters", "--system", "quorum", "--endpoint", "Put"], "quorum.api=bob"),
        (["three-datacenters", "--system", "quorun", "--endpoint", "Put"], "`quorum`"),
        (["three-datacentres", "--system", "quorum", "--endpoint", "PutObject"], "three-datac"),
        (["three-datacenters", "--endpoint", "PutObject"], "--system is missing"),
        (["three-datacenters", "--system", "quorum"], "--endpoint is missing"),
        (["--system", "quorum", "--endpoint", "PutObject"], "wanlat trace TOPOLOGY"),
        (
            ["five-sites", "--bundle", "x", "--system", "quorum", "--endpoint", "PutObject"],
            "not both",
        ),
        (
            ["five-sites", "--system", "quorum", "--endpoint", "PutObject", "--rtt", "5"],
            "--rtt",
        ),
        (
            ["five-sites", "--system", "quorum", "--endpoint", "PutObject", "--client", "n9"],
            "n9",
        ),
        (
            ["five-sites", "--system", "quorum", "--endpoint", "GetObject", "--placement", "local"],
            "nobody can tell",
        ),
        (["one-site", "--system", "quorum", "--endpoint", "PutObject"], "no WAN link"),
    ],
)
def test_mistakes_are_told_before_anything_starts(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    done: Done = in_process(["trace", *arguments, "--out", str(tmp_path / "out")])
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert not (tmp_path / "out").exists()
