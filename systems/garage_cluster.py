"""A running Garage cluster: its nodes are introduced to each other over the admin API (v2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.systems.ask import PATIENCE_S, Answer, NoAnswer, ask
from wanlat.systems.base import Binary, Cluster, NodeProcess, S3Target
from wanlat.systems.garage_files import (
    ADMIN_PORT,
    ADMIN_TOKEN,
    CONFIGURATION,
    REGION,
    RPC_PORT,
    S3_PORT,
    others,
)
from wanlat.systems.secrets import derive
from wanlat.systems.wait import Wait
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

_ACCESS_KEY = "GK" + derive("garage access key", 24)
_SECRET_KEY = derive("garage secret key")
_BUCKET_S = 30.0
_CAPACITY_BYTES = 1_000_000_000
"""The same for every node. Garage uses it to share out partitions and enforces no limit by it."""


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
            strangers = [n for n in names[names.index(name) + 1 :] if (name, n) not in met]
            if not strangers:
                return None
            peers = [f"{ids[n]}@{self.lab.node(n).address}:{RPC_PORT}" for n in strangers]
            answer = self._admin(name, "POST", "ConnectClusterNodes", peers, wait.remaining_s)
            if not answer.ok:
                return answer.brief()
            results = dict(zip(strangers, answer.json(), strict=True))
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
            peers = others(ids, self.lab, name)
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
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            timeout_s=timeout_s,
        )
