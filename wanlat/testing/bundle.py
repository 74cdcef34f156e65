"""The directory that a test leaves: a bundle as every run's, made while the test runs."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.lab import Lab
from wanlat.experiments.session import (
    LabSetup,
    Recording,
    Session,
    Setup,
    manifest_of,
    system_entry,
)
from wanlat.systems.base import Cluster
from wanlat.topologies.model import Topology


class TestBundle:
    """One test's bundle. Its directory is made when it is first needed.

    ``wanlat report DIRECTORY`` reads it like any other.
    """

    __test__ = False  # pytest takes a class of such a name for tests

    def __init__(self, directory: Path, test: str, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        self._test = test
        self._recording: Recording | None = None

    @property
    def exists(self) -> bool:
        """Whether there is anything to keep."""
        return self.directory.exists()

    @property
    def logs(self) -> Path:
        """The directory of the stores' logs."""
        return self._open().logs.absolute()

    def session(self, topology: Topology, setup: LabSetup) -> Session:
        """Say what network it is; return what makes it, and notes what becomes of it."""
        self._open().write_manifest(topology=topology.to_dict(), storage=setup.storage)
        assert self._recording is not None
        return Session(self._recording, setup)

    def start(self, lab: Lab, setup: Setup, ready_s: float) -> Cluster:
        """Start a store on the network, and say which. Raises as `System.start`."""
        self._open()
        assert self._recording is not None
        cluster = Session(self._recording, setup).start(lab, setup, ready_s)
        entry = {**system_entry(setup, cluster.api), "endpoints": []}
        self._open().write_manifest(systems=[entry])
        return cluster

    def sample(self, row: Mapping[str, Any]) -> None:
        """Append a sample."""
        self._open().sample(row)

    def event(self, kind: str, subject: str, detail: str = "", t_ns: int | None = None) -> None:
        """Note something that happened now, or at ``t_ns`` (CLOCK_MONOTONIC)."""
        self._open().event(kind, subject, detail, t_ns)

    def close(self, status: str, reason: str | None) -> None:
        """Write how the test ended: ``complete`` or ``failed``."""
        if self._recording is not None:
            self._recording.bundle.close(status, reason)
            self._recording = None

    def remove(self) -> None:
        """Leave nothing behind; nor the directory that it is in, where that is empty."""
        shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # other tests' bundles are in it
            self.directory.parent.rmdir()

    def _open(self) -> BundleWriter:
        if self._recording is None:
            manifest = manifest_of(
                "study",
                topology=None,
                seed=self.seed,
                storage="memory",
                places={},
                systems=(),
                own={"study": {"name": self._test}},
            )
            manifest["command"] = ["pytest", self._test]
            self._recording = Recording(self.directory, manifest)
        return self._recording.bundle
