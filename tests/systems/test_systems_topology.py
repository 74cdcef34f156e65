"""Which numbers of nodes each system takes; the rest is refused before anything starts."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from systems_doubles import plan_of

from wanlat.systems import registry
from wanlat.topologies.errors import MachineError, UserError

MINIO: Any = registry.get("minio").hooks


def check(system: str, nodes: int, **options: object) -> None:
    known = registry.get(system)
    known.check_topology(plan_of(nodes), known.parse_options(options))


PLACED = [("bob", {}), ("quorum", {"api": "bob"})]


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 6, 256])
def test_garage_runs_on_any_number_of_nodes_up_to_256(nodes: int) -> None:
    check("garage", nodes)


def test_garage_refuses_more_nodes_than_a_layout_holds() -> None:
    with pytest.raises(UserError, match=r"1 to 256 nodes.*stand-in has 257") as caught:
        check("garage", 257)
    assert caught.value.exit_code == 2


def test_garage_needs_a_node_for_each_copy() -> None:
    check("garage", 3, replication_factor=3)
    with pytest.raises(UserError, match=r"replication_factor 4 needs at least 4 nodes.*has 3"):
        check("garage", 3, replication_factor=4)


# What each node count of the studies comes to, unless it is told otherwise.
DEFAULTS = {
    "garage": {n: {"replication_factor": min(n, 3)} for n in (1, 2, 3, 4, 6, 12, 24)},
    "bob": {
        n: {"replication_factor": min(n, 3), "quorum": q, "vdisks": n}
        for n, q in ((1, 1), (2, 2), (3, 2), (4, 2), (6, 2), (12, 2), (24, 2))
    },
    "minio": {
        n: {"sets": sets, "drives_per_set": size, "parity": parity}
        for n, sets, size, parity in (
            (1, 1, 1, 0),
            (2, 1, 2, 1),
            (3, 1, 3, 1),
            (4, 1, 4, 2),
            (6, 1, 6, 3),
            (12, 1, 12, 4),
            (24, 2, 12, 4),
        )
    },
    "quorum": {n: {"protocol": "leaderless"} for n in (1, 2, 3, 4, 6, 12, 24)},
}


@pytest.mark.parametrize("system", [*DEFAULTS, "minio-nginx"])
def test_every_store_has_stated_defaults_on_every_number_of_nodes_of_the_studies(
    system: str,
) -> None:
    known = registry.get(system)
    for nodes, expected in DEFAULTS[system.partition("-")[0]].items():
        options, plan = known.parse_options(), plan_of(nodes)
        known.check_topology(plan, options)
        assert known.effective(plan, options).items() >= expected.items()


# The table in MinIO's own tests (cmd/endpoint-ellipses_test.go) for arguments without ellipses.
@pytest.mark.parametrize(
    ("nodes", "size"),
    [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6), (16, 16), (18, 9), (20, 10), (32, 16), (34, 2)],
)
def test_minio_splits_nodes_into_the_largest_equal_sets(nodes: int, size: int) -> None:
    assert MINIO.set_size(nodes) == size
    check("minio", nodes)


# As `minio` itself says of http://n{1...N}/drive{1...D}, in its administration's `info`.
@pytest.mark.parametrize(
    ("nodes", "drives", "size"),
    [(1, 4, 4), (2, 2, 4), (4, 4, 16), (4, 5, 4), (5, 4, 10), (3, 6, 9), (24, 1, 12)],
)
def test_minio_has_equally_many_drives_of_a_set_on_each_node(
    nodes: int, drives: int, size: int
) -> None:
    sets = MINIO.Sets(nodes, drives, size)
    assert MINIO.set_size(nodes, drives) == size
    check("minio", nodes, drives=drives)
    for members in sets.members([f"n{number}" for number in range(nodes)]):
        assert set(Counter(members).values()) == {sets.of_a_node}


def test_minio_refuses_drives_that_no_set_shares_out_evenly() -> None:
    with pytest.raises(UserError, match=r"17 nodes .* 2 drives each: no erasure set .* all 34"):
        check("minio", 17, drives=2)


@pytest.mark.parametrize("nodes", [17, 19, 23, 31])
def test_minio_refuses_more_than_16_nodes_that_do_not_split(nodes: int) -> None:
    with pytest.raises(UserError, match=rf"{nodes} nodes .*divisible by a number from 2 to 16"):
        check("minio", nodes)


@pytest.mark.parametrize(
    ("drives", "parity"),
    [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 4), (16, 4)],
)
def test_minio_default_parity(drives: int, parity: int) -> None:
    assert MINIO.default_parity(drives) == parity


def test_minio_takes_at_most_half_of_a_set_as_parity() -> None:
    check("minio", 4, parity=2)
    check("minio", 5, parity=0)
    with pytest.raises(UserError, match=r"parity 3 .* 4 drives .* at most half of them, 2"):
        check("minio", 4, parity=3)
    with pytest.raises(UserError, match=r"parity 1 .* 1 drives"):
        check("minio", 1, parity=1)


def test_quorum_leader_must_be_a_node_and_of_use() -> None:
    check("quorum", 3, protocol="leader")
    check("quorum", 3, protocol="leader", leader="n3")
    with pytest.raises(UserError, match=r"`n9` is not a node of topology stand-in"):
        check("quorum", 3, protocol="leader", leader="n9")
    with pytest.raises(UserError, match=r"leave out the option leader"):
        check("quorum", 3, leader="n1")


@pytest.mark.parametrize(("system", "options"), PLACED)
def test_each_replica_of_a_vdisk_needs_a_node(system: str, options: dict[str, str]) -> None:
    check(system, 1, **options)
    check(system, 3, **options, replication_factor=3)
    with pytest.raises(UserError, match=r"replication_factor 4 needs at least 4 nodes.*has 3"):
        check(system, 3, **options, replication_factor=4)


@pytest.mark.parametrize(("system", "options"), PLACED)
def test_a_write_cannot_wait_for_more_replicas_than_there_are(
    system: str, options: dict[str, str]
) -> None:
    check(system, 5, **options, quorum=3)
    with pytest.raises(UserError, match=r"quorum 4 waits for more replicas than the 3"):
        check(system, 5, **options, quorum=4)
    with pytest.raises(UserError, match=r"quorum 2 waits for more replicas than the 1"):
        check(system, 1, **options, quorum=2)


def test_bob_must_wait_longer_than_a_round_trip() -> None:
    bob = registry.get("bob")
    plan = plan_of(1, 1, rtt_ms=200)
    bob.check_topology(plan, bob.parse_options({"operation_timeout": "201ms"}))
    with pytest.raises(UserError, match=r"operation_timeout 200ms .* takes up to 200 ms"):
        bob.check_topology(plan, bob.parse_options({"operation_timeout": "200ms"}))


def test_bob_needs_lsof(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bob = registry.get("bob")
    (tmp_path / "lsof").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bob.check_machine(plan_of(3), "memory")
    (tmp_path / "lsof").unlink()
    with pytest.raises(MachineError, match=r"lsof.*sudo apt install lsof"):
        bob.check_machine(plan_of(3), "memory")


def test_quorum_has_vdisks_over_bob_s_api_only() -> None:
    check("quorum", 3, api="bob", vdisks=7)
    with pytest.raises(UserError, match=r"api to bob, or leave out quorum and vdisks"):
        check("quorum", 3, vdisks=7, quorum=2)
    with pytest.raises(UserError, match=r"protocol `rounds:3` over S3 alone"):
        check("quorum", 3, api="bob", protocol="rounds:3")


def test_several_minio_nodes_in_memory_need_a_tmpfs_with_direct_io(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minio = registry.get("minio")
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-18-amd64")
    with pytest.raises(MachineError, match=r"Linux 6\.6 on; this is 6\.1\.0.*--storage disk"):
        minio.check_machine(plan_of(3), "memory")
    minio.check_machine(plan_of(3), "disk")
    minio.check_machine(plan_of(1), "memory")
    monkeypatch.setattr(platform, "release", lambda: "6.10.3")
    minio.check_machine(plan_of(3), "memory")


def test_quorum_s_defects_must_be_known_and_their_node_one_of_the_topology() -> None:
    check("quorum", 3, defects=["lose-acked", "resurrect"], defect_node="n3")
    with pytest.raises(UserError, match=r"lose-acked"):
        check("quorum", 3, defects=["lose-all"])
    with pytest.raises(UserError, match=r"defect_node `n9` is not a node of topology"):
        check("quorum", 3, defects=["flip-bits"], defect_node="n9")
    with pytest.raises(UserError, match=r"none is planted"):
        check("quorum", 3, defect_node="n1")
    with pytest.raises(UserError, match=r"stale-reads means nothing with protocol `leader`"):
        check("quorum", 3, protocol="leader", defects=["stale-reads"])
