"""Garage: objects replicated over zones; each site of the topology is a zone.

Sources: Garage's reference manual (configuration file, admin API v2) and its code at 2.5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from systems.ask import PATIENCE_S, Answer, NoAnswer, ask
from systems.base import Binary, Cluster, NodeProcess, S3Target, System
from systems.binary import first_line, from_cache, from_setting
from systems.errors import SystemMissing
from systems.least import S3_READS, S3_WRITES, Answers, Least, near, to_meet
from systems.options import Options
from systems.recipe import CargoInstall
from systems.secrets import derive
from systems.tools import numbers
from systems.wait import Wait
from topologies.errors import UserError
from topologies.wording import listing

if TYPE_CHECKING:
    from emulator.lab import Lab
    from topologies.resolve import Plan

S3_PORT = 3900
RPC_PORT = 3901
ADMIN_PORT = 3903
REGION = "garage"
CONFIGURATION = "garage.toml"
_PUBLIC_KEY = "meta/node_key.pub"

_RPC_SECRET = derive("garage rpc")
_ADMIN_TOKEN = derive("garage admin")
_ACCESS_KEY = "GK" + derive("garage access key", 24)
_SECRET_KEY = derive("garage secret key")
_ENVIRONMENT = {"NO_COLOR": "1"}  # of the log; see https://no-color.org
_BUCKET_S = 30.0
_CAPACITY_BYTES = 1_000_000_000
"""The same for every node. Garage uses it to share out partitions and enforces no limit by it."""


class GarageOptions(Options):
    """Options of Garage, under the names its configuration file gives them."""

    replication_factor: int | None = Field(default=None, ge=1)
    """Copies of every object; default: three, or as many as there are nodes."""
    consistency_mode: Literal["consistent", "degraded", "dangerous"] = "consistent"
    db_engine: Literal["lmdb", "sqlite"] = "lmdb"
    metadata_fsync: bool = False
    """Garage's default: a write is acknowledged before metadata are surely on disk."""
    data_fsync: bool = False
    """Garage's default, the same for object data."""

    def copies(self, nodes: int) -> int:
        """Return the replication factor in effect on so many nodes."""
        return min(3, nodes) if self.replication_factor is None else self.replication_factor

    def quorum(self, holders: int, *, writes: bool) -> int:
        """Return how many of so many nodes that hold something answer a read of it, or a write."""
        reads = -(-holders // 2)
        if writes:
            return 1 if self.consistency_mode == "dangerous" else to_meet(reads, holders)
        return reads if self.consistency_mode == "consistent" else 1


def read_version(binary: Path) -> str:
    """Ask the binary; it prints ``garage cargo:2.5.0 [features: …]`` or ``garage v2.5.0 […]``."""
    line = first_line(binary, "--version")
    version = ".".join(map(str, numbers(line)))
    if not version:
        raise SystemMissing(f"{binary} does not look like Garage: its version is {line!r}.")
    return version


class Garage(System[GarageOptions]):
    """Garage as a system under test."""

    name = "garage"
    title = "Garage"
    origin = "made by Deuxfleurs, from the Rust package registry"
    max_nodes = 256  # MAX_NODE_NUMBER in garage_rpc's layout
    recipe = CargoInstall(
        name="garage",
        version="2.5.0",
        binary="garage",
        read_version=read_version,
        minutes=12,
        disk_bytes=3_000_000_000,
        crate="garage",
    )
    options_model = GarageOptions

    def find(self) -> Binary:
        """Return the binary that the environment names, else the installed one."""
        return from_setting(self.name, read_version) or from_cache(self.recipe)

    def check_topology(self, plan: Plan, options: GarageOptions) -> None:
        """Each copy of an object needs a node of its own."""
        super().check_topology(plan, options)
        copies, nodes = options.copies(len(plan.nodes)), len(plan.nodes)
        if copies > nodes:
            raise UserError(
                f"Garage with replication_factor {copies} needs at least {copies} nodes, and "
                f"topology {plan.name} has {nodes}. Lower it, or leave it out."
            )

    def effective(self, plan: Plan, options: GarageOptions) -> dict[str, Any]:
        """Fill in the number of copies."""
        return options.model_dump() | {"replication_factor": options.copies(len(plan.nodes))}

    def least_round_trips(
        self,
        plan: Plan,
        options: GarageOptions,
        target: str,
        endpoint: str,
        placement: str,  # noqa: ARG002 - which nodes hold a key is not told
    ) -> Least | None:
        """That of Garage's own quorums (garage_rpc's replication_mode.rs).

        The names of buckets are on every node (TableFullReplication); an object, its metadata and
        its bucket's list are each on as many nodes as there are copies. That a key may do what it
        asks for, and where a bucket's name leads, is taken to be known at the node that is asked.
        """
        if endpoint not in S3_READS | S3_WRITES:
            return None
        nodes = [node.name for node in plan.nodes]
        everywhere = endpoint == "ListBuckets"
        holders = len(nodes) if everywhere else options.copies(len(nodes))
        needed = options.quorum(holders, writes=endpoint in S3_WRITES)
        if everywhere:
            return Answers.among(plan, target, needed, [nodes], "node").least()
        return Answers(needed, holders, _may_be_near(plan, target, holders)).least()

    def configure(
        self, lab: Lab, options: GarageOptions, binary: Binary, log_dir: Path
    ) -> GarageCluster:
        """Write one configuration file a node."""
        copies = options.copies(len(lab.nodes))
        processes = []
        places = {node.name: self.home(node) for node in lab.nodes}
        homes = {name: outside for name, (_, outside) in places.items()}
        known = _identities(homes)
        for node in lab.nodes:
            inside, outside = places[node.name]
            peers = _others(known, lab, node.name)
            text = configuration(node.address, inside, options, copies, peers)
            (outside / CONFIGURATION).write_text(text, encoding="utf-8")
            argv = [str(binary.path), "-c", str(inside / CONFIGURATION), "server"]
            log = self.log(log_dir, node.name)
            processes.append(NodeProcess(self.title, node.name, argv, _ENVIRONMENT, log))
        effective = self.effective(lab.plan, options)
        return GarageCluster(self.name, lab, binary, effective, processes, homes)


def _may_be_near(plan: Plan, target: str, copies: int) -> frozenset[int]:
    """Return how many of a key's copies may be in the zone of the node that is asked.

    Garage spreads them over as many zones as it can (zone_redundancy `maximum`, its default); which
    of the nodes that leaves is the work of its layout, and differs from partition to partition.
    """
    zones = min(copies, len(plan.sites))
    here = near(plan, target, (node.name for node in plan.nodes))
    elsewhere = len(plan.nodes) - here
    most = min(here, copies - (zones - 1))
    least = max(copies - elsewhere, 1 if zones == len(plan.sites) else 0)
    return frozenset({least, most})


def _identities(homes: Mapping[str, Path]) -> dict[str, str]:
    """Return the nodes' public keys, where an earlier start has left all of them; else none."""
    try:
        return {name: (home / _PUBLIC_KEY).read_bytes().hex() for name, home in homes.items()}
    except FileNotFoundError:
        return {}


def _others(ids: Mapping[str, str], lab: Lab, name: str) -> list[str]:
    """Return whom a node dials: everybody else whose identity is known."""
    others = (node for node in lab.nodes if node.name != name and node.name in ids)
    return [f"{ids[node.name]}@{node.address}:{RPC_PORT}" for node in others]


def configuration(
    address: str,
    home: PurePosixPath,
    options: GarageOptions,
    copies: int,
    peers: Sequence[str] = (),
) -> str:
    """Return the configuration file of the node with this address, its data below ``home``.

    ``peers``, as ``id@address:port``, are whom it dials at its start.
    """
    top = {
        "metadata_dir": str(home / "meta"),
        "data_dir": str(home / "data"),
        "db_engine": options.db_engine,
        "metadata_fsync": options.metadata_fsync,
        "data_fsync": options.data_fsync,
        "replication_factor": copies,
        "consistency_mode": options.consistency_mode,
        "rpc_secret": _RPC_SECRET,
        "rpc_bind_addr": f"{address}:{RPC_PORT}",
        "rpc_public_addr": f"{address}:{RPC_PORT}",
        "bootstrap_peers": list(peers),
    }
    s3 = {"api_bind_addr": f"{address}:{S3_PORT}", "s3_region": REGION}
    admin = {"api_bind_addr": f"{address}:{ADMIN_PORT}", "admin_token": _ADMIN_TOKEN}
    sections = [_toml(top), "[s3_api]", _toml(s3), "[admin]", _toml(admin)]
    return "\n".join(sections) + "\n"


def _toml(table: dict[str, Any]) -> str:
    # A JSON string, number, boolean or empty list is also one in TOML.
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


class GarageCluster(Cluster):
    """A running Garage cluster, administered through its HTTP API as its makers advise."""

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: Mapping[str, Any],
        nodes: Iterable[NodeProcess],
        homes: Mapping[str, Path],
    ) -> None:
        super().__init__(system, lab, binary, options, nodes)
        self._homes = homes

    def s3(self, node: str) -> S3Target:
        """Every node serves S3 with the same key."""
        address = self.lab.node(node).address
        return S3Target(address, S3_PORT, REGION, _ACCESS_KEY, _SECRET_KEY)

    def make_ready(self, wait: Wait) -> None:
        """Connect the nodes, give each its zone, import the key, wait until all is healthy."""
        names = list(self.nodes)
        ids: dict[str, str] = {}
        met: set[tuple[str, str]] = set()

        def answers(name: str) -> str | None:
            answer = self._admin(name, "GET", "GetNodeInfo?node=self")
            if not answer.ok:
                return answer.brief()
            (ids[name],) = answer.json()["success"]
            return None

        def connects(name: str) -> str | None:
            # Each pair once, at the node that comes first: both dialling at once gives two
            # connections, of which Garage then drops one.
            others = [n for n in names[names.index(name) + 1 :] if (name, n) not in met]
            if not others:
                return None
            peers = [f"{ids[n]}@{self.lab.node(n).address}:{RPC_PORT}" for n in others]
            answer = self._admin(name, "POST", "ConnectClusterNodes", peers, wait.remaining_s)
            if not answer.ok:
                return answer.brief()
            results = dict(zip(others, answer.json(), strict=True))
            met.update((name, n) for n, result in results.items() if result["success"])
            errors = [f"to {n}: {r['error']}" for n, r in results.items() if not r["success"]]
            return "; ".join(errors) or None

        wait.each("admin API", answers)
        wait.each("connected", connects)
        self._name_peers(ids)
        wait.each("zones", lambda name: self._assign(name, ids, wait), names[:1])
        wait.each("layout", lambda name: self._healthy(name, len(names)))
        wait.each("key", lambda name: self._import_key(name, wait), names[:1])
        wait.each("S3", self.lists_buckets)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until each sees the others up and lists buckets; layout and key are on its disk.

        Who is a member is in Garage's metadata directory, where they are in its configuration.
        """
        expected = self.expected(names)
        wait.each("members", lambda name: self._sees(name, expected), expected)
        if len(expected) == len(self.nodes):
            wait.each("layout", lambda name: self._healthy(name, len(expected)), expected)
        # Buckets and keys are on every node, and read from half of them in mode `consistent`
        # (TableFullReplication::read_quorum): with fewer, not one request is even authenticated.
        consistent = self.options["consistency_mode"] == "consistent"
        if not consistent or 2 * len(expected) >= len(self.nodes):
            wait.each("S3", self.lists_buckets, expected)

    def _sees(self, name: str, expected: Sequence[str]) -> str | None:
        answer = self._admin(name, "GET", "GetClusterStatus")
        if not answer.ok:
            return answer.brief()
        # The tag of a node's role is its name in the lab: see `_assign`.
        members = {m["role"]["tags"][0]: m for m in answer.json()["nodes"] if m.get("role")}
        missing = [n for n in expected if n != name and not members.get(n, {}).get("isUp")]
        return f"it does not see {listing(missing)}" if missing else None

    def _name_peers(self, ids: Mapping[str, str]) -> None:
        """Write into each node's configuration whom it dials when it is started again.

        Garage keeps a list of its own, but looks at it, and writes it, once a minute (garage_rpc's
        DISCOVERY_INTERVAL) and for the first time when it knows nobody: nodes of a young cluster
        that are all killed would not find each other any more.
        """
        for name, directory in self._homes.items():
            peers = _others(ids, self.lab, name)
            file = directory / CONFIGURATION
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
            line = lines.index("bootstrap_peers = []\n")
            lines[line] = f"bootstrap_peers = {json.dumps(peers)}\n"
            file.write_text("".join(lines), encoding="utf-8")

    def _assign(self, name: str, ids: dict[str, str], wait: Wait) -> str | None:
        roles = [
            {
                "id": ids[node.name],
                "zone": node.site,
                "capacity": _CAPACITY_BYTES,
                "tags": [node.name],
            }
            for node in self.lab.nodes
        ]
        self._must(name, "UpdateClusterLayout", {"roles": roles}, wait.remaining_s)
        self._must(name, "ApplyClusterLayout", {"version": 1}, wait.remaining_s)
        return None

    def _healthy(self, name: str, count: int) -> str | None:
        answer = self._admin(name, "GET", "GetClusterHealth")
        if not answer.ok:
            return answer.brief()
        health = answer.json()
        if health["status"] == "healthy" and health["storageNodesUp"] == count:
            return None
        return f"it sees {health['storageNodesUp']} of {count} nodes and is {health['status']}"

    def _import_key(self, name: str, wait: Wait) -> str | None:
        key = {"accessKeyId": _ACCESS_KEY, "secretAccessKey": _SECRET_KEY, "name": "wanlat"}
        self._must(name, "ImportKey", key, wait.remaining_s)
        allow = {"allow": {"createBucket": True}}
        self._must(name, f"UpdateKey?id={_ACCESS_KEY}", allow, wait.remaining_s)
        return None

    def layout(self) -> dict[str, Any]:
        """Return the layout in force (``GetClusterLayout``): who holds how many partitions."""
        first = next(iter(self.nodes))
        try:
            answer = self._admin(first, "GET", "GetClusterLayout")
        except NoAnswer as silence:
            raise self.nodes[first].failure(f"it does not tell the layout: {silence}") from silence
        layout: dict[str, Any] = answer.json()
        return layout

    def create_bucket(self, name: str) -> None:
        """Make a bucket through the admin API and give the key all rights to it.

        As its makers advise: a bucket made through S3 has a name that only its key knows. S3's
        CreateBucket then answers BucketAlreadyOwnedByYou. One that is there already is given the
        rights all the same: who made it may have been killed in between. Raises SystemFailed.
        """
        first = next(iter(self.nodes))
        rights = {"read": True, "write": True, "owner": True}
        try:
            there = self._admin(first, "GET", f"GetBucketInfo?globalAlias={name}")
            made = (
                there.json()
                if there.ok
                else self._must(first, "CreateBucket", {"globalAlias": name}, _BUCKET_S)
            )
            grant = {"bucketId": made["id"], "accessKeyId": _ACCESS_KEY, "permissions": rights}
            self._must(first, "AllowBucketKey", grant, _BUCKET_S)
        except NoAnswer as silence:
            self.check()
            raise self.nodes[first].failure(f"bucket {name} was not made: {silence}") from silence

    def _must(self, name: str, operation: str, body: object, timeout_s: float) -> Any:
        """Do what changes the cluster, once: a refusal is final and not asked for again."""
        answer = self._admin(name, "POST", operation, body, timeout_s)
        if not answer.ok:
            what = operation.partition("?")[0]
            raise self.nodes[name].failure(f"{what} was refused: {answer.brief()}")
        return answer.json()

    def _admin(
        self,
        name: str,
        method: str,
        operation: str,
        body: object = None,
        timeout_s: float = PATIENCE_S,
    ) -> Answer:
        return ask(
            self.lab,
            name,
            ADMIN_PORT,
            f"/v2/{operation}",
            method=method,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {_ADMIN_TOKEN}"},
            timeout_s=timeout_s,
        )
