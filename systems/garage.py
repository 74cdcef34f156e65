"""Garage: objects replicated over zones; each site of the topology is a zone.

Sources: Garage's reference manual (configuration file, admin API v2) and its code at 2.5.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from wanlat.systems.base import Binary, NodeProcess, System
from wanlat.systems.binary import first_line, from_cache, from_setting
from wanlat.systems.errors import SystemMissing
from wanlat.systems.garage_cluster import GarageCluster
from wanlat.systems.garage_files import CONFIGURATION, configuration, identities, others
from wanlat.systems.least import S3_READS, S3_WRITES, Answers, Least, near, to_meet
from wanlat.systems.options import Options
from wanlat.systems.recipe import CargoInstall
from wanlat.systems.tools import numbers
from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan

_ENVIRONMENT = {"NO_COLOR": "1"}  # of the log; see https://no-color.org


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
        known = identities(homes)
        for node in lab.nodes:
            inside, outside = places[node.name]
            peers = others(known, lab, node.name)
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
