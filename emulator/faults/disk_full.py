"""Disk full: what a node writes is refused with ENOSPC."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar

from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.emulator.machine import available_memory_bytes
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.units import Size
from wanlat.topologies.wording import in_words, listing, show
from wanlat.topologies.yaml_model import within

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

_SMALLEST = Size(8 << 20)
_WHY = ": less is too little for a store to start in"
_CHUNK_BYTES = 1 << 20
_LONGEST_S = 20.0
_PROOF = bytes(1 << 16)


class DiskFull(Fault):
    """The nodes' directories are file systems of ``size``, which something else fills up.

    It fills them once: what the store itself frees meanwhile, it may use again.
    """

    kind, affects = "disk-full", "disks"
    is_exclusive: ClassVar[bool] = True

    class Settings(Fault.Settings):
        """The size of the file systems."""

        size: Annotated[Size, within(_SMALLEST, None, _WHY)] = Size(256 << 20)
        """of the node's file system, from the beginning of the drill"""

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self.volumes = dict.fromkeys(self.nodes, self.settings.size.bytes)
        self._ballast: dict[str, IO[bytes]] = {}
        """What takes the space, by nodes: files without a name.

        Its programs can neither see nor remove such a file, and it is gone when this process is,
        however it ends (O_TMPFILE, open(2)).
        """

    @property
    def detail(self) -> str:
        """How large the disk is."""
        return f"all {self.settings.size} of its disk taken"

    def check(self, lab: Lab) -> None:
        """Raise UserError for a node without a volume, MachineError without the memory."""
        unlimited = [node for node in self.nodes if node not in lab.volumes]
        if unlimited:
            raise UserError(
                f"The fault {show(self.kind)}: the directory of {listing(unlimited)} is no file "
                "system of limited size, and the disk of this machine is not to be filled. Make "
                "the lab with Lab(..., volumes={NODE: BYTES})."
            )
        needed = sum(lab.volumes[node] for node in self.nodes)
        free = available_memory_bytes()
        if free is not None and free < needed:
            raise MachineError(
                f"The fault {show(self.kind)} fills {needed >> 20} MiB of memory (a node's volume "
                f"is a tmpfs), and {free >> 20} MiB are free. Give it a smaller `size`."
            )

    def begin(self, scene: Scene) -> int:
        """Fill the volumes; return the instant at which the last one was full."""
        for node in self.nodes:
            try:
                self._ballast[node] = _unnamed(scene.lab.node(node).host_directory)
                _fill(self._ballast[node].fileno())
            except (OSError, TimeoutError) as error:
                raise FaultFailed(
                    f"The disk of {node} could not be filled: {in_words(error)}"
                ) from error
        return time.monotonic_ns()

    def end(self, scene: Scene) -> int:
        """Give the space back; return the instant at which all could be written on again."""
        failures = []
        while self._ballast:
            node, ballast = self._ballast.popitem()
            try:
                with ballast:
                    ballast.truncate(0)  # a process that is being started may hold it open, too
                with _unnamed(scene.lab.node(node).host_directory) as proof:
                    proof.write(_PROOF)
            except OSError as error:
                failures.append(
                    f"On the disk of {node} nothing can be written although it was given back "
                    f"what the fault had taken: {in_words(error)}. {scene.lab.fate}".rstrip()
                )
        if failures:
            raise FaultFailed(" ".join(failures))
        return time.monotonic_ns()


def _unnamed(directory: Path) -> IO[bytes]:
    fd = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    return os.fdopen(fd, "wb")


def _fill(fd: int) -> None:
    """Write until the kernel refuses all of it; before that it takes the part that fits.

    Raises OSError, TimeoutError when others free space as fast as it is taken.
    """
    deadline = time.monotonic() + _LONGEST_S
    try:
        while time.monotonic() < deadline:
            os.write(fd, bytes(_CHUNK_BYTES))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    else:
        raise TimeoutError(f"it is not full after {_LONGEST_S:.0f} s: others free what is taken")
