"""What each adapter writes and starts, node by node."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from systems_doubles import StandInLab, plan_of

from wanlat.systems import registry
from wanlat.systems.base import Api, Binary, Cluster
from wanlat.topologies.errors import UserError

BINARY = Binary(Path("/opt/store"), "9.9", "f" * 64)


def configure(lab: StandInLab, system: str, log_dir: Path, **options: object) -> Cluster:
    known = registry.get(system)
    return known.configure(lab, known.parse_options(options), BINARY, log_dir)  # type: ignore[arg-type]


def garage_file(lab: StandInLab, node: str) -> dict[str, Any]:
    return tomllib.loads((lab.node(node).host_directory / "garage" / "garage.toml").read_text())


def test_garage_configuration_of_a_node(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "garage", tmp_path)
    written = garage_file(lab, "n2")
    assert written["rpc_bind_addr"] == written["rpc_public_addr"] == "127.0.1.2:3901"
    assert written["s3_api"]["api_bind_addr"] == "127.0.1.2:3900"
    assert written["admin"]["api_bind_addr"] == "127.0.1.2:3903"
    assert written["replication_factor"] == 3
    assert written["consistency_mode"] == "consistent"
    assert written["db_engine"] == "lmdb"
    assert written["metadata_dir"].startswith(str(lab.node("n2").directory))
    file = f"{lab.node('n2').directory}/garage/garage.toml"
    assert cluster.nodes["n2"].argv == ["/opt/store", "-c", file, "server"]
    assert cluster.nodes["n2"].log == tmp_path / "garage-n2.log"


def test_garage_nodes_share_their_secrets_and_keep_them_from_run_to_run(
    lab: StandInLab, tmp_path: Path
) -> None:
    configure(lab, "garage", tmp_path)
    secrets = {(f["rpc_secret"], f["admin"]["admin_token"]) for f in map_files(lab)}
    assert len(secrets) == 1
    configure(lab, "garage", tmp_path)
    assert {(f["rpc_secret"], f["admin"]["admin_token"]) for f in map_files(lab)} == secrets
    assert all(len(secret) == 64 for secret, _ in secrets)


def map_files(lab: StandInLab) -> list[dict[str, Any]]:
    return [garage_file(lab, node.name) for node in lab.nodes]


@pytest.mark.parametrize(("nodes", "copies"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_garage_keeps_three_copies_or_as_many_as_there_are_nodes(
    tmp_path: Path, nodes: int, copies: int
) -> None:
    lab = StandInLab(plan_of(nodes), tmp_path / "nodes")
    cluster = configure(lab, "garage", tmp_path)
    assert garage_file(lab, "n1")["replication_factor"] == copies
    assert cluster.options["replication_factor"] == copies


def test_garage_options_reach_the_file(lab: StandInLab, tmp_path: Path) -> None:
    options = {"replication_factor": 2, "consistency_mode": "degraded", "db_engine": "sqlite"}
    cluster = configure(lab, "garage", tmp_path, **options, data_fsync=True)
    written = garage_file(lab, "n1")
    assert {name: written[name] for name in options} == options
    assert (written["data_fsync"], written["metadata_fsync"]) == (True, False)
    assert cluster.options.items() >= options.items()


def test_garage_keys_have_the_form_it_asks_for(lab: StandInLab, tmp_path: Path) -> None:
    target = configure(lab, "garage", tmp_path).s3("n3")
    assert (target.host, target.port, target.region) == ("127.0.1.3", 3900, "garage")
    assert target.access_key.startswith("GK")
    assert len(bytes.fromhex(target.access_key[2:])) == 12
    assert len(bytes.fromhex(target.secret_key)) == 32


def test_minio_gives_every_node_the_same_command_and_environment(
    lab: StandInLab, tmp_path: Path
) -> None:
    nodes = configure(lab, "minio", tmp_path).nodes.values()
    assert len({tuple(node.argv) for node in nodes}) == 1
    assert len({tuple(node.env.items()) for node in nodes}) == 1
    argv = next(iter(nodes)).argv
    assert argv[:4] == ["/opt/store", "server", "--address", ":9000"]
    assert argv[4:] == [f"http://{n.address}:9000{n.directory}/minio/drive" for n in lab.nodes]
    assert all((node.host_directory / "minio" / "drive").is_dir() for node in lab.nodes)


def test_minio_calls_nobody_at_home(lab: StandInLab, tmp_path: Path) -> None:
    env = configure(lab, "minio", tmp_path).nodes["n1"].env
    off = ("MINIO_UPDATE", "MINIO_BROWSER", "MINIO_CALLHOME_ENABLE")
    assert {env[name] for name in off} == {"off"}
    assert env["MINIO_CI_CD"] == "1"


def test_minio_leaves_the_parity_to_itself_unless_asked(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "minio", tmp_path)
    assert "MINIO_STORAGE_CLASS_STANDARD" not in cluster.nodes["n1"].env
    assert cluster.options == {"drives": 1, "sets": 1, "drives_per_set": 3, "parity": 1}
    cluster = configure(lab, "minio", tmp_path, parity=0)
    assert cluster.nodes["n1"].env["MINIO_STORAGE_CLASS_STANDARD"] == "EC:0"
    assert cluster.options["parity"] == 0


def test_minio_s_drives_are_listed_as_its_makers_pattern_would_be(tmp_path: Path) -> None:
    lab = StandInLab(plan_of(2, 2), tmp_path / "nodes")
    cluster = configure(lab, "minio", tmp_path, drives=2)
    listed = cluster.nodes["n3"].argv[4:]
    assert listed == [
        f"http://{node.address}:9000{node.directory}/minio/drive{number}"
        for number in (1, 2)
        for node in lab.nodes
    ]
    assert all((n.host_directory / "minio" / "drive2").is_dir() for n in lab.nodes)
    sets = {"drives": 2, "sets": 1, "drives_per_set": 8, "parity": 4}
    assert cluster.options == sets


def test_minio_is_told_the_size_of_a_set_only_where_it_would_choose_another_of_a_plain_list(
    tmp_path: Path,
) -> None:
    told = "MINIO_ERASURE_SET_DRIVE_COUNT"
    for nodes, drives, size in ((4, 4, None), (4, 5, "4"), (24, 1, None)):
        lab = StandInLab(plan_of(nodes), tmp_path / f"{nodes}-{drives}")
        env = configure(lab, "minio", tmp_path, drives=drives).nodes["n1"].env
        assert env.get(told) == size


def test_minio_on_one_node_serves_a_directory(tmp_path: Path) -> None:
    lab = StandInLab(plan_of(1), tmp_path / "nodes")
    argv = configure(lab, "minio", tmp_path).nodes["n1"].argv
    assert argv[-1] == f"{lab.node('n1').directory}/minio/drive"
    argv = configure(lab, "minio", tmp_path, drives=2).nodes["n1"].argv
    assert argv[4:] == [f"{lab.node('n1').directory}/minio/drive{number}" for number in (1, 2)]


def test_quorum_lists_all_peers_alike_on_every_node(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "quorum", tmp_path)
    argv = [list(node.argv) for node in cluster.nodes.values()]
    peers = [f"{node.name}={node.address}:9001" for node in lab.nodes]
    for line, node in zip(argv, lab.nodes, strict=True):
        given = [line[at + 1] for at, word in enumerate(line) if word == "--peer"]
        assert given == peers
        assert line[line.index("--name") + 1] == node.name
        assert line[line.index("--s3") + 1] == f"{node.address}:9000"
        assert line[line.index("--data") + 1] == f"{node.directory}/quorum/data"
        assert "--leader" not in line


def test_quorum_is_led_by_the_first_node_unless_told(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "quorum", tmp_path, protocol="leader")
    assert list(cluster.nodes["n3"].argv)[-2:] == ["--leader", "n1"]
    assert cluster.options == {"api": "s3", "protocol": "leader", "leader": "n1"}
    cluster = configure(lab, "quorum", tmp_path, protocol="leader", leader="n2")
    assert list(cluster.nodes["n3"].argv)[-2:] == ["--leader", "n2"]


def test_quorum_serves_bob_s_api_when_asked_with_its_vdisks_on_every_node(
    tmp_path: Path,
) -> None:
    lab = StandInLab(plan_of(2, 2), tmp_path / "nodes")
    cluster = configure(lab, "quorum", tmp_path, api="bob", replication_factor=2, quorum=1)
    for name, process in cluster.nodes.items():
        line = list(process.argv)
        given = [line[at + 1] for at, word in enumerate(line) if word == "--vdisk"]
        assert given == ["n1,n3", "n2,n4", "n3,n1", "n4,n2"]
        assert line[line.index("--bob") + 1] == f"{lab.node(name).address}:20000"
        assert line[line.index("--bob-quorum") + 1] == "1"
    assert cluster.options == {
        "api": "bob",
        "replication_factor": 2,
        "quorum": 1,
        "vdisks": 4,
        "placement": [["n1", "n3"], ["n2", "n4"], ["n3", "n1"], ["n4", "n2"]],
    }


def test_quorum_s_disturbances_are_on_every_node_and_only_when_asked_for(
    lab: StandInLab, tmp_path: Path
) -> None:
    planted = {"delayed_ack": 3, "heartbeat_ms": 100, "nagle": True}
    cluster = configure(lab, "quorum", tmp_path, **planted)
    for node in cluster.nodes.values():
        argv = " ".join(node.argv)
        assert "--delayed-ack 3 --heartbeat-ms 100 --nagle" in argv
    assert cluster.options.items() >= planted.items()
    without = configure(lab, "quorum", tmp_path)
    assert without.options.keys().isdisjoint(planted)
    assert not any("--nagle" in node.argv for node in without.nodes.values())


def test_quorum_s_defects_are_on_every_node_and_stale_reads_on_the_first(
    lab: StandInLab, tmp_path: Path
) -> None:
    cluster = configure(lab, "quorum", tmp_path, defects=["drop-acked", "stale-reads"])
    planted = {
        name: [word for word in node.argv if word in ("--drop-acked", "--stale-reads")]
        for name, node in cluster.nodes.items()
    }
    both, one = ["--drop-acked", "--stale-reads"], ["--drop-acked"]
    assert planted == {"n1": both, "n2": one, "n3": one}
    nodes = {"drop-acked": ["n1", "n2", "n3"], "stale-reads": ["n1"]}
    assert cluster.options["defects"] == nodes
    chosen = configure(lab, "quorum", tmp_path, api="bob", defects=["flip-bits"], defect_node="n2")
    having = [name for name, node in chosen.nodes.items() if "--flip-bits" in node.argv]
    assert having == ["n2"]
    assert chosen.options["defects"] == {"flip-bits": ["n2"]}


def test_quorum_has_no_defect_unless_it_is_planted(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "quorum", tmp_path)
    assert "defects" not in cluster.options
    flags = {
        f"--{defect}" for defect in registry.get("quorum").definition.options["defects"].of or ()
    }
    assert all(flags.isdisjoint(node.argv) for node in cluster.nodes.values())


def test_quorum_s_s3_is_as_ever_without_that(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "quorum", tmp_path)
    assert not any(word.startswith(("--bob", "--vdisk")) for word in cluster.nodes["n1"].argv)
    assert cluster.options == {"api": "s3", "protocol": "leaderless"}


APIS: list[tuple[str, dict[str, object], Api]] = [
    ("garage", {}, "s3"),
    ("minio", {}, "s3"),
    ("minio-nginx", {}, "s3"),
    ("quorum", {}, "s3"),
    ("quorum", {"api": "bob"}, "bob"),
    ("bob", {}, "bob"),
    ("service", {"command": ["x"]}, "grpc"),
]


@pytest.mark.parametrize(("system", "options", "api"), APIS)
def test_what_is_measured_is_known_beforehand(
    lab: StandInLab, tmp_path: Path, system: str, options: dict[str, object], api: Api
) -> None:
    known = registry.get(system)
    assert known.api(known.parse_options(options)) == api
    assert configure(lab, system, tmp_path, **options).api == api


@pytest.mark.parametrize(("system", "options", "api"), APIS)
def test_who_holds_a_key_is_known_beforehand_or_not_at_all(
    lab: StandInLab, tmp_path: Path, system: str, options: dict[str, object], api: Api
) -> None:
    known = registry.get(system)
    beforehand = known.replicas(lab.plan, known.parse_options(options))
    cluster = configure(lab, system, tmp_path, **options)
    for first in range(6):
        key = bytes([first, 0, 0, 0, 0, 0, 0, 0])
        assert beforehand(key) == cluster.replicas(key)
        if api == "bob":
            assert cluster.replicas(key) == tuple(cluster.options["placement"][first % 3])
        else:
            assert cluster.replicas(key) is None


def test_a_system_says_what_it_does_not_speak(lab: StandInLab, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bob does not speak S3 .* speaks Bob's gRPC API"):
        configure(lab, "bob", tmp_path).s3("n1")
    for system in ("garage", "minio", "quorum"):
        with pytest.raises(UserError, match=rf"{system} does not speak gRPC .* it speaks S3\."):
            configure(lab, system, tmp_path).grpc("n1")
    with pytest.raises(UserError, match=r"service does not speak S3"):
        configure(lab, "service", tmp_path, command=["x"]).s3("n1")


def test_quorum_with_bob_s_api_speaks_both(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, "quorum", tmp_path, api="bob")
    assert cluster.s3("n2").port == 9000
    assert (cluster.grpc("n2").host, cluster.grpc("n2").port) == ("127.0.1.2", 20000)
    assert [proto.name for proto in cluster.grpc("n2").protos] == ["bob.proto"]
    assert cluster.grpc("n2").protos[0].is_file()


@pytest.mark.parametrize("system", registry.names())
def test_options_in_effect_are_known_before_a_start(
    lab: StandInLab, tmp_path: Path, system: str
) -> None:
    known = registry.get(system)
    before = known.effective(lab.plan, known.parse_options())
    assert before == configure(lab, system, tmp_path).options
    assert None not in before.values()
    assert json.loads(json.dumps(before)) == before


def test_a_cluster_carries_what_the_bundle_records(lab: StandInLab, tmp_path: Path) -> None:
    for system in registry.names():
        cluster = configure(lab, system, tmp_path)
        assert (cluster.system, cluster.version, cluster.sha256) == (system, "9.9", "f" * 64)
