"""A Dask scheduler and its workers, processes of the test's own, and runs that they measure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.experiments.commands import command, samples_of
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import points
from tests.processes import children


class Cluster:
    """A scheduler on loopback, and the workers that were started, by their names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._file = directory / "scheduler.json"
        about = ("--scheduler-file", str(self._file))
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", *about)
        await_that(lambda: self._file.is_file() and self._file.read_text().endswith("}"))
        self.address = str(json.loads(self._file.read_text())["address"])

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self.directory.joinpath(f"{kind}-{len(self.workers)}.log").open("wb") as log:
            argv = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard"]
            return subprocess.Popen([*argv, *arguments], stdout=log, stderr=log)

    def worker(self, name: str, *, machine: bool = True) -> None:
        """Start a worker, with the resource or without."""
        place = ("--name", name, "--local-directory", str(self.directory / name))
        resources = ("--resources", "machine=1") if machine else ()
        one = ("--nthreads", "1", "--no-nanny")
        self.workers[name] = self._start("worker", self.address, *place, *one, *resources)

    def close(self) -> None:
        """End all of it."""
        for each in (*self.workers.values(), self.scheduler):
            each.kill()
            each.wait()

    def run(self, file: Path, bundle: Path) -> subprocess.Popen[str]:
        """Start a run of a study that its workers measure."""
        where = ("--engine", "dask", "--scheduler", self.address)
        argv = command("run", str(file), "--out", str(bundle), *where)
        return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def measuring(self) -> list[str]:
        """The names of the workers that are in the middle of a point."""
        return [
            name
            for name in self.workers
            for raw in self.directory.glob(f"{name}/**/samples.jsonl")
            if raw.read_bytes().count(b"\n") > 10
        ]

    def commands(self) -> list[int]:
        """The processes that measure for its workers."""
        return children(*(each.pid for each in self.workers.values()))


@contextmanager
def cluster_of(directory: Path, *workers: str) -> Iterator[Cluster]:
    """Yield a cluster with workers that have the resource."""
    directory.mkdir()
    cluster = Cluster(directory)
    try:
        for name in workers:
            cluster.worker(name)
        yield cluster
    finally:
        cluster.close()


def measured(bundle: Path) -> list[tuple[int, int]]:
    """When each point was measured, from its first request to its last, in order."""
    spans = []
    for point in points(bundle):
        rows = samples_of(bundle / point["directory"])
        spans.append((int(rows.start_ns.min()), int((rows.start_ns + rows.total_ns).max())))
    return sorted(spans)
