"""A running MinIO cluster: where it answers, and when it is ready.

Sources: MinIO's code at the pinned version (cmd/healthcheck-handler.go, cmd/xl-storage.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.systems.ask import ask
from wanlat.systems.base import Binary, Cluster, NodeProcess, S3Target
from wanlat.systems.minio_sets import Sets
from wanlat.systems.secrets import derive
from wanlat.systems.wait import Wait

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

PORT = 9000
REGION = "us-east-1"  # MinIO's default
ACCESS_KEY = "wanlat"
SECRET_KEY = derive("minio root password", 40)

_READY_BUCKET = "wanlat-ready"


class MinioCluster(Cluster):
    """A running MinIO cluster."""

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: Mapping[str, Any],
        nodes: Iterable[NodeProcess],
        drives: Mapping[str, Sequence[Path]],
        sets: Sets,
    ) -> None:
        super().__init__(system, lab, binary, options, nodes)
        self.drives = drives
        """Each node's, as we see them from outside."""
        self.sets = sets
        self._rounds = count(1)

    def s3(self, node: str) -> S3Target:
        """Every node serves S3 with the root credentials."""
        return self.own_s3(node)

    def own_s3(self, node: str) -> S3Target:
        """The node's own port, whatever stands before it."""
        return S3Target(self.lab.node(node).address, PORT, REGION, ACCESS_KEY, SECRET_KEY)

    def make_ready(self, wait: Wait) -> None:
        """The nodes find each other; wait until each serves requests and reaches every drive."""
        self.await_serving(wait)

    def await_serving(self, wait: Wait, names: Iterable[str] | None = None) -> None:
        """Wait until each serves requests and reaches the drives of all of them.

        With fewer than a write quorum only that they run: MinIO then says no more of itself.
        """
        expected = self.expected(names)
        wait.each("started", lambda name: self._health(name, "live"), expected)
        if self._are_enough(expected):
            wait.each("cluster", lambda name: self._health(name, "cluster"), expected)
            wait.each("S3", self.lists_buckets, expected)
            self._wait_for_drives(wait, expected)

    def _are_enough(self, expected: Sequence[str]) -> bool:
        """Return whether they have a write quorum of an erasure set, also if all lost are its."""
        return self._left_of_a_set(expected) >= self.sets.written(self.options["parity"])

    def _left_of_a_set(self, expected: Sequence[str]) -> int:
        """Return the drives of the erasure set that has lost most to the nodes that are gone."""
        lost = len(self.nodes) - len(expected)
        return max(self.sets.size - lost * self.sets.of_a_node, 0)

    def _health(self, name: str, kind: str) -> str | None:
        answer = ask(self.lab, name, PORT, f"/minio/health/{kind}")
        return None if answer.ok else f"/minio/health/{kind}: {answer.brief()}"

    def _wait_for_drives(self, wait: Wait, expected: Sequence[str]) -> None:
        """Wait until what each node writes lies on every expected drive of its erasure set.

        Health means a write quorum, and the drives' states that MinIO's administration tells are
        each node's word about its own: neither shows that a node has yet connected to all the
        others. One that has not writes to the rest, a reader that has not reached the same drive
        then finds too few copies and says NoSuchKey; and it tries again only every 15 s.
        """
        first, number = expected[0], next(self._rounds)
        wait.each("bucket", lambda name: self._makes_bucket(name, expected), [first])
        wait.each("drives", lambda name: self._reaches_drives(name, expected, number), expected)
        wait.each("bucket", lambda name: self._asks(name, "DELETE", gone=True), [first])

    def _asks(
        self, name: str, method: str, key: str = "", *, there: bool = False, gone: bool = False
    ) -> str | None:
        path = f"/{_READY_BUCKET}/{key}".rstrip("/")
        # MinIO's own way to remove a bucket with all that is in it.
        headers = {"x-minio-force-delete": "true"} if gone else None
        answer = self.ask_s3(name, path, method=method, headers=headers)
        done = answer.status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT)
        done = done or (there and answer.status == HTTPStatus.CONFLICT)
        done = done or (gone and answer.status == HTTPStatus.NOT_FOUND)
        return None if done else f"{method} {path}: {answer.brief()}"

    def _makes_bucket(self, name: str, expected: Sequence[str]) -> str | None:
        refused = self._asks(name, "PUT", there=True)
        held, wanted = self._holders(_READY_BUCKET, expected), len(expected) * self.sets.drives
        if refused or held == wanted:
            return refused
        # Made while a drive was out of reach, it is never made there: what is put into it later
        # does not lie on that drive. So once more from the beginning.
        return self._asks(name, "DELETE", gone=True) or f"it is on {held} of {wanted} drives"

    def _holders(self, path: str, expected: Sequence[str]) -> int:
        return sum((drive / path).exists() for node in expected for drive in self.drives[node])

    def _reaches_drives(self, name: str, expected: Sequence[str], number: int) -> str | None:
        wanted = self._left_of_a_set(expected)
        # An object lies in one set, which its key decides: with several, a few more are tried.
        for index in range(1 if self.sets.count == 1 else 4 * self.sets.count):
            # Another key each time: a drive that was away keeps what was removed meanwhile.
            key = f"{name}-{number}-{index}"
            refused = self._asks(name, "PUT", key)
            if refused:
                return refused
            held = self._holders(f"{_READY_BUCKET}/{key}", expected)
            if held < wanted:
                return f"what it writes lies on {held} of {wanted} drives"
        return None
