"""nginx before a store: what it is told, where it stands, and that nothing lies on its way."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_s3 import client
from systems_doubles import StandInLab, plan_of

from tests.needs import lab_of, needs
from wanlat.emulator.lab import Lab
from wanlat.systems import registry
from wanlat.systems.base import Binary, NodeProcess
from wanlat.systems.engine.definition import read
from wanlat.systems.engine.program import Companion
from wanlat.systems.engine.system import System
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.errors import UserError

READY_S = 90.0
NGINX = Companion("nginx", Path("/opt/nginx"), "1.22.1", "e" * 64)


# -- what it is told ------------------------------------------------------------------------


def standing(
    lab: StandInLab, log_dir: Path, *asked: str, version: str = "1.22.1", **options: object
) -> dict[str, tuple[NodeProcess, str]]:
    """The fronts that a start would make, each with its configuration."""
    system = registry.get("minio-nginx")
    beside = replace(NGINX, version=version)
    binary = Binary(Path("/opt/minio"), "9.9", "f" * 64, beside=(beside,))
    given = system.parse_options(options)
    cluster = system.configure(lab, given, binary, log_dir)  # type: ignore[arg-type]
    made = system.stand_before(cluster, log_dir, asked)
    homes = {name: lab.node(name).host_directory / "minio-nginx" / "nginx" for name in made}
    return {name: (made[name], (homes[name] / "nginx.conf").read_text()) for name in made}


def test_a_front_stands_on_each_node_that_is_asked_and_on_the_first_where_none_is_named(
    lab: StandInLab, tmp_path: Path
) -> None:
    assert list(standing(lab, tmp_path)) == ["n1"]
    assert list(standing(lab, tmp_path, "n3", "n2", "n3")) == ["n3", "n2"]
    assert list(standing(lab, tmp_path, "n3", front="n2")) == ["n2"]


def test_all_nodes_are_behind_it_and_bodies_are_neither_held_nor_limited(
    lab: StandInLab, tmp_path: Path
) -> None:
    process, told = standing(lab, tmp_path, "n2")["n2"]
    lines = [line.strip() for line in told.splitlines()]
    assert [line for line in lines if line.startswith("server 1")] == [
        f"server {node.address}:9000;" for node in lab.nodes
    ]
    for line in (
        "listen 127.0.1.2:9080 backlog=4096;",
        "proxy_request_buffering off;",
        "proxy_buffering off;",
        "client_max_body_size 0;",
        "least_conn;",
        "worker_processes 1;",
        "daemon off;",
    ):
        assert line in lines
    assert process.argv[0] == "/opt/nginx"
    assert told.count("{") == told.count("}")


def test_options_reach_the_configuration_and_the_bundle(lab: StandInLab, tmp_path: Path) -> None:
    _, told = standing(lab, tmp_path, balance="round_robin", workers=2)["n1"]
    assert "least_conn" not in told
    assert "worker_processes 2;" in told
    system = registry.get("minio-nginx")
    effective = system.effective(plan_of(3), system.parse_options({"balance": "round_robin"}))
    assert effective.items() >= {"balance": "round_robin", "workers": 1, "drives": 1}.items()


def test_a_front_must_be_a_node_and_a_balance_one_that_nginx_has() -> None:
    system = registry.get("minio-nginx")
    system.check_topology(plan_of(3), system.parse_options({"front": "n3"}))
    with pytest.raises(UserError, match=r"front `n9` is not a node"):
        system.check_topology(plan_of(3), system.parse_options({"front": "n9"}))
    with pytest.raises(UserError, match="balance"):
        system.parse_options({"balance": "random"})


@pytest.mark.parametrize(
    ("version", "flag", "limit"), [("1.18.0", False, False), ("1.22.1", True, True)]
)
def test_an_older_nginx_is_told_nothing_that_it_does_not_know(
    lab: StandInLab, tmp_path: Path, version: str, flag: bool, limit: bool
) -> None:
    process, told = standing(lab, tmp_path, version=version)["n1"]
    assert ("-e" in process.argv) == flag
    assert ("keepalive_time " in told) == limit


# -- a real one -----------------------------------------------------------------------------

BODY = os.urandom(1 << 20) * 24


def its_io(lab: Lab, master: int) -> tuple[int, int]:
    """What nginx has passed on, and what it has written to a disk, in bytes; all its processes."""
    processes = Path(f"/proc/{lab.supervisor_pid}/root/proc")
    children = (processes / f"{master}/task/{master}/children").read_text().split()
    moved = written = 0
    for pid in (str(master), *children):
        pairs = (line.split(": ") for line in (processes / pid / "io").read_text().splitlines())
        io = {key: int(value) for key, value in pairs}
        moved, written = moved + io["wchar"], written + io["write_bytes"]
    return moved, written


def before_the_reference_store(directory: Path) -> System:
    """The reference store behind the nginx of `minio-nginx`."""
    theirs = registry.get("minio-nginx").directory
    given = yaml.safe_load((theirs / "system.yaml").read_text())
    (directory / "nginx.conf.j2").write_text((theirs / "nginx.conf.j2").read_text())
    named = {**given, "name": "quorum-nginx", "extends": "quorum"}
    (directory / "system.yaml").write_text(yaml.safe_dump(named))
    return System(read(directory)[0], directory, read(directory)[1])


@pytest.mark.programs
def test_large_bodies_pass_both_ways_through_nginx_and_never_over_a_disk(tmp_path: Path) -> None:
    needs("nginx")
    system = before_the_reference_store(tmp_path)
    options = system.parse_options({"balance": "round_robin"})
    with lab_of("one-site", storage="disk") as lab:
        cluster = system.start(lab, options, tmp_path, READY_S, print, asked=["n2"])
        front = cluster.standing["n2"]
        through = client(lab, "n1", cluster.s3("n2"))
        through.create_bucket(Bucket="large")
        through.put_object(Bucket="large", Key="body", Body=BODY)
        for _ in lab.nodes:  # one after the other, each node serves it
            assert through.get_object(Bucket="large", Key="body")["Body"].read() == BODY
        assert front.process is not None
        moved, written = its_io(lab, front.process.pid)
        assert moved > 4 * len(BODY)
        assert written < len(BODY) / 10
        kept = (cluster.node("n2").home / "nginx").rglob("*")
        assert sum(path.stat().st_size for path in kept if path.is_file()) < 10_000
        # Without root there are no groups to set, which it calls an emergency and goes on.
        assert [line for line in front.printed().splitlines() if "initgroups" not in line] == []


@pytest.mark.stores
def test_minio_s_nodes_are_asked_in_turn_behind_nginx_and_its_front_is_missed(
    tmp_path: Path,
) -> None:
    needs("minio", "nginx")
    system = registry.get("minio-nginx")
    options = system.parse_options({"balance": "round_robin", "drives": 2})
    with lab_of("one-site", storage="disk") as lab:
        cluster = system.start(lab, options, tmp_path, READY_S, print, asked=("n2",))
        assert list(cluster.fronts) == ["n2"]
        assert cluster.s3("n1") == cluster.s3("n2"), "where no front stands, the first one is asked"
        assert [each.name for each in cluster.beside] == ["nginx"]
        said = cluster.ask_s3("n1", "/minio/admin/v3/info").json()["backend"]
        sets = {"sets": said["totalSets"][0], "drives_per_set": said["totalDrivesPerSet"][0]}
        assert cluster.options.items() >= (sets | {"parity": said["standardSCParity"]}).items()
        through = client(lab, "n1", cluster.s3("n2"))
        through.create_bucket(Bucket="large")
        through.put_object(Bucket="large", Key="body", Body=BODY)
        assert through.get_object(Bucket="large", Key="body")["Body"].read() == BODY
        answered = Counter(node_that_answers(through) for _ in range(9))
        assert sorted(answered.values()) == [3, 3, 3]
        cluster.fronts["n2"].kill()
        cluster.fronts["n2"].wait(10)
        with pytest.raises(SystemFailed, match=r"nginx: node n2: its process was ended by SIGKILL"):
            cluster.check()


def node_that_answers(through: Any) -> str:
    """The node's own mark: MinIO puts a hash of its address into x-amz-id-2."""
    headers = through.head_object(Bucket="large", Key="body")["ResponseMetadata"]["HTTPHeaders"]
    mark: str = headers["x-amz-id-2"]
    return mark
