"""The directory that a test leaves: a bundle as every run's, made while the test runs."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wanlat.bundle.write import BundleWriter, now_iso
from wanlat.emulator.lab import Lab
from wanlat.experiments import machine_facts
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
        self._writer: BundleWriter | None = None

    @property
    def exists(self) -> bool:
        """Whether there is anything to keep."""
        return self.directory.exists()

    @property
    def logs(self) -> Path:
        """The directory of the stores' logs."""
        return self._open().logs.absolute()

    def begin(self, topology: Topology, lab: Lab) -> None:
        """Say what network it is."""
        self._open().write_manifest(
            topology=topology.to_dict(),
            backend=lab.backend,
            tcp=machine_facts.tcp(lab, lab.nodes[0].name),
        )

    def runs(self, cluster: Cluster) -> None:
        """Say what store runs on it."""
        system = {
            "name": cluster.system,
            "version": cluster.version,
            "label": cluster.label,
            "sha256": cluster.sha256,
            "api": cluster.api,
            "endpoints": [],
            "options": cluster.options,
        }
        self._open().write_manifest(systems=[system])

    def calibrated(self, document: Mapping[str, Any]) -> None:
        """Keep what calibration found."""
        self._open().write_json("calibration.json", document)

    def sample(self, row: Mapping[str, Any]) -> None:
        """Append a sample."""
        self._open().sample(row)

    def event(self, kind: str, subject: str, detail: str = "", t_ns: int | None = None) -> None:
        """Note something that happened now, or at ``t_ns`` (CLOCK_MONOTONIC)."""
        self._open().event(kind, subject, detail, t_ns)

    def close(self, status: str, reason: str | None) -> None:
        """Write how the test ended: ``complete`` or ``failed``."""
        if self._writer is not None:
            self._writer.close(status, reason)
            self._writer = None

    def remove(self) -> None:
        """Leave nothing behind; nor the directory that it is in, where that is empty."""
        shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # other tests' bundles are in it
            self.directory.parent.rmdir()

    def _open(self) -> BundleWriter:
        if self._writer is None:
            self._writer = BundleWriter.create(
                self.directory,
                {
                    "kind": "study",
                    "status": "running",
                    "reason": None,
                    "warnings": [],
                    "study": {"name": self._test},
                    "topology": None,
                    "seed": self.seed,
                    "command": ["pytest", self._test],
                    "started": now_iso(),
                    "ended": None,
                    **machine_facts.collect(),
                    "backend": None,
                    "systems": [],
                    "tcp": None,
                },
            )
        return self._writer
