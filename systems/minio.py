"""MinIO: objects erasure-coded over the drives of all nodes, one drive a node here.

Sources: MinIO's code at the pinned version (cmd/endpoint-ellipses.go for set sizes,
internal/config/storageclass for parity, cmd/healthcheck-handler.go, cmd/xl-storage.go).
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from systems.ask import ask
from systems.base import Binary, Cluster, NodeProcess, S3Target, System
from systems.binary import first_line, from_cache, from_setting
from systems.errors import SystemMissing
from systems.gobuildinfo import main_module_version
from systems.least import S3_READS, S3_WRITES, Answers, Least, to_meet
from systems.options import Options
from systems.recipe import GoInstall
from systems.secrets import derive
from systems.tools import numbers
from systems.wait import Wait
from topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from emulator.lab import Lab
    from topologies.resolve import Plan

PORT = 9000
REGION = "us-east-1"  # MinIO's default

_ACCESS_KEY = "wanlat"
_SECRET_KEY = derive("minio root password", 40)
_SMALLEST_SET, _LARGEST_SET = 2, 16
_FEW_NODES = 16
_READY_BUCKET = "wanlat-ready"
_TMPFS_DIRECT_IO = (6, 6)  # "tmpfs: trivial support for direct IO", Linux 6.6


class MinioOptions(Options):
    """Options of MinIO."""

    parity: int | None = Field(default=None, ge=0)
    """Drives of an erasure set that may be lost; default: MinIO's own, by the set's size."""


def set_size(nodes: int) -> int | None:
    """Return how many drives MinIO puts into an erasure set; None when it refuses the number."""
    if nodes == 1:
        return 1
    sizes = [size for size in range(_SMALLEST_SET, _LARGEST_SET + 1) if nodes % size == 0]
    return max(sizes, default=None)


def default_parity(drives: int) -> int:
    """Return MinIO's parity for an erasure set (DefaultParityBlocks)."""
    if drives == 1:
        return 0
    if drives <= 3:
        return 1
    if drives <= 5:
        return 2
    return 3 if drives <= 7 else 4


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


class Minio(System[MinioOptions]):
    """MinIO as a system under test."""

    name = "minio"
    title = "MinIO"
    origin = "made by MinIO, Inc., from its Go module; archived by its makers in 2026"
    max_nodes = 256
    recipe = GoInstall(
        name="minio",
        version="v0.0.0-20260212201848-7aac2a2c5b7c",
        binary="minio",
        read_version=read_version,
        minutes=3,
        disk_bytes=1_000_000_000,
        module="github.com/minio/minio",
    )
    options_model = MinioOptions

    def find(self) -> Binary:
        """Return the binary that the environment names, else the installed one."""
        found = from_setting(self.name, read_version) or from_cache(self.recipe)
        return Binary(found.path, found.version, found.sha256, label(found.version))

    def check_topology(self, plan: Plan, options: MinioOptions) -> None:
        """The number of nodes must split into sets of equal size, and the parity must fit one."""
        super().check_topology(plan, options)
        nodes = len(plan.nodes)
        drives = set_size(nodes)
        if drives is None:
            raise UserError(
                f"MinIO cannot run on the {nodes} nodes of topology {plan.name}: with more than "
                f"{_FEW_NODES}, their number must be divisible by a number from {_SMALLEST_SET} "
                f"to {_LARGEST_SET}, the drives of an erasure set."
            )
        if options.parity is not None and options.parity > drives // 2:
            raise UserError(
                f"MinIO with parity {options.parity} does not fit topology {plan.name}: an "
                f"erasure set has {drives} drives there, and at most half of them, "
                f"{drives // 2}, may be parity."
            )

    def effective(self, plan: Plan, options: MinioOptions) -> dict[str, Any]:
        """Fill in the parity, and tell the size of an erasure set."""
        drives = set_size(len(plan.nodes)) or 0
        parity = default_parity(drives) if options.parity is None else options.parity
        return {"parity": parity, "drives_per_set": drives}

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
        effective = self.effective(plan, options)
        drives, parity = effective["drives_per_set"], effective["parity"]
        data = drives - parity
        written = data + 1 if data == parity else data
        if endpoint in S3_WRITES:
            needed = written
        else:
            met = to_meet(written, drives)
            needed = max(met, data) if endpoint == "GetObject" else met
        # In the order of the command line (GetAllSets, where there are no ellipses).
        sets = [nodes[begin : begin + drives] for begin in range(0, len(nodes), drives)]
        one = Answers.among(plan, target, needed, sets, "drive")
        if endpoint == "ListObjects":
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
        places = {node: self.home(node, "drive") for node in lab.nodes}
        if len(places) == 1:
            drives = [str(inside) for inside, _ in places.values()]
        else:
            _check_direct_io(places[lab.nodes[0]][1])
            # Written out one by one: two patterns in braces in one argument would multiply.
            drives = [f"http://{n.address}:{PORT}{inside}" for n, (inside, _) in places.items()]
        argv = [str(binary.path), "server", "--address", f":{PORT}", *drives]
        processes = [
            NodeProcess(
                self.title, node.name, argv, environment(options), self.log(log_dir, node.name)
            )
            for node in lab.nodes
        ]
        effective = self.effective(lab.plan, options)
        outside = [outside for _, outside in places.values()]
        return MinioCluster(self.name, lab, binary, effective, processes, outside)


def environment(options: MinioOptions) -> dict[str, str]:
    """Return the environment of every node."""
    values = {
        "MINIO_ROOT_USER": _ACCESS_KEY,
        "MINIO_ROOT_PASSWORD": _SECRET_KEY,
        # Lets a drive be a directory of the file system that also holds /.
        "MINIO_CI_CD": "1",
        # No look-ups of new releases, no web console beside the server.
        "MINIO_UPDATE": "off",
        "MINIO_BROWSER": "off",
        "MINIO_CALLHOME_ENABLE": "off",
    }
    if options.parity is not None:
        values["MINIO_STORAGE_CLASS_STANDARD"] = f"EC:{options.parity}"
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


class MinioCluster(Cluster):
    """A running MinIO cluster."""

    def __init__(
        self,
        system: str,
        lab: Lab,
        binary: Binary,
        options: Mapping[str, Any],
        nodes: Iterable[NodeProcess],
        drives: Sequence[Path],
    ) -> None:
        super().__init__(system, lab, binary, options, nodes)
        self._drives = dict(zip(self.nodes, drives, strict=True))
        self._rounds = count(1)

    def s3(self, node: str) -> S3Target:
        """Every node serves S3 with the root credentials."""
        return S3Target(self.lab.node(node).address, PORT, REGION, _ACCESS_KEY, _SECRET_KEY)

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
        drives, parity = self.options["drives_per_set"], self.options["parity"]
        data = drives - parity
        lost = len(self.nodes) - len(expected)
        return bool(drives - lost >= (data + 1 if data == parity else data))

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
        held = sum((self._drives[node] / _READY_BUCKET).exists() for node in expected)
        if refused or held == len(expected):
            return refused
        # Made while a drive was out of reach, it is never made there: what is put into it later
        # does not lie on that drive. So once more from the beginning.
        return self._asks(name, "DELETE", gone=True) or f"it is on {held} of {len(expected)} drives"

    def _reaches_drives(self, name: str, expected: Sequence[str], number: int) -> str | None:
        size = self.options["drives_per_set"]
        sets = len(self._drives) // size
        wanted = size - (len(self.nodes) - len(expected))
        # An object lies in one set, which its key decides: with several, a few more are tried.
        for index in range(1 if sets == 1 else 4 * sets):
            # Another key each time: a drive that was away keeps what was removed meanwhile.
            key = f"{name}-{number}-{index}"
            refused = self._asks(name, "PUT", key)
            if refused:
                return refused
            held = sum((self._drives[node] / _READY_BUCKET / key).exists() for node in expected)
            if held < wanted:
                return f"what it writes lies on {held} of {wanted} drives"
        return None
