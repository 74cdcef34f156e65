"""Starting a cluster: ready means every node, and a failure is told at once, with its log."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from systems_doubles import StandInLab, plan_of, toy

from wanlat.systems.base import Cluster
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.errors import UserError


def start(
    lab: StandInLab, log_dir: Path, timeout_s: float = 60.0, **options: str
) -> tuple[Cluster, list[str]]:
    said: list[str] = []
    system = toy()
    cluster = system.start(
        lab,  # type: ignore[arg-type]
        system.parse_options(options),
        log_dir,
        timeout_s,
        said.append,
    )
    return cluster, said


def test_start_returns_when_every_node_serves(lab: StandInLab, tmp_path: Path) -> None:
    cluster, said = start(lab, tmp_path / "logs")
    assert list(cluster.processes) == ["n1", "n2", "n3"]
    cluster.check()
    assert said[0].startswith("serves: 0 of 3 nodes (")
    assert "toy store starting on 127.0.1.2" in (tmp_path / "logs" / "toy-n2.log").read_text()


class Turns:
    """Nodes that get ready one after another, each at its instant of a clock that we set."""

    def __init__(self, ready_s: dict[str, float]) -> None:
        self.now_s = 1000.0
        self._begun_s = self.now_s
        self._gates = {name: threading.Event() for name in ready_s}
        self._later = list(ready_s.items())
        quiet = SimpleNamespace(check=lambda: None)
        self.nodes = dict.fromkeys(ready_s, quiet) | {next(iter(ready_s)): self}

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, _: float) -> None:
        """Nobody need wait: nobody is asked twice."""

    def check(self) -> None:
        """Let the next one be ready: whoever waits looks at the nodes before each answer."""
        if self._later:
            name, at_s = self._later.pop(0)
            self.now_s = self._begun_s + at_s
            self._gates[name].set()

    def why_not(self, name: str) -> str | None:
        assert self._gates[name].wait(60)
        return None


def test_progress_is_told_at_most_once_a_second_after_a_step_s_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns({"n1": 0.75, "n2": 1.0, "n3": 1.75, "n4": 2.5, "n5": 3.0})
    monkeypatch.setattr("wanlat.systems.engine.wait.time", turns)
    said: list[str] = []
    wait = Wait(turns.nodes, 60, said.append, poll_s=60)  # type: ignore[arg-type]
    wait.each("count", turns.why_not)
    wait.each("one for all", lambda _: None, ["n1"])
    assert said == [
        "count: 0 of 5 nodes (0.0 s)",
        "count: 2 of 5 nodes (1.0 s)",
        "count: 4 of 5 nodes (2.5 s)",
        "one for all (3.0 s)",
    ]


def test_a_process_that_dies_fails_the_start_long_before_the_time_is_over(
    lab: StandInLab, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with pytest.raises(SystemFailed) as caught:
        start(lab, tmp_path, timeout_s=600, bad_node="n2")
    assert time.monotonic() - begun < 300
    message = str(caught.value)
    assert "Toy: node n2: its process ended with exit code 7" in message
    assert "drive on fire" in message
    assert f"The whole log: {tmp_path / 'toy-n2.log'}" in message
    assert caught.value.exit_code == 1


def test_a_death_is_told_also_while_another_node_lets_us_wait(
    lab: StandInLab, tmp_path: Path
) -> None:
    system = toy()
    options = system.parse_options({"bad_node": "n3"})
    cluster = system.configure(lab, options, system.find(), tmp_path)  # type: ignore[arg-type]
    for node in cluster.nodes.values():
        node.start(lab)  # type: ignore[arg-type]
    answered = threading.Event()
    wait = Wait(cluster.nodes, 600, lambda _: None)
    try:
        with pytest.raises(SystemFailed, match="node n3: its process ended with exit code 7"):
            wait.each("slow", lambda _: None if answered.wait(300) else "no answer")
        assert not answered.is_set()
    finally:
        answered.set()


def test_an_error_that_is_no_silence_is_not_waited_out(lab: StandInLab, tmp_path: Path) -> None:
    cluster, _ = start(lab, tmp_path)

    def broken(name: str) -> str | None:
        raise cluster.nodes[name].failure("CreateBucket was refused")

    begun = time.monotonic()
    with pytest.raises(SystemFailed, match="CreateBucket was refused"):
        Wait(cluster.nodes, 600, lambda _: None).each("bucket", broken)
    assert time.monotonic() - begun < 300


def test_a_node_that_never_gets_ready_fails_at_the_deadline_with_the_reason(
    lab: StandInLab, tmp_path: Path
) -> None:
    with pytest.raises(SystemFailed) as caught:
        start(lab, tmp_path, timeout_s=12, bad_node="n3", bad_behaviour="refuses")
    message = str(caught.value)
    assert "node n3: not ready after 12 s, waiting for: serves: /: HTTP 503" in message
    assert "toy store starting on 127.0.1.3" in message


def test_a_failed_start_leaves_no_process_running(lab: StandInLab, tmp_path: Path) -> None:
    with pytest.raises(SystemFailed):
        start(lab, tmp_path, bad_node="n2")
    assert len(lab.spawned) == 3
    assert all(process.child.wait(60) != 0 for process in lab.spawned)


@pytest.mark.parametrize("nodes", [1, 5])
def test_too_few_or_many_nodes_are_refused_before_anything_starts(
    tmp_path: Path, nodes: int
) -> None:
    lab = StandInLab(plan_of(nodes), tmp_path / "nodes")
    with pytest.raises(UserError, match=rf"2 to 4 nodes here, and topology stand-in has {nodes}"):
        start(lab, tmp_path / "logs")
    assert lab.spawned == []
    assert not (tmp_path / "logs").exists()


def test_a_death_later_on_is_noticed_by_check(lab: StandInLab, tmp_path: Path) -> None:
    cluster, _ = start(lab, tmp_path)
    lab.spawned[0].child.kill()
    lab.spawned[0].child.wait(60)
    with pytest.raises(SystemFailed, match=r"node n1: its process was ended by SIGKILL"):
        cluster.check()


def test_a_node_that_is_stopped_on_purpose_can_be_started_again(
    lab: StandInLab, tmp_path: Path
) -> None:
    cluster, _ = start(lab, tmp_path)
    node = cluster.nodes["n2"]
    node.stop()
    lab.spawned[1].child.wait(60)
    cluster.check()
    node.start(lab)  # type: ignore[arg-type]
    assert cluster.processes["n2"].pid == lab.spawned[3].pid
    deadline = time.monotonic() + 60
    while node.log.read_text().count("toy store starting") < 2:
        assert time.monotonic() < deadline, "the second life appends to the same log"
        time.sleep(0.02)
    cluster.check()
