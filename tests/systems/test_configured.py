"""What each system writes, starts and promises on a topology: as it was, byte by byte.

After a change that is meant, this test with ``WANLAT_GENERATE=1 -s`` writes configured.json.gz anew
and prints the difference, which is then read.
"""

from __future__ import annotations

import gzip
import json
import os
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from systems_doubles import StandInLab, plan_of

from wanlat.systems import registry
from wanlat.systems.base import Binary, Cluster, Companion
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan

GOLDEN = Path(__file__).with_name("configured.json.gz")
NGINX = Companion("nginx", Path("/opt/nginx"), "1.22.1", "e" * 64)
BINARY = Binary(Path("/opt/store"), "9.9", "f" * 64, beside=(NGINX,))
PLANS = {"2+2": plan_of(2, 2, rtt_ms=100), "1": plan_of(1), "3+1+1": plan_of(3, 1, 1, rtt_ms=100)}
BOB = {"replication_factor": 2, "quorum": 1}
CASES: dict[str, list[dict[str, Any]]] = {
    "quorum": [
        {},
        *({"protocol": "leader"}, {"protocol": "leader", "leader": "n4"}, {"protocol": "rounds:3"}),
        *({"protocol": "raft"}, {"protocol": "mixture:30:1:3"}, {"leader": "n1"}),
        *({"api": "bob"}, {"api": "bob", **BOB}, {"api": "bob", "vdisks": 7}, {"vdisks": 7}),
        *({"api": "bob", "quorum": 4}, {"api": "bob", "protocol": "rounds:3"}),
        *(
            {"defects": ["lose-acked", "stale-reads"]},
            {"defects": ["flip-bits"], "defect_node": "n1"},
        ),
        *({"defect_node": "n1"}, {"protocol": "leader", "defects": ["stale-reads"]}),
        {"delayed_ack": 3, "heartbeat_ms": 100, "nagle": True},
    ],
    "garage": [
        {},
        {"replication_factor": 2, "consistency_mode": "degraded", "db_engine": "sqlite"},
        *({"consistency_mode": "dangerous"}, {"replication_factor": 5}, {"db_engine": "oracle"}),
    ],
    "minio": [{}, {"parity": 0}, {"parity": 1}, {"drives": 2}, {"drives": 5}, {"parity": 9}],
    "minio-nginx": [{}, {"balance": "round_robin", "workers": 4}, {"front": "n2"}],
    "bob": [
        {},
        BOB,
        {"quorum": 4},
        {"disks": 2},
        {"operation_timeout": "1s"},
        {"operation_timeout": "50ms"},
    ],
    "service": [
        {},
        {
            "command": [
                *("sleep", "--me={node}@{address}:{port}", "{data}", "{peers}", "{{node}}"),
                *("--peer={peer.node}={peer.address}:{port}", '{"a": {"b": 1}}', "{} ${HOME}"),
            ],
            **{"environment": {"WHO": "{node}"}, "port": 7000},
        },
        *({"command": ["sleep", "{nodes}"]}, {"command": ["sleep"], "protos": ["no/such.proto"]}),
    ],
}
ENDPOINTS = {
    "s3": ("ListBuckets", "ListObjects", "GetObject", "HeadObject", "PutObject", "RemoveObject"),
    "bob": ("Put", "Get", "Exist", "Delete", "Ping"),
    "grpc": ("shop.Catalogue/Find",),
}


def described(cluster: Cluster, plan: Plan, homes: Path) -> dict[str, Any]:
    """What a cluster is before anything has started, and what is known of its requests."""
    system, given = cluster.defined, cluster.scene["given"]
    cluster.standing = system.stand_before(cluster, homes.parent, ["n1"])
    nodes = {"": cluster.nodes, " front": cluster.standing}
    assert cluster.options == system.effective(plan, given)
    last = plan.nodes[-1].name  # verification asks each node itself, whatever stands before them
    assert cluster.own_target(last).host == cluster.lab.node(last).address
    trips = {
        f"{node.name} {endpoint} {placement}": [
            least and [least.round_trips, least.why],
            system.promised_round_trips(plan, given, node.name, endpoint, placement),
        ]
        for node in (plan.nodes[0], plan.nodes[-1])
        for endpoint in ENDPOINTS[cluster.api]
        for placement in (("local", "remote") if cluster.api == "bob" else ("unknown",))
        for least in [system.least_round_trips(plan, given, node.name, endpoint, placement)]
    }
    return {
        "options": cluster.options,
        "roles": cluster.roles,
        "run": {
            f"{name}{kind}": " ".join([*each.env, *each.env.values(), "--", *map(str, each.argv)])
            for kind, processes in nodes.items()
            for name, each in processes.items()
        },
        "files": {
            str(file.relative_to(homes)): file.read_text() if file.is_file() else None
            for file in sorted(homes.glob("*1/**/*"))
        },
        "at": [vars(cluster.target("n1")) if cluster.api == "s3" else cluster.target("n1").port],
        "replicas": [cluster.replicas(bytes([number, *bytes(7)])) for number in range(5)],
        "round trips": trips,
    }


@pytest.mark.parametrize("name", CASES)
def test_every_system_is_configured_as_before(name: str, tmp_path: Path) -> None:
    system, found = registry.get(name), {}
    for options in CASES[name]:
        for shape, plan in PLANS.items():
            homes = tmp_path / f"{len(found)}" / "homes"
            try:
                given = system.parse_options(options)
                system.check_topology(plan, given)
                lab: Any = StandInLab(plan, homes)
                cluster = system.configure(lab, given, BINARY, tmp_path)
                said = json.dumps(described(cluster, plan, homes), default=str)
                found[f"{options} on {shape}"] = json.loads(said.replace(str(homes), "HOMES"))
            except UserError:
                found[f"{options} on {shape}"] = "refused"
    golden = json.loads(gzip.decompress(GOLDEN.read_bytes())) if GOLDEN.exists() else {}
    if os.environ.get("WANLAT_GENERATE"):
        was, now = (
            json.dumps(each, indent=1).splitlines() for each in (golden.get(name, {}), found)
        )
        print(*unified_diff(was, now, "as it was", name, lineterm=""), sep="\n")
        written = json.dumps({**golden, name: found}).encode()
        GOLDEN.write_bytes(gzip.compress(written, mtime=0))
        return
    assert found == golden[name]
