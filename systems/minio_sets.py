"""How MinIO shares out the drives of a cluster: erasure sets, and what of one is parity.

Sources: MinIO's code at the pinned version (cmd/endpoint-ellipses.go for set sizes,
internal/config/storageclass for parity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST_SET, LARGEST_SET = 2, 16


def set_size(nodes: int, drives: int = 1) -> int | None:
    """Return how many drives MinIO puts into an erasure set; None when it refuses the numbers.

    ``drives`` are those of each node. As of ``http://node{1...N}/drive{1...D}``, the way that its
    makers advise: the largest size that divides the drives, and divides the nodes or is divided
    by them (possibleSetCountsWithSymmetry), so that each node has equally many drives of a set.
    """
    all_drives = nodes * drives
    if all_drives == 1:
        return 1
    sizes = [
        size
        for size in range(SMALLEST_SET, LARGEST_SET + 1)
        if all_drives % size == 0 and (size % nodes == 0 or nodes % size == 0)
    ]
    return max(sizes, default=None)


def default_parity(drives: int) -> int:
    """Return MinIO's parity for an erasure set of so many drives (DefaultParityBlocks)."""
    if drives == 1:
        return 0
    if drives <= 3:
        return 1
    if drives <= 5:
        return 2
    return 3 if drives <= 7 else 4


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

    def written(self, parity: int) -> int:
        """Return how many drives of a set must have an object before it is acknowledged."""
        data = self.size - parity
        return data + 1 if data == parity else data

    def members(self, nodes: Sequence[str]) -> list[list[str]]:
        """Return the nodes of each set's drives, a node once for each drive of its.

        In the order of the command line (GetAllSets): all nodes' first drives, all nodes' second
        drives, as MinIO itself writes out a pattern of nodes and drives.
        """
        drives = [node for _ in range(self.drives) for node in nodes]
        return [drives[begin : begin + self.size] for begin in range(0, len(drives), self.size)]
