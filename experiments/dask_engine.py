"""Where Dask runs points: on this machine, over SSH, in jobs of Slurm, or on any scheduler's.

Dask carries data: the manifest of a bundle and the name of a point go to a worker that has the
resource `machine`. `measure`, of the wanlat that is installed there, runs the command that `--jobs`
runs (`experiments.workers`), and what comes back is the point's bundle, with its SHA-256. So no
file system is shared, and nothing of ours is pickled. A worker that dies leaves its point to
another one; how often, Dask limits (`distributed.scheduler.allowed-failures`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import sys
import threading
import time
import uuid
import zipfile
from asyncio import CancelledError as Unscheduled
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wanlat.bundle.write import is_full
from wanlat.emulator.doctor import demand_lab
from wanlat.emulator.interpreter import safe_path
from wanlat.experiments.matrix_points import PointEnded
from wanlat.experiments.session import Report
from wanlat.experiments.workers import ADJUST_INTERVAL_S, WITH_ITS_RUN, Engine, Runner, Worker
from wanlat.systems import registry
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.version import VERSION
from wanlat.topologies.wording import in_words

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

RESOURCE = {"machine": 1}
"""A host has one: on one machine two points at once would disturb each other."""
START = "dask worker {} --nthreads 1 --resources machine=1"
_MOST_WORKERS = 1024
_LATEST_END_S = 1.0
"""So long a point goes on that is no longer wanted."""
_MOST_BYTES = 64 << 30
"""Of a point that comes from a worker, once it is unpacked."""


def measure(manifest: str, point: str, topic: str) -> dict[str, Any]:
    """Run a point on this Dask worker; return how it ended, and its bundle.

    Raises MachineError where the command ended without a word.
    """
    from distributed import get_worker

    here, over = get_worker(), threading.Event()
    key = here.get_current_task()

    def publish(*words: object) -> None:
        here.log_event(topic, {"point": point, "progress": words})

    def end_where_unwanted() -> None:
        while not over.wait(_LATEST_END_S):
            task = here.state.tasks.get(key)
            if task is None or task.state == "cancelled" or here.status.name.startswith("clos"):
                worker.close()
                return

    publish(f"begins on {platform.node()}")
    # (What a killed worker leaves there, Dask's next one removes.)
    with TemporaryDirectory(dir=here.local_directory) as place:
        bundle, worker = Path(place), Worker()
        threading.Thread(target=end_where_unwanted, daemon=True).start()
        try:
            for path in json.loads(manifest).get("adopted", {}).values():  # the client's own words
                registry.adopt(path)
            bundle.joinpath("manifest.json").write_text(manifest, "utf-8")
            bundle.joinpath("points").mkdir()
            ended = worker.run(bundle, point, publish)
        finally:
            over.set()
            worker.close()
        there = {"host": platform.node(), "place": place}
        return {**there, "ended": asdict(ended), **packed(bundle / "points")}


def packed(directory: Path) -> dict[str, Any]:
    """Return all that a directory holds as bytes, with their SHA-256."""
    with TemporaryDirectory(dir=directory.parent) as place:
        whole = Path(shutil.make_archive(f"{place}/bundle", "zip", directory)).read_bytes()
    return {"bundle": whole, "sha256": hashlib.sha256(whole).hexdigest()}


def check_host(version: str) -> None:
    """Raise MachineError where this Dask worker's host can measure no point of that version."""
    if version != VERSION:
        raise MachineError(f"it has wanlat {VERSION}, and the run is of {version}")
    demand_lab()


@contextmanager
def dask_engine(scheduler: str, report: Report) -> Iterator[DaskEngine]:
    """Yield the workers of a scheduler, or of a cluster that is made for that long.

    ``scheduler``: as `--scheduler`. Raises UserError, and MachineError where there is none.
    """
    try:
        import distributed
    except ImportError as error:
        raise MachineError(
            f"--engine dask needs Dask ({error}). Install it: pip install 'wanlat[dask]'"
        ) from error
    for name in (
        "distributed",
        *(n for n in logging.root.manager.loggerDict if "distributed." in n),
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said by us
    report(f"connecting to Dask: {scheduler}")
    try:
        with safe_path():
            cluster = _cluster(scheduler)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        raise MachineError(
            f"--scheduler {scheduler}: no cluster came of it: {in_words(error)}"
        ) from error
    try:
        try:
            client = distributed.Client(cluster or scheduler, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MachineError(
                f"--scheduler {scheduler}: no Dask scheduler answers there ({in_words(error)}). "
                "Start one: dask scheduler"
            ) from error
        try:
            with safe_path():  # of workers of this machine that are begun again
                yield DaskEngine(client, scheduler, report)
        finally:
            client.close()
    finally:
        if cluster is not None:
            cluster.close()


def _cluster(scheduler: str) -> SpecCluster | None:
    """Make the requested cluster; None for one that has an address.

    But for Slurm's and SSH's workers all of it is in this process, and ends with it: without a
    scheduler, workers end, too.
    """
    from distributed import LocalCluster, Scheduler, SpecCluster

    kind, _, argument = scheduler.partition(":")
    if kind in ("local", "slurm") and not (argument or "1").isdecimal():
        raise UserError(f"--scheduler {scheduler}: give a number of workers, such as {kind}:4.")
    if kind == "local":
        return LocalCluster(
            n_workers=int(argument or 1),
            threads_per_worker=1,
            resources=RESOURCE,
            memory_limit=None,
            dashboard_address=None,
        )
    if kind == "slurm":
        from dask import config
        from dask_jobqueue import SLURMCluster

        known = config.get("jobqueue.slurm")
        return SLURMCluster(
            n_workers=int(argument or 1),
            cores=known["cores"] or 1,
            processes=1,
            memory=known["memory"] or "2GiB",
            python=_safe(known.get("python")),
            worker_extra_args=[*known["worker-extra-args"], "--resources", "machine=1"],
            job_extra_directives=[*known["job-extra-directives"], "--exclusive"],
            scheduler_options={"dashboard": False},
        )
    if kind == "ssh":
        from distributed.deploy.ssh import Worker as SSHWorker

        worker = {"nthreads": 1, "resources": RESOURCE, "memory_limit": 0}
        options = {"connect_options": {}, "kwargs": worker, "remote_python": _safe()}
        return SpecCluster(
            {
                n: {
                    "cls": SSHWorker,
                    "options": {"address": host, **options},
                }
                for n, host in enumerate(argument.split(","))
            },
            {"cls": Scheduler, "options": {"dashboard": False}},
        )
    return None


def _safe(python: str | None = None) -> str:
    """Return the words that start a Python, which imports nothing from where a job begins."""
    return f"{python or sys.executable} -P"


class DaskEngine(Engine):
    """The workers of a Dask scheduler that have the resource `machine`."""

    def __init__(self, client: Client, scheduler: str, report: Report) -> None:
        """``report`` gets what is waited for."""
        super().__init__(_MOST_WORKERS, 0)
        self.client, self.scheduler = client, scheduler
        self.topic = f"wanlat-{uuid.uuid4().hex}"
        self.lanes: dict[str, Report] = {}
        """Who gets the progress of a point."""
        self._report = report
        self._checked: set[str] = set()
        client.subscribe_topic(self.topic, self._hear)

    def adjust(self, running: Mapping[Path, float]) -> bool:
        """Count the workers, and check the new ones; wait for one where there is none."""
        while True:
            self._count()
            if self.allowed or running:
                return True
            self._report(f"waiting for a Dask worker: {self.scheduler}")
            time.sleep(ADJUST_INTERVAL_S)

    def runner(self) -> Runner:
        """Return what runs a point on whichever worker is free."""
        return _Remote(self)

    @property
    def is_gone(self) -> MachineError | None:
        """What to raise where there is no scheduler any more."""
        if self.client.status == "running":
            return None
        return MachineError(
            f"The Dask scheduler of --scheduler {self.scheduler} is gone. Points that are complete "
            "are kept. To resume, start it again, or name another one."
        )

    def _count(self) -> None:
        if gone := self.is_gone:
            raise gone
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        have = {name: worker["resources"].get("machine", 0) for name, worker in workers.items()}
        if have and not any(have.values()):
            raise MachineError(
                f"None of the {len(have)} workers of --scheduler {self.scheduler} has the resource "
                f"`machine`. Start one on each host: {START.format(self.scheduler)}"
            )
        new = [name for name, number in have.items() if number and name not in self._checked]
        checks = self.client.run(check_host, VERSION, workers=new, on_error="return") if new else {}
        for name, error in checks.items():
            if isinstance(error, Exception):
                host = workers[name]["host"]
                raise MachineError(f"The Dask worker on {host} can measure nothing: {error}")
        self._checked |= checks.keys()
        allowed = int(sum(have.values()))
        if allowed != self.allowed:
            self.allowed = allowed
            self.note()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        if lane := self.lanes.get(message["point"]):
            lane(*message["progress"])


class _Remote(Runner):
    """A point on some Dask worker."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine
        self._interrupted = threading.Event()
        self._future: Any = None

    def run(self, bundle: Path, point: str, report: Report) -> PointEnded:
        """Run a point there, and write its bundle here. Raises MachineError."""
        engine, began = self._engine, list[str]()

        def hear(stage: str, *more: Any) -> None:
            if stage.startswith("begins on "):
                began.append(stage.removeprefix("begins on "))
            report(stage, *more)

        engine.lanes[point] = hear
        self._future = engine.client.submit(
            measure,
            *(bundle.joinpath("manifest.json").read_text("utf-8"), point, engine.topic),
            key=f"{point}-{uuid.uuid4().hex}",
            resources=RESOURCE,
            pure=False,
        )
        if self._interrupted.is_set():
            self._future.cancel()
        try:
            answer = self._future.result()
        except (CancelledError, Unscheduled) as error:
            if self._interrupted.is_set():
                return PointEnded("interrupted", WITH_ITS_RUN)
            raise engine.is_gone or MachineError(f"Dask dropped point {point}: {error}") from error
        except Exception as error:  # of the worker: it died too often, or has no wanlat
            raise MachineError(f"Dask could not run it: {type(error).__name__}: {error}") from error
        finally:
            engine.lanes.pop(point)
            self._future.release()
        ended = arrived(answer, bundle)
        for host in began[:-1]:
            ended.remarks.append(f"the Dask worker on {host} died; it was run again on {began[-1]}")
        return ended

    def interrupt(self) -> None:
        """Have it ended; nothing of it comes back."""
        self._interrupted.set()
        if self._future is not None:
            self._future.cancel()

    def close(self) -> None:
        """Do nothing: workers are Dask's."""


def arrived(answer: dict[str, Any], bundle: Path) -> PointEnded:
    """Write a point's bundle that came from a worker, whole; return how it ended there."""
    whole = answer["bundle"]
    if hashlib.sha256(whole).hexdigest() != answer["sha256"]:
        raise MachineError(
            f"What came from {answer['host']} is not the bundle that was sent there."
        )
    try:
        bundle.joinpath("points").mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".arriving-", dir=bundle) as place:
            archive = Path(place, "bundle.zip")
            archive.write_bytes(whole)
            with zipfile.ZipFile(archive) as inside:
                size_bytes = sum(entry.file_size for entry in inside.infolist())
            if size_bytes > _MOST_BYTES:
                raise MachineError(
                    f"What came from {answer['host']} is {size_bytes >> 20} MiB once it is "
                    f"unpacked; a point is {_MOST_BYTES >> 20} MiB at most."
                )
            shutil.unpack_archive(archive, f"{place}/points")
            for entry in Path(place, "points").iterdir():
                os.replace(entry, bundle / "points" / entry.name)
    except OSError as error:
        return PointEnded(
            "failed", f"its bundle cannot be written: {in_words(error)}", is_full(error)
        )
    ended = PointEnded(**answer["ended"])

    def named_here(text: str) -> str:
        """Name a file where it is now: on the worker it is gone."""
        return text.replace(answer["place"], str(bundle))

    ended.warnings = [named_here(warning) for warning in ended.warnings]
    ended.remarks = [named_here(remark) for remark in ended.remarks]
    ended.is_disk_full = False  # a worker's is no reason to end all
    ended.reason = ended.reason and f"on {answer['host']}: {named_here(ended.reason)}"
    return ended
