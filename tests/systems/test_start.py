"""Starting a cluster: ready means every node, and a failure is told at once, with its log."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from systems_doubles import StandInLab, plan_of, toy

from wanlat.bundle.errors import BundleError
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.process import what_is_full
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.errors import MachineError, UserError


def start(lab: Any, log_dir: Path, timeout_s: float = 60.0, **options: str) -> Cluster:
    system = toy()
    return system.start(lab, system.parse_options(options), log_dir, timeout_s, print)


def test_a_cluster_serves_and_a_death_is_told_and_a_stopped_node_starts_again(
    lab: StandInLab, tmp_path: Path
) -> None:
    cluster = start(lab, tmp_path)
    node = cluster.nodes["n2"]
    cluster.check()
    with pytest.raises(SystemFailed, match="it was to be started, and runs already"):
        node.start(cluster.lab)
    node.stop()
    cluster.check()
    node.start(cluster.lab)
    assert lab.spawned[1].poll() is not None, "its former process has ended"
    cluster.await_serving(Wait(cluster.nodes, 60, print), ["n2"])
    assert node.log.read_text().count("toy store starting on 127.0.1.2") == 2
    lab.spawned[0].child.kill()
    lab.spawned[0].child.wait(60)
    with pytest.raises(SystemFailed, match=r"node n1: its process was ended by SIGKILL"):
        cluster.check()


@pytest.mark.parametrize("inside", ["", "toy"])
def test_nothing_is_removed_through_a_link_that_a_program_of_the_lab_made(
    lab: StandInLab, tmp_path: Path, inside: str
) -> None:
    mine, home = tmp_path / "mine", lab.nodes[1].host_directory
    (mine / "toy").mkdir(parents=True)
    (mine / "toy" / "thesis").write_text("mine")
    if not inside:
        home.rmdir()
    (home / inside).symlink_to(mine / inside)
    with pytest.raises(MachineError, match="link"):
        start(lab, tmp_path)
    assert (mine / "toy" / "thesis").read_text() == "mine"


def test_a_log_that_is_a_link_is_not_written_through(lab: StandInLab, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "toy-n2.log").symlink_to(tmp_path / "mine")
    with pytest.raises(BundleError, match="link"):
        start(lab, tmp_path / "logs")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_process_that_dies_ends_the_start_with_its_log_and_leaves_none(
    lab: StandInLab, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with pytest.raises(SystemFailed) as caught:
        start(lab, tmp_path, timeout_s=600, bad_node="n2")
    assert time.monotonic() - begun < 300
    for part in ("node n2: its process ended with exit code 7", "drive on fire", "toy-n2.log"):
        assert part in str(caught.value)
    assert len(lab.spawned) == 3
    assert all(process.child.wait(60) != 0 for process in lab.spawned)


def test_a_node_that_never_gets_ready_fails_at_the_deadline_with_check_reason_and_log(
    lab: StandInLab, tmp_path: Path
) -> None:
    with pytest.raises(SystemFailed) as caught:
        start(lab, tmp_path, timeout_s=12, bad_node="n3", bad_behaviour="refuses")
    for part in ("node n3: not ready after 12 s", "serves: /: HTTP 503", "on 127.0.1.3"):
        assert part in str(caught.value)


def test_a_death_is_told_also_while_another_node_lets_us_wait_and_errors_are_not_waited_out(
    lab: StandInLab, tmp_path: Path
) -> None:
    system, any_lab = toy(), cast("Any", lab)
    options = system.parse_options({"bad_node": "n3"})
    cluster = system.configure(any_lab, options, system.find(), tmp_path)
    answered = threading.Event()
    wait = Wait(cluster.nodes, 600, lambda _: None)

    def broken(name: str) -> str | None:
        raise cluster.nodes[name].failure("CreateBucket was refused")

    with pytest.raises(SystemFailed, match="CreateBucket was refused"):
        wait.for_all("bucket", broken)
    for node in cluster.nodes.values():
        node.start(any_lab)
    try:
        with pytest.raises(SystemFailed, match="node n3: its process ended with exit code 7"):
            wait.for_all("slow", lambda _: None if answered.wait(300) else "no answer")
        assert not answered.is_set()
    finally:
        answered.set()


@pytest.mark.parametrize("nodes", [1, 5])
def test_too_few_or_many_nodes_are_refused_before_anything_starts(
    tmp_path: Path, nodes: int
) -> None:
    lab = StandInLab(plan_of(nodes), tmp_path / "nodes")
    with pytest.raises(UserError, match=rf"2 to 4 nodes here, and topology stand-in has {nodes}"):
        start(lab, tmp_path / "logs")
    assert lab.spawned == []


def test_what_a_system_needs_of_topology_and_machine_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bob, minio = registry.get("bob"), registry.get("minio")
    with pytest.raises(UserError, match=r"operation_timeout 200ms .* takes up to 200 ms"):
        late = bob.parse_options({"operation_timeout": "200ms"})
        bob.check_topology(plan_of(1, 1, rtt_ms=200), late)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"lsof.*sudo apt install lsof"):
        bob.check_machine(plan_of(3), "memory")
    monkeypatch.setattr("platform.release", lambda: "6.1.0-18-amd64")
    with pytest.raises(MachineError, match=r"Linux 6\.6 on; this is 6\.1\.0.*--storage disk"):
        minio.check_machine(plan_of(3), "memory")
    minio.check_machine(plan_of(1), "memory")


# -- a program of the user's own --------------------------------------------------------------

LATE = """
import http.server, socket, sys, time
address, port, answers = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
opened = socket.create_server((address, port))
time.sleep(0.5)
print("INFO all set", flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(answers.pop(0) if len(answers) > 1 else answers[0]))
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer((address, port + 1), Handler).serve_forever()
"""


def test_a_service_is_ready_when_port_path_and_line_are_and_again_after_a_restart(
    lab: StandInLab, tmp_path: Path
) -> None:
    service, said, any_lab = registry.get("service"), list[str](), cast("Any", lab)
    command = ["/usr/bin/env", sys.executable, "-c", LATE, "{address}", "{port}", "503", "200"]
    given = {"command": command, "port": 7300, "ready": "/ready", "ready_port": 7301}
    options = service.parse_options({**given, "ready_line": "all set"})
    cluster = service.start(any_lab, options, tmp_path, 60, said.append)
    assert list(dict.fromkeys(each.partition(":")[0] for each in said)) == ["port", "ready", "line"]
    cluster.nodes["n1"].stop()
    cluster.nodes["n1"].start(any_lab)
    begun = time.monotonic()
    cluster.await_serving(Wait(cluster.nodes, 60, print), ["n1"])
    assert time.monotonic() - begun > 0.4, "the line of its first life is in the same log"
    lab.close()
    never = service.parse_options({**given, "port": 7400, "ready_port": 7401, "ready_line": "no"})
    with pytest.raises(SystemFailed, match=r"waiting for: line.*has not printed `no`"):
        service.start(any_lab, never, tmp_path / "b", 8, print)


# -- a full disk -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "free", "inodes", "free_inodes", "says"),
    [
        (1_000_000, 5_000, 10, 5, "is full: 19 MiB of 3906 MiB are left"),
        (1_000, 200, 10, 5, "is full: 0 MiB of 3 MiB"),  # of so small a one 1 % is next to nothing
        (1_000_000, 500_000, 10, 0, "is full: it has no inodes left"),
        (1_000_000, 500_000, 0, 0, None),  # of btrfs, which has no fixed number of them
        (1_000_000, 10_001, 10, 5, None),
        (0, 0, 0, 0, None),  # of /proc and the like
    ],
)
def test_full_is_less_than_a_hundredth_or_a_mebibyte_or_no_inode(
    monkeypatch: pytest.MonkeyPatch,
    blocks: int,
    free: int,
    inodes: int,
    free_inodes: int,
    says: str | None,
) -> None:
    assert what_is_full([Path("/no/such/directory")]) is None
    numbers = {"f_blocks": blocks, "f_bavail": free, "f_files": inodes, "f_favail": free_inodes}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_frsize=4096, **numbers))
    said = what_is_full([Path("/data/n1")])
    assert (said or "").startswith(f"The disk of /data/n1 {says}" if says else "")
    assert (said is None) == (says is None)
