"""Disk full: what a node writes is refused with ENOSPC."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from wanlat.emulator.capacity import available_memory_bytes
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.units import Size
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import within

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

_SMALLEST = Size(8 << 20)
_WHY = ": less is too little for a store to start in"
_CHUNKS_BYTES = (1 << 20, 4096)  # the last: a block, so that none is left
_LONGEST_S = 20.0
_PROOF = bytes(1 << 16)


class DiskFull(Fault):
    """The nodes' directories are file systems of ``size``, which something else fills up.

    It fills them once: what the store itself frees meanwhile, it may use again.
    """

    kind = "disk-full"

    class Settings(Fault.Settings):
        """The size of the file systems."""

        size: Annotated[Size, within(_SMALLEST, None, _WHY)] = Size(256 << 20)

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self.volumes = dict.fromkeys(self.nodes, self.settings.size.bytes)
        self._filled: list[str] = []

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
        instant = time.monotonic_ns()
        for node in self.nodes:
            self._filled.append(node)
            with scene.lock:
                ballast = scene.shared.setdefault(
                    (self.kind, node), Ballast(scene.lab.node(node).host_directory)
                )
                ballast.wanted += 1
                if ballast.wanted > 1:
                    continue
                try:
                    instant = ballast.fill()
                except (OSError, TimeoutError) as error:
                    raise FaultFailed(f"The disk of {node} could not be filled: {error}") from error
        return instant

    def end(self, scene: Scene) -> int:
        """Give the space back; return the instant at which all could be written on again."""
        instant, failures = time.monotonic_ns(), []
        while self._filled:
            node = self._filled.pop()
            with scene.lock:
                ballast = scene.shared[self.kind, node]
                ballast.wanted -= 1
                if ballast.wanted:
                    continue
                del scene.shared[self.kind, node]
                try:
                    instant = ballast.release()
                except OSError as error:
                    failures.append(
                        f"On the disk of {node} nothing can be written although it was given back "
                        f"what the fault had taken: {error}. {scene.lab.fate}".rstrip()
                    )
        if failures:
            raise FaultFailed(" ".join(failures))
        return instant


class Ballast:
    """A file without a name that takes all the space that the file system of a directory has left.

    Nobody on it can see the file or remove it, and it is gone when this process is, however it
    ends (O_TMPFILE, open(2)). ``wanted``: how many faults want it there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None
        self.wanted = 0

    def fill(self) -> int:
        """Take all that is left; return the instant at which the kernel said that nothing was.

        Raises OSError, TimeoutError when others free space as fast as it is taken.
        """
        self._fd = _unnamed(self._directory)
        deadline = time.monotonic() + _LONGEST_S
        for chunk_bytes in _CHUNKS_BYTES:
            _write_all(self._fd, bytes(chunk_bytes), deadline)
        return time.monotonic_ns()

    def release(self) -> int:
        """Give it all back; return the instant at which it could be written on again.

        Raises OSError, with ENOSPC when others have taken what was given back.
        """
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                os.ftruncate(fd, 0)  # a process that is just being started may hold it open, too
            finally:
                os.close(fd)
        proof = _unnamed(self._directory)
        try:
            left = memoryview(_PROOF)
            while left:
                left = left[os.write(proof, left) :]
            return time.monotonic_ns()
        finally:
            os.close(proof)


def _unnamed(directory: Path) -> int:
    return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _write_all(fd: int, chunk: bytes, deadline: float) -> None:
    """Write chunks until the kernel refuses one whole."""
    while time.monotonic() < deadline:
        try:
            os.write(fd, chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
    raise TimeoutError(f"it is not full after {_LONGEST_S:.0f} s: others free what is taken")
