"""Samples what nodes use, from the start of a cluster to its end.

In a thread of this program: a second process would take memory and a core's cache for the same
calls. What it does is mostly system calls, during which Python's lock is free; and latencies are
measured in another process, by the program that sends the requests.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from wanlat.bundle import tables
from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.cost import Cost
from wanlat.experiments.resources.look import Looker
from wanlat.experiments.resources.rows import NAME
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import WanlatError

_END_WITHIN_S = 5.0
_WEIGH_WITHIN_S = 30.0
_WEIGH_AT_FIRST_S = 3.0


class Bundle(Protocol):
    """What of a `BundleWriter` a sampler needs."""

    manifest: dict[str, Any]

    def table(self, name: str, schema: Any) -> Any:
        """Return what appends a row to a table."""

    def write_manifest(self, **changes: Any) -> None:
        """Write the manifest anew."""


class Sampler:
    """A context manager around everything that is done with a cluster.

    A look when it is entered, one every ``every_s`` seconds, one when it is left. It never ends a
    run: should it fail, the manifest says so under ``resources``, and the run goes on without it.

    Going through directories is dear where there are many files, so beside a measurement it is
    done little by little; ``weigh`` does it at once, for when nothing is being measured.
    """

    def __init__(
        self,
        lab: Lab,
        cluster: Cluster,
        bundle: Bundle,
        system: str,
        every_s: float,
        facts: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """``facts`` gives, at the end, what else the manifest is to say of the system there."""
        self._lab = lab
        self._cluster = cluster
        self._bundle = bundle
        self._system = system
        self._every_s = every_s
        self._cost = Cost(round(every_s * 1e9))
        self._looker: Looker | None = None
        self._append: Any = None
        self._began_ns = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looking = threading.Lock()
        self._rows = 0
        self._between_s = 0.0
        self._facts = facts
        self._failure: str | None = None

    def look(self) -> None:
        """Look now, where one stage ends and another begins, so that what each used is known."""
        self._look_between(0.0)

    def weigh(self, within_s: float = _WEIGH_WITHIN_S) -> None:
        """Look at the disk space of every node now, as far as that can be done in the time."""
        self._look_between(within_s)

    def _look_between(self, space_within_s: float) -> None:
        """Look while nothing is measured: what that costs is no cost of a measurement."""
        if self._looker is None or self._failure is not None:
            return
        began = time.monotonic()
        with self._looking:
            try:
                rows = self._looker.look()
                if space_within_s:
                    self._looker.weigh(rows, round(space_within_s * 1e9))
                self._write(rows)
            except (OSError, ValueError, WanlatError) as error:
                self._failure = f"{type(error).__name__}: {error}"
        self._between_s += time.monotonic() - began

    def __enter__(self) -> Self:
        """Look once, so that there is a sample of the cluster at rest, and begin to sample."""
        self._began_ns = time.monotonic_ns()
        try:
            self._append = self._bundle.table(NAME, tables.RESOURCES)
            self._looker = Looker(self._lab, self._cluster, self._system)
        except (OSError, WanlatError) as error:
            self._failure = str(error)
            return self
        # A full collection takes more than a hundred looks do, whichever thread it falls to: now,
        # and what is here by now is not gone through again.
        gc.collect()
        gc.freeze()
        self.weigh(_WEIGH_AT_FIRST_S)  # mostly nothing is there yet
        self._thread = threading.Thread(
            target=self._sample,
            args=(self._began_ns + self._cost.every_ns,),
            name="resources",
            daemon=True,
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and write into the manifest what it cost."""
        self._stop.set()
        gc.unfreeze()
        if self._thread is not None:
            self._thread.join(_END_WITHIN_S)
        if self._looker is not None:
            if kind is None:
                self.weigh()
            self._looker.close()
        self._tell()

    def _sample(self, due_ns: int) -> None:
        while not self._stop.wait(max(due_ns - time.monotonic_ns(), 0) / 1e9):
            began_ns = time.monotonic_ns()
            wait_ns = self._look(due_ns)
            if self._failure is not None:
                return
            # On a grid, unless a look came late or was dear.
            due_ns = max(due_ns + self._cost.every_ns, began_ns + wait_ns)

    def _look(self, due_ns: int) -> int:
        """Look once; return how long after its beginning the next look may begin."""
        assert self._looker is not None
        with self._looking:
            cpu_ns, now_ns = time.thread_time_ns(), time.monotonic_ns()
            try:
                rows = self._looker.look()
                budget_ns = self._cost.space_budget_ns(time.thread_time_ns() - cpu_ns)
                self._looker.look_at_space(rows, budget_ns)
                self._write(rows)
            except (OSError, ValueError, WanlatError) as error:
                self._failure = f"{type(error).__name__}: {error}"
        return self._cost.wait_after(time.thread_time_ns() - cpu_ns, max(now_ns - due_ns, 0))

    def _write(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._append(row)
        self._rows += len(rows)

    def _tell(self) -> None:
        elapsed_ns = max(time.monotonic_ns() - self._began_ns, 1)
        mine = {
            "every_s": self._every_s,
            "samples": self._rows,
            "looks": self._cost.looks,
            "elapsed_s": round(elapsed_ns / 1e9, 3),
            "cpu_s": round(self._cost.cpu_ns / 1e9, 6),
            "cost_cpu_share": round(self._cost.cpu_ns / elapsed_ns, 6),
            "late_p99_ms": self._cost.late_p99_ms(),
            "stretched": self._cost.stretched(self._what),
            "between_s": round(self._between_s, 3),
            "failed": self._failure,
            **self._facts(),
        }
        self._bundle.write_manifest(resources=joined(self._bundle.manifest, self._system, mine))

    def _what(self) -> str:
        nodes = len(self._cluster.nodes)
        processes = self._looker.processes if self._looker is not None else 0
        return f"{nodes} node{'s' * (nodes > 1)} and {processes} processes"


def joined(manifest: Mapping[str, Any], system: str, mine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's ``resources`` with one more system's part of the run."""
    before = manifest.get("resources")
    systems = {**(before["systems"] if isinstance(before, Mapping) else {}), system: dict(mine)}
    parts = list(systems.values())
    elapsed_s = sum(part["elapsed_s"] for part in parts)
    why = {name: part["stretched"] for name, part in systems.items() if part["stretched"]}
    failed = {name: part["failed"] for name, part in systems.items() if part["failed"]}
    return {
        "every_s": max(part["every_s"] for part in parts),
        "samples": sum(part["samples"] for part in parts),
        "cost_cpu_share": round(sum(part["cpu_s"] for part in parts) / max(elapsed_s, 1e-9), 6),
        "late_p99_ms": max(part["late_p99_ms"] for part in parts),
        "stretched": "; ".join(f"{name}: {text}" for name, text in why.items()) or None,
        "failed": "; ".join(f"{name}: {text}" for name, text in failed.items()) or None,
        "systems": systems,
    }
