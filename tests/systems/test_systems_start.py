"""Starting a cluster: ready means every node, and a failure is told at once, with its log."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from systems_doubles import StandInLab, Toy, ToyOptions, plan_of

from wanlat.systems.base import Cluster
from wanlat.systems.errors import SystemFailed
from wanlat.systems.wait import Wait
from wanlat.topologies.errors import UserError


def start(
    lab: StandInLab, log_dir: Path, timeout_s: float = 60.0, **options: str
) -> tuple[Cluster, list[str]]:
    said: list[str] = []
    toy = Toy()
    cluster = toy.start(
        lab,  # type: ignore[arg-type]
        toy.parse_options(options),
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


def test_progress_is_told_at_most_once_a_second_after_a_step_s_beginning(
    lab: StandInLab, tmp_path: Path
) -> None:
    cluster, _ = start(lab, tmp_path)
    said: list[str] = []
    at_s: list[float] = []
    begun = time.monotonic()
    late = {"n1": 0.0, "n2": 1.2, "n3": 1.3}

    def hear(text: str) -> None:
        said.append(text)
        at_s.append(time.monotonic())

    wait = Wait(cluster.nodes, 60, hear)
    wait.each("count", lambda name: None if time.monotonic() - begun > late[name] else "soon")
    wait.each("one for all", lambda _: None, ["n1"])
    first, *later, last = said
    assert first.startswith("count: 0 of 3 nodes")
    assert later, "it took more than a second"
    assert all(text.startswith("count: ") for text in later)
    assert last.startswith("one for all")
    assert all(after - before > 0.99 for before, after in pairwise(at_s[:-1]))


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
    toy = Toy()
    options = toy.parse_options({"bad_node": "n3"})
    cluster = toy.configure(lab, options, toy.find(), tmp_path)
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
        start(lab, tmp_path, timeout_s=5, bad_node="n3", bad_behaviour="refuses")
    message = str(caught.value)
    assert "node n3: not ready after 5 s, waiting for: serves: HTTP 503" in message
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


def test_options_are_checked_by_their_model() -> None:
    assert Toy().parse_options({"bad_node": "n1"}) == ToyOptions(bad_node="n1")
