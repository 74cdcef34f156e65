"""What Bob's nodes are told, compared with what its documentation asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from systems_doubles import StandInLab, plan_of

from wanlat.systems import registry
from wanlat.systems.base import Binary, Cluster
from wanlat.topologies.errors import UserError

BINARY = Binary(Path("/opt/bobd"), "2.1", "f" * 64)


def configure(lab: StandInLab, log_dir: Path, **options: object) -> Cluster:
    bob = registry.get("bob")
    return bob.configure(lab, bob.parse_options(options), BINARY, log_dir)  # type: ignore[arg-type]


def read(lab: StandInLab, node: str, file: str) -> Any:
    return yaml.safe_load((lab.node(node).host_directory / "bob" / f"{file}.yaml").read_text())


def test_the_command_names_the_files(lab: StandInLab, tmp_path: Path) -> None:
    cluster = configure(lab, tmp_path)
    home = f"{lab.node('n2').directory}/bob"
    wanted = f"/opt/bobd -c {home}/cluster.yaml -n {home}/node.yaml --init_folders"
    assert cluster.nodes["n2"].argv == wanted.split()
    assert cluster.nodes["n2"].log == tmp_path / "bob-n2.log"


def test_the_cluster_is_the_same_on_every_node_and_complete(
    lab: StandInLab, tmp_path: Path
) -> None:
    configure(lab, tmp_path, replication_factor=2)
    cluster = read(lab, "n1", "cluster")
    assert all(read(lab, node.name, "cluster") == cluster for node in lab.nodes)
    assert cluster["nodes"] == [
        {
            "name": node.name,
            "address": f"{node.address}:20000",
            "disks": [{"name": "disk", "path": f"{node.directory}/bob/disk"}],
        }
        for node in lab.nodes
    ]
    # Bob refuses numbers with a gap, and replicas on disks that no node has.
    assert [vdisk["id"] for vdisk in cluster["vdisks"]] == [0, 1, 2]
    assert cluster["vdisks"][2]["replicas"] == [
        {"node": "n3", "disk": "disk"},
        {"node": "n1", "disk": "disk"},
    ]


def test_every_disk_is_a_directory_of_the_lab(lab: StandInLab, tmp_path: Path) -> None:
    configure(lab, tmp_path)
    for node in lab.nodes:
        assert (node.host_directory / "bob" / "disk").is_dir()


def test_a_node_keeps_everything_in_its_own_directory(lab: StandInLab, tmp_path: Path) -> None:
    configure(lab, tmp_path)
    node = read(lab, "n3", "node")
    home = f"{lab.node('n3').directory}/bob/"
    paths = [node["log_config"], node["users_config"], node["pearl"]["disks_events_logfile"]]
    assert all(path.startswith(home) for path in paths)
    assert "/tmp/bob_events.csv" not in paths
    assert (node["name"], node["http_api_address"], node["http_api_port"]) == (
        "n3",
        "127.0.1.3",
        8000,
    )


def test_what_bob_cannot_do_without_is_there(lab: StandInLab, tmp_path: Path) -> None:
    configure(lab, tmp_path)
    node = read(lab, "n1", "node")
    assert node["metrics"]["graphite_enabled"] is node["metrics"]["prometheus_enabled"] is False
    assert node["authentication_type"] == "None"  # the text, not YAML's null
    assert (node["backend_type"], node["cluster_policy"]) == ("pearl", "quorum")
    assert node["pearl"]["alien_disk"] == "disk"
    users = read(lab, "n1", "users")
    assert {user["role"] for user in users["users"]} <= set(users["roles"])


def test_no_request_is_logged(lab: StandInLab, tmp_path: Path) -> None:
    configure(lab, tmp_path)
    root = read(lab, "n1", "logger")["root"]
    assert root == {"level": "warn", "appenders": ["stdout"]}
    assert read(lab, "n1", "logger")["appenders"]["stdout"]["kind"] == "console"


@pytest.mark.parametrize(
    ("nodes", "copies", "quorum"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (5, 3, 2), (6, 3, 2)]
)
def test_three_replicas_and_a_majority_unless_told(
    tmp_path: Path, nodes: int, copies: int, quorum: int
) -> None:
    lab = StandInLab(plan_of(nodes), tmp_path / "nodes")
    options = configure(lab, tmp_path).options
    assert (options["replication_factor"], options["quorum"]) == (copies, quorum)
    assert options["vdisks"] == len(options["placement"]) == nodes
    assert read(lab, "n1", "node")["quorum"] == quorum


def test_options_reach_the_files(lab: StandInLab, tmp_path: Path) -> None:
    given = {"replication_factor": 2, "quorum": 1, "vdisks": 7, "operation_timeout": "1.5s"}
    cluster = configure(lab, tmp_path, **given)
    assert cluster.options.items() >= given.items()
    node = read(lab, "n1", "node")
    assert (node["quorum"], node["operation_timeout"]) == (1, "1500000000ns")
    vdisks = read(lab, "n1", "cluster")["vdisks"]
    assert [len(vdisk["replicas"]) for vdisk in vdisks] == [2] * 7
    placed = [[replica["node"] for replica in vdisk["replicas"]] for vdisk in vdisks]
    assert placed == cluster.options["placement"]


def test_the_replicas_of_a_vdisk_are_in_different_sites(tmp_path: Path) -> None:
    lab = StandInLab(plan_of(2, 2, 2), tmp_path / "nodes")
    for replicas in configure(lab, tmp_path).options["placement"]:
        assert {lab.node(name).site for name in replicas} == {"dc1", "dc2", "dc3"}


@pytest.mark.parametrize("name", ["on", "1e3", "null", "0o17", "~", "1.5"])
def test_a_node_s_name_stays_a_text_whatever_it_looks_like(tmp_path: Path, name: str) -> None:
    plan = plan_of(1)
    lab = StandInLab(plan, tmp_path / "nodes")
    object.__setattr__(lab.nodes[0], "name", name)
    object.__setattr__(plan.nodes[0], "name", name)
    configure(lab, tmp_path)
    assert read(lab, name, "node")["name"] == name
    assert read(lab, name, "cluster")["vdisks"][0]["replicas"][0]["node"] == name


@pytest.mark.parametrize("wrong", [{"quorum": 0}, {"operation_timeout": "3sec"}, {"vdisks": 0}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match=f"Options of system bob: `{next(iter(wrong))}`"):
        registry.get("bob").parse_options(wrong)
