"""What YAML cannot express of MinIO: its erasure sets, its drives, its grid's messages.

Sources: MinIO's code at the pinned version (cmd/endpoint-ellipses.go for set sizes,
internal/config/storageclass for parity, internal/grid for messages).
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.scene import Node
from wanlat.systems.engine.text import numbers
from wanlat.systems.minio.grid import GridMessages
from wanlat.topologies.errors import MachineError

if TYPE_CHECKING:
    from wanlat.systems.engine.cluster import Cluster
    from wanlat.topologies.resolve import Plan

Messages = GridMessages

_SMALLEST_SET, _LARGEST_SET = 2, 16
_TMPFS_DIRECT_IO = (6, 6)  # "tmpfs: trivial support for direct IO", Linux 6.6
_READY_BUCKET = "wanlat-ready"


def set_size(nodes: int, drives: int = 1) -> int | None:
    """Return how many drives MinIO puts into an erasure set; None when it refuses the numbers.

    ``drives`` are those of each node. As of ``http://node{1...N}/drive{1...D}``, the way that its
    makers advise: the largest size that divides the drives, and divides the nodes or is divided
    by them (possibleSetCountsWithSymmetry), so that each node has equally many drives of a set.
    """
    if nodes * drives == 1:
        return 1
    sizes = [
        size
        for size in range(_SMALLEST_SET, _LARGEST_SET + 1)
        if nodes * drives % size == 0 and (size % nodes == 0 or nodes % size == 0)
    ]
    return max(sizes, default=None)


def default_parity(drives: int) -> int:
    """Return MinIO's parity for an erasure set of so many drives (DefaultParityBlocks)."""
    upper = {1: 0, 3: 1, 5: 2, 7: 3}
    return next((parity for most, parity in upper.items() if drives <= most), 4)


@dataclass(frozen=True)
class Sets:
    """The erasure sets of a cluster: ``nodes`` with ``drives`` each, ``size`` drives a set."""

    nodes: int
    drives: int
    size: int

    @property
    def count(self) -> int:
        """How many sets there are."""
        return self.nodes * self.drives // self.size if self.size else 0

    @property
    def of_a_node(self) -> int:
        """How many drives a node has in a set that it is part of."""
        return max(self.size // self.nodes, 1)

    def left(self, nodes: int) -> int:
        """Return the drives of the set that has lost most when so many nodes are there."""
        return max(self.size - (self.nodes - nodes) * self.of_a_node, 0)

    def written(self, parity: int) -> int:
        """Return how many drives of a set must have an object before it is acknowledged."""
        data = self.size - parity
        return data + 1 if data == parity else data

    def members(self, nodes: Sequence[str]) -> list[list[str]]:
        """Return the nodes of each set's drives, in the order of the command line (GetAllSets)."""
        drives = [node for _ in range(self.drives) for node in nodes]
        return [drives[begin : begin + self.size] for begin in range(0, len(drives), self.size)]


def directories(drives: int) -> list[str]:
    """Return the names of a node's drives."""
    return ["drive"] if drives == 1 else [f"drive{number}" for number in range(1, drives + 1)]


def urls(nodes: Sequence[Node], drives: int, port: int) -> list[str]:
    """Return all drives, in the order in which MinIO writes out http://n{…}/drive{…}.

    One by one: the nodes' addresses make no pattern.
    """
    names = directories(drives)
    places = [(node, f"{node.directory}/{drive}") for drive in names for node in nodes]
    if len(nodes) == 1:
        return [place for _, place in places]
    return [f"http://{node.address}:{port}{place}" for node, place in places]


# -- what it needs of the machine ------------------------------------------------------------


def check_machine(plan: Plan, storage: str) -> None:
    """On several nodes MinIO insists on O_DIRECT, which a tmpfs has from Linux 6.6 on."""
    old = numbers(platform.release())[:2] < _TMPFS_DIRECT_IO
    if storage == "memory" and len(plan.nodes) > 1 and old:
        raise _no_direct_io("")


def check_nodes(scene: dict[str, Any]) -> None:
    """Raise MachineError when the nodes' file system lacks O_DIRECT, where MinIO wants it."""
    if scene["sets"].nodes * scene["sets"].drives == 1:
        return
    trial = scene["nodes"][0].home / ".direct-io"
    try:
        os.close(os.open(trial, os.O_CREAT | os.O_WRONLY | os.O_DIRECT, 0o600))
    except OSError as error:
        raise _no_direct_io(f" ({error.strerror})") from error
    finally:
        trial.unlink(missing_ok=True)


def _no_direct_io(detail: str) -> MachineError:
    return MachineError(
        "MinIO on several nodes writes with O_DIRECT, and the nodes' file system does not offer "
        f"it{detail}. A tmpfs does from Linux 6.6 on; this is {platform.release()}. "
        "Keep the nodes' data on disk: --storage disk."
    )


# -- ready: what each node writes lies on every expected drive of its erasure set ------------
# Health means a write quorum, and the drives' states that MinIO's administration tells are each
# node's word about its own: neither shows that a node has yet connected to all the others. One
# that has not writes to the rest, a reader that has not reached the same drive then finds too few
# copies and says NoSuchKey; and it tries again only every 15 s.


def makes_bucket(cluster: Cluster, name: str, expected: Sequence[str]) -> str | None:
    """Make a bucket on every drive."""
    refused = _send_signed(cluster, name, "PUT", ok=HTTPStatus.CONFLICT)
    held = _holders(cluster, "", expected)
    wanted = len(expected) * cluster.scene["sets"].drives
    if refused or held == wanted:
        return refused
    # Made while a drive was out of reach, it is never made there: what is put into it later does
    # not lie on that drive. So once more from the beginning.
    return removes_bucket(cluster, name, expected) or f"it is on {held} of {wanted} drives"


def removes_bucket(cluster: Cluster, name: str, _: Sequence[str]) -> str | None:
    """Remove the bucket, MinIO's own way, with all that is in it."""
    force = {"x-minio-force-delete": "true"}
    return _send_signed(cluster, name, "DELETE", ok=HTTPStatus.NOT_FOUND, headers=force)


def reaches_drives(cluster: Cluster, name: str, expected: Sequence[str]) -> str | None:
    """Write, and look whether it lies everywhere."""
    sets = cluster.scene["sets"]
    wanted = sets.left(len(expected))
    # An object lies in one set, which its key decides: with several, a few more are tried.
    for index in range(1 if sets.count == 1 else 4 * sets.count):
        # Another key each time: a drive that was away keeps what was removed meanwhile.
        key = f"{name}-{time.monotonic_ns()}-{index}"
        refused = _send_signed(cluster, name, "PUT", key)
        if refused:
            return refused
        held = _holders(cluster, key, expected)
        if held < wanted:
            return f"what it writes lies on {held} of {wanted} drives"
    return None


def _send_signed(
    cluster: Cluster,
    name: str,
    method: str,
    key: str = "",
    ok: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> str | None:
    path = f"/{_READY_BUCKET}/{key}".rstrip("/")
    answer = cluster.send_s3(name, path, method=method, headers=headers)
    done = answer.status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT, ok)
    return None if done else f"{method} {path}: {answer.brief()}"


def _holders(cluster: Cluster, key: str, expected: Sequence[str]) -> int:
    drives = directories(cluster.scene["sets"].drives)
    homes = [cluster.node(name).home for name in expected]
    return sum((home / drive / _READY_BUCKET / key).exists() for home in homes for drive in drives)
