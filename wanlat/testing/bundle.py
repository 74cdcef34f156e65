"""The directory that a test leaves: a bundle as every run's, made while the test runs."""

from __future__ import annotations

import contextlib
import shutil
from functools import cached_property
from pathlib import Path

from wanlat.bundle.write import BundleWriter
from wanlat.emulator.lab import Lab
from wanlat.experiments.manifest import manifest_of
from wanlat.experiments.session import (
    LabSetup,
    Recording,
    Session,
    Setup,
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
        self._test = test
        self._seed = seed

    @cached_property
    def _recording(self) -> Recording:
        manifest = manifest_of(
            "study",
            topology=None,
            seed=self._seed,
            storage="memory",
            places={},
            systems=(),
            own={"study": {"name": self._test}},
        )
        return Recording(self.directory, {**manifest, "command": ["pytest", self._test]})

    @property
    def writer(self) -> BundleWriter:
        """What appends samples and events to it."""
        return self._recording.bundle

    def session(self, topology: Topology, setup: LabSetup) -> Session:
        """Say what network it is; return what makes it, and notes what becomes of it."""
        self.writer.write_manifest(topology=topology.to_dict(), storage=setup.storage)
        return Session(self._recording, setup)

    def start(self, lab: Lab, setup: Setup, ready_s: float) -> Cluster:
        """Start a store on the network, and say which. Raises as `System.start`."""
        cluster = Session(self._recording, setup).start(lab, setup, ready_s)
        self.writer.write_manifest(systems=[{**system_entry(setup, cluster.api), "endpoints": []}])
        return cluster

    def close(self, reason: str | None, *, keep: bool) -> None:
        """Write how the test ended, failed for a reason or complete; ``keep``: or leave nothing."""
        if "_recording" in self.__dict__:
            self.writer.close("failed" if reason else "complete", reason)
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
            with contextlib.suppress(OSError):  # other tests' bundles are in it
                self.directory.parent.rmdir()
