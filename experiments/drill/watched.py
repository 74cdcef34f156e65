"""The services of a cluster, with their ends and beginnings on record."""

from __future__ import annotations

import json
import signal
import threading
from typing import TYPE_CHECKING

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.process import how_it_ended

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process
    from wanlat.systems.nodes import NodeProcess


class Watched:
    """A node's service that faults may end and start; the bundle is told what it does.

    That a process starts is the event ``started``; that one ends which nobody ended is ``died``.
    """

    def __init__(self, service: NodeProcess, bundle: BundleWriter) -> None:
        self._service = service
        self._bundle = bundle
        self._lock = threading.Lock()
        self._ended_on_purpose: set[int] = set()
        if service.process is not None:
            self._watch(service.process)

    @property
    def node(self) -> str:
        """The node's name."""
        return self._service.node

    @property
    def process(self) -> Process | None:
        """The process that was started last."""
        return self._service.process

    @property
    def is_up(self) -> bool:
        """Whether there is a process."""
        return self.process is not None and self.process.poll() is None

    def start(self, lab: Lab) -> None:
        """Start it anew."""
        self._service.start(lab)
        process = self._service.process
        assert process is not None
        self._bundle.event("started", self.node)
        self._watch(process)

    def stop(self, how: int = signal.SIGKILL) -> None:
        """End it by a signal, on purpose."""
        with self._lock:
            if self.process is not None:
                self._ended_on_purpose.add(id(self.process))
        self._service.stop(how)

    def _watch(self, process: Process) -> None:
        process.when_ended(self._note_end)

    def _note_end(self, process: Process) -> None:
        code = process.poll()
        with self._lock:
            is_surprise = id(process) not in self._ended_on_purpose
        if code is None or not is_surprise:  # None: it ended with the lab
            return
        detail = json.dumps({"exit_code": code, "how": how_it_ended(code), "pid": process.pid})
        self._bundle.event("died", self.node, detail, process.ended_ns)
