"""MinIO: objects erasure-coded over the drives of all nodes.

Sources: MinIO's documentation of its command and environment, and its code at the pinned version
(cmd/server-main.go, cmd/peer-s3-client.go, cmd/xl-storage.go).
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from wanlat.systems.base import Binary, NodeProcess, System
from wanlat.systems.binary import first_line, from_cache, from_setting
from wanlat.systems.errors import SystemMissing
from wanlat.systems.gobuildinfo import main_module_version
from wanlat.systems.least import LISTINGS, S3_READS, S3_WRITES, Answers, Least, to_meet
from wanlat.systems.minio_cluster import ACCESS_KEY, PORT, SECRET_KEY, MinioCluster
from wanlat.systems.minio_messages import GridMessages
from wanlat.systems.minio_sets import LARGEST_SET, SMALLEST_SET, Sets, default_parity, set_size
from wanlat.systems.options import Options
from wanlat.systems.recipe import GoInstall, Recipe
from wanlat.systems.tools import numbers
from wanlat.topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan

_TMPFS_DIRECT_IO = (6, 6)  # "tmpfs: trivial support for direct IO", Linux 6.6


class MinioOptions(Options):
    """Options of MinIO."""

    parity: int | None = Field(default=None, ge=0)
    """Drives of an erasure set that may be lost; default: MinIO's own, by the set's size."""
    drives: int = Field(default=1, ge=1, le=16)
    """Drives of each node: directories, on whatever its data are on."""

    def sets(self, nodes: int) -> Sets | None:
        """Return the erasure sets on so many nodes, None where MinIO refuses the number."""
        size = set_size(nodes, self.drives)
        return None if size is None else Sets(nodes, self.drives, size)


def read_version(binary: Path) -> str:
    """Ask the binary.

    A release says ``minio version RELEASE.<date> …``. One that was built by `go install` says
    only DEVELOPMENT.GOGET, because its makers' build writes the version with linker flags; then
    the Go linker's own record tells the module version.
    """
    line = first_line(binary, "--version")
    found = re.search(r"version (\S+)", line)
    if found is None:
        raise SystemMissing(f"{binary} does not look like MinIO: its version is {line!r}.")
    if found[1] != "DEVELOPMENT.GOGET":
        return found[1]
    return main_module_version(binary) or found[1]


def label(version: str) -> str:
    """Return the date in a version, as MinIO's makers name theirs: ``2026-02-12``."""
    date = re.search(r"(\d{4})-?(\d\d)-?(\d\d)(?=T|\d{6}-)", version)
    return "-".join(date.groups()) if date else version


RECIPE = GoInstall(
    name="minio",
    version="v0.0.0-20260212201848-7aac2a2c5b7c",
    binary="minio",
    read_version=read_version,
    minutes=3,
    disk_bytes=1_000_000_000,
    module="github.com/minio/minio",
)


class Minio(System[MinioOptions]):
    """MinIO as a system under test."""

    name = "minio"
    title = "MinIO"
    origin = "made by MinIO, Inc., from its Go module; archived by its makers in 2026"
    max_nodes = 256
    recipe: ClassVar[Recipe | None] = RECIPE
    messages = GridMessages
    options_model: type[MinioOptions] = MinioOptions
    cluster: ClassVar[type[MinioCluster]] = MinioCluster

    def find(self) -> Binary:
        """Return the binary that the environment names, else the installed one."""
        found = from_setting("minio", read_version) or from_cache(RECIPE)
        return Binary(found.path, found.version, found.sha256, label(found.version))

    def check_topology(self, plan: Plan, options: MinioOptions) -> None:
        """The number of nodes must split into sets of equal size, and the parity must fit one."""
        super().check_topology(plan, options)
        nodes = len(plan.nodes)
        sets = options.sets(nodes)
        if sets is None:
            raise UserError(_no_sets(plan.name, nodes, options.drives))
        if options.parity is not None and options.parity > sets.size // 2:
            raise UserError(
                f"MinIO with parity {options.parity} does not fit topology {plan.name}: an "
                f"erasure set has {sets.size} drives there, and at most half of them, "
                f"{sets.size // 2}, may be parity."
            )

    def effective(self, plan: Plan, options: MinioOptions) -> dict[str, Any]:
        """Fill in the parity, and tell the erasure sets."""
        sets = options.sets(len(plan.nodes)) or Sets(len(plan.nodes), options.drives, 0)
        parity = default_parity(sets.size) if options.parity is None else options.parity
        return {
            "drives": options.drives,
            "sets": sets.count,
            "drives_per_set": sets.size,
            "parity": parity,
        }

    def least_round_trips(
        self,
        plan: Plan,
        options: MinioOptions,
        target: str,
        endpoint: str,
        placement: str,  # noqa: ARG002 - the same for all keys of a set
    ) -> Least | None:
        """That of the drives: an object is read from its data shards' number, buckets from nodes.

        A read that sends no data must meet every write, that of an object also put it together.
        Locks, and the look at metadata before the data, are MinIO's own choice.
        """
        if endpoint not in S3_READS | S3_WRITES:
            return None
        nodes = [node.name for node in plan.nodes]
        if endpoint == "ListBuckets":
            # A bucket is made on a majority of nodes (S3PeerSys.MakeBucket).
            needed = to_meet(len(nodes) // 2 + 1, len(nodes))
            return Answers.among(plan, target, needed, [nodes], "node").least()
        sets = options.sets(len(plan.nodes))
        if sets is None:
            return None
        parity = self.effective(plan, options)["parity"]
        written = sets.written(parity)
        if endpoint in S3_WRITES:
            needed = written
        else:
            met = to_meet(written, sets.size)
            needed = max(met, sets.size - parity) if endpoint == "GetObject" else met
        one = Answers.among(plan, target, needed, sets.members(nodes), "drive")
        if endpoint in LISTINGS:
            # A bucket's objects lie in all sets, so each of them has to answer.
            one = replace(one, near=frozenset({min(one.near)}))
        return one.least()

    def check_machine(self, plan: Plan, storage: str) -> None:
        """On several nodes MinIO insists on O_DIRECT, which a tmpfs has from Linux 6.6 on."""
        old = numbers(platform.release())[:2] < _TMPFS_DIRECT_IO
        if storage == "memory" and len(plan.nodes) > 1 and old:
            raise _no_direct_io("")

    def configure(
        self, lab: Lab, options: MinioOptions, binary: Binary, log_dir: Path
    ) -> MinioCluster:
        """Give every node the same command and the same environment, as MinIO asks."""
        sets = options.sets(len(lab.nodes))
        assert sets is not None, "check_topology has refused it"
        inside: list[str] = []
        outside: dict[str, list[Path]] = {node.name: [] for node in lab.nodes}
        # Written out one by one, in the order in which MinIO writes out http://n{…}/drive{…}:
        # the nodes' addresses make no pattern.
        for number in range(1, options.drives + 1):
            for node in lab.nodes:
                place, ours = self.home(node, "drive" if options.drives == 1 else f"drive{number}")
                url = f"http://{node.address}:{PORT}{place}"
                inside.append(str(place) if len(lab.nodes) == 1 else url)
                outside[node.name].append(ours)
        if len(inside) > 1:
            _check_direct_io(outside[lab.nodes[0].name][0])
        argv = [str(binary.path), "server", "--address", f":{PORT}", *inside]
        processes = [
            NodeProcess(
                self.title,
                node.name,
                argv,
                environment(options, sets),
                self.log(log_dir, node.name),
            )
            for node in lab.nodes
        ]
        effective = self.effective(lab.plan, options)
        return self.cluster(self.name, lab, binary, effective, processes, outside, sets)


def _no_sets(topology: str, nodes: int, drives: int) -> str:
    if drives > 1:
        return (
            f"MinIO cannot run on the {nodes} nodes of topology {topology} with {drives} drives "
            f"each: no erasure set of {SMALLEST_SET} to {LARGEST_SET} drives divides all "
            f"{nodes * drives} and has equally many of each node. Change the option drives, or "
            "the number of nodes."
        )
    return (
        f"MinIO cannot run on the {nodes} nodes of topology {topology}: with more than "
        f"{LARGEST_SET}, their number must be divisible by a number from {SMALLEST_SET} "
        f"to {LARGEST_SET}, the drives of an erasure set."
    )


def environment(options: MinioOptions, sets: Sets) -> dict[str, str]:
    """Return the environment of every node."""
    values = {
        "MINIO_ROOT_USER": ACCESS_KEY,
        "MINIO_ROOT_PASSWORD": SECRET_KEY,
        # Lets a drive be a directory of the file system that also holds /.
        "MINIO_CI_CD": "1",
        # No look-ups of new releases, no web console beside the server.
        "MINIO_UPDATE": "off",
        "MINIO_BROWSER": "off",
        "MINIO_CALLHOME_ENABLE": "off",
    }
    if options.parity is not None:
        values["MINIO_STORAGE_CLASS_STANDARD"] = f"EC:{options.parity}"
    if sets.size != set_size(sets.nodes * sets.drives):
        # What it chooses of a pattern, and not of a list that is written out.
        values["MINIO_ERASURE_SET_DRIVE_COUNT"] = str(sets.size)
    return values


def _check_direct_io(drive: Path) -> None:
    """Raise MachineError when the nodes' file system lacks O_DIRECT."""
    trial = drive / ".direct-io"
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
