"""Disk full: what a node writes is refused with ENOSPC."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from wanlat.emulator.faults import ballast, naming
from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Fault, FaultFailed, Roles, Scene
from wanlat.emulator.machine import available_memory_bytes
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import QuantityError, Size
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

_DEFAULT = Size(256 << 20)
_SMALLEST = Size(8 << 20)


class DiskFull(Fault):
    """The nodes' directories are file systems of ``size``, which something else fills up.

    It fills them once: what the store itself frees meanwhile, it may use again.
    """

    kind = "disk-full"

    def __init__(self, nodes: tuple[str, ...], size: Size) -> None:
        self.size = size
        self._nodes = nodes
        self._filled: list[str] = []

    @classmethod
    def parse(cls, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """``disk-full: T {size: 64MiB}``. Raises UserError."""
        values = written.read(cls.kind, settings, optional={"size": _size})
        return cls(naming.nodes(cls.kind, target, plan, roles), values.get("size", _DEFAULT))

    @property
    def subject(self) -> str:
        """Whose disk."""
        return ", ".join(self._nodes)

    @property
    def detail(self) -> str:
        """How large the disk is."""
        return f"all {self.size} of its disk taken"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes whose disk is full."""
        return self._nodes

    @property
    def volumes(self) -> Mapping[str, int]:
        """The size of each node's directory, in bytes."""
        return dict.fromkeys(self._nodes, self.size.bytes)

    def check(self, lab: Lab) -> None:
        """Raise UserError for a node without a volume, MachineError without the memory."""
        unlimited = [node for node in self._nodes if node not in lab.volumes]
        if unlimited:
            raise UserError(
                f"The fault {show(self.kind)}: the directory of {listing(unlimited)} is no file "
                "system of limited size, and the disk of this machine is not to be filled. Make "
                "the lab with Lab(..., volumes={NODE: BYTES})."
            )
        needed = sum(lab.volumes[node] for node in self._nodes)
        free = available_memory_bytes()
        if free is not None and free < needed:
            raise MachineError(
                f"The fault {show(self.kind)} fills {needed >> 20} MiB of memory (a node's volume "
                f"is a tmpfs), and {free >> 20} MiB are free. Give it a smaller `size`."
            )

    def begin(self, scene: Scene) -> int:
        """Fill the volumes; return the instant at which the last one was full."""
        instant = time.monotonic_ns()
        for node in self._nodes:
            self._filled.append(node)
            instant = ballast.fill(scene.lab, node)
        return instant

    def end(self, scene: Scene) -> int:
        """Give the space back; return the instant at which all could be written on again."""
        instant, failures = time.monotonic_ns(), []
        while self._filled:
            try:
                instant = ballast.release(scene.lab, self._filled.pop())
            except FaultFailed as error:
                failures.append(str(error))
        if failures:
            raise FaultFailed(" ".join(failures))
        return instant


def _size(value: Any) -> Size:
    size = Size.parse(value)
    if size < _SMALLEST:
        raise QuantityError(
            f"{show(value)} is too little for a store to start in; at least {_SMALLEST}"
        )
    return size
