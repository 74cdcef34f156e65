"""A lab: a topology made real, for as long as a ``with`` block lasts.

with Lab(resolve(load("five-sites"))) as lab:
    lab.spawn("n1", ["/usr/bin/ping", "-c1", lab.node("n2").address]).wait(5)
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Literal, Self

from wanlat.emulator import disk
from wanlat.emulator.backends import realtime
from wanlat.emulator.binaries import binary
from wanlat.emulator.capture import Capture
from wanlat.emulator.capture.captures import Captures
from wanlat.emulator.impairments import Impairments
from wanlat.emulator.links import Direction
from wanlat.emulator.owner import Owner
from wanlat.emulator.programs import LabNode, Programs
from wanlat.emulator.sandbox import LAB_DIRECTORY
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Size

__all__ = ["BackendName", "Lab", "LabNode", "Storage"]

BackendName = Literal["netem", "wire"]
Storage = Literal["memory", "disk"]

_SMALLEST_VOLUME_BYTES = 1 << 20


class Lab(Programs, Impairments, Captures):
    """A running topology. Use as a context manager; everything in it ends with the block.

    Arguments: the resolved plan; ``backend`` (None: netem where the kernel has it, else wire);
    ``seed`` of the impairments' random draws; ``storage``, where nodes' directories are
    (``memory``: a tmpfs of the lab; ``disk``: the user's cache directory); ``splice="all"`` puts
     LAN links without impairments through the backend too, so that they can be changed
    while the lab runs; ``journal``, a file to which every change of a link is written as a line
    of JSON, besides ``lab.journal``; ``capture`` records every packet that crosses a WAN link;
    ``volumes``, the size in bytes of some nodes' directories, each a file system of its own then
    (a tmpfs, whatever ``storage`` says), which can be full.

    Raises MachineError when the machine cannot hold a lab, UserError for unusable arguments.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        backend: BackendName | None = None,
        seed: int = 1,
        storage: Storage = "memory",
        splice: Literal["needed", "all"] = "needed",
        journal: str | os.PathLike[str] | None = None,
        capture: Capture | None = None,
        volumes: Mapping[str, int] | None = None,
    ) -> None:
        Programs.__init__(self, plan)
        Impairments.__init__(self, plan, Path(journal) if journal is not None else None)
        Captures.__init__(self, plan, capture)
        self.seed = seed
        self.storage = storage
        self.volumes = dict(volumes or {})
        self._check_volumes()
        self._requested_backend = backend
        self._backend: str | None = None
        self._splice = splice
        self._disk: tuple[Path, int] | None = None
        """The lab's own directory on disk, and its lock."""
        self._real_time: realtime.RealTime | None = None

    def __enter__(self) -> Self:
        wire = None
        if self._requested_backend != "netem":
            try:
                wire = binary("wire")
            except MachineError:
                if self._requested_backend == "wire":
                    raise
        if self.storage == "disk":
            self._disk = disk.make_directory()
        try:
            self._owner = Owner(self._disk[0] if self._disk else None)
            self._backend = self._ask(
                "build",
                self.plan,
                self._requested_backend,
                wire,
                self.seed,
                self._splice == "all",
            )[0]
            if self._backend == "wire":
                self._real_time = realtime.for_wire(self.supervisor_pid)
            self._make_nodes()
            self._start_capture()
            self.journal.begin(time.monotonic_ns(), self.plan.name, self.backend)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(hurry=kind is not None)

    def close(self) -> None:
        """End the lab and everything in it. Safe to repeat.

        Returns once every process has ended and the kernel has removed every interface and
        namespace; the latter it waits for half a second at most, since a socket of the lab's
        that is still open keeps its namespace.
        """
        self._close(hurry=False)

    def _close(self, *, hurry: bool) -> None:
        try:
            self._end_capture()
        finally:
            self._let_go(hurry)

    def _let_go(self, hurry: bool) -> None:
        if self._real_time is not None:
            self._real_time.close()
        if self._owner is not None:
            self._owner.close(hurry=hurry)
        self.journal.close()
        if self._disk is not None:
            directory, lock = self._disk
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)
            self._disk = None

    def abort(self, why: str) -> None:
        """End everything in the lab at once, from any thread, and say why from then on.

        Whatever waits for the lab or a process of it gets an error with ``why``. The lab must
        still be closed.
        """
        if self._owner is not None:
            self._owner.abort(why)

    def check(self) -> None:
        """Raise MachineError if the lab, or what emulates its links, has ended."""
        if self.fate:
            raise MachineError(f"The lab has ended. {self.fate}")

    def is_cable(self, direction: Direction) -> bool:
        """Return whether a direction is of a plain cable, which carries packets unchanged.

        A LAN link without impairments is one, unless the lab is made with ``splice="all"``.
        """
        if direction.kind == "wan" or self._splice == "all":
            return False
        return all(self._requested[each].is_noop for each in (direction, direction.opposite))

    def _check_volumes(self) -> None:
        for name, size_bytes in self.volumes.items():
            self.plan.node(name)
            if size_bytes < _SMALLEST_VOLUME_BYTES:
                raise UserError(
                    f"The volume of node {name} is to have {size_bytes} bytes; no store fits into "
                    f"less than {Size(_SMALLEST_VOLUME_BYTES)}."
                )

    def _make_nodes(self) -> None:
        inside = PurePosixPath(self._disk[0] if self._disk else LAB_DIRECTORY, "nodes")
        for node in self.plan.nodes:
            directory = inside / node.name
            outside = Path(f"/proc/{self.supervisor_pid}/root{directory}")
            if node.name not in self.volumes and self._disk:
                outside = Path(directory)
            outside.mkdir(parents=True, exist_ok=True)
            if node.name in self.volumes:
                self._ask("mount_volume", str(directory), self.volumes[node.name])
            self._nodes[node.name] = LabNode(node.name, node.site, node.address, directory, outside)

    @property
    def backend(self) -> str:
        """Return the name of the backend in use."""
        assert self._backend is not None, "the lab is not up"
        return self._backend

    @property
    def supervisor_pid(self) -> int:
        """Return the process id, on the host, of the lab's first process."""
        assert self._owner is not None, "the lab is not up"
        return self._owner.supervisor_pid
