"""Samples what nodes use, from the start of a cluster to its end.

In a thread of this program: a second process would take memory and a core's cache for the same
calls. What it does is mostly system calls, during which Python's lock is free; and latencies are
measured in another process, by the program that sends the requests.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from wanlat.bundle import tables
from wanlat.bundle.write import BundleWriter
from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.processes import ClusterProcesses
from wanlat.experiments.resources.space import Space, SpaceScanner
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import WanlatError

LARGEST_SHARE = 0.008
"""Of one core: what one sample costs, over the time to the next."""
_SPACE_SHARE = 0.003
"""The part of it that scanning directories may take."""
_END_WITHIN_S = 5.0
_SPACE_WITHIN_S = 30.0
_FIRST_SPACE_WITHIN_S = 3.0


@dataclass
class SamplingBudget:
    """What samples cost, and how long to wait so that they stay below their share of a core.

    All times in nanoseconds; ``interval_ns`` is what the study wants.
    """

    interval_ns: int
    cpu_ns: int = 0
    late_ns: list[int] = field(default_factory=list)
    """How late each sample was begun."""
    longest: tuple[int, int] = (0, 0)
    """The longest wait, and the CPU time of the sample that made it."""

    def space_ns(self, spent_ns: int) -> int:
        """Return the CPU time that a sample, which has spent so much, has left for directories.

        There is always some, or on a slow machine no directory would ever be done.
        """
        most = int(self.interval_ns * _SPACE_SHARE)
        left = int(self.interval_ns * LARGEST_SHARE) - spent_ns
        return max(min(most, left), most // 8)

    def wait_after(self, spent_ns: int, late_ns: int) -> int:
        """Take note of a sample; return how long after its beginning the next one may begin."""
        self.cpu_ns += spent_ns
        self.late_ns.append(late_ns)
        wait_ns = max(self.interval_ns, round(spent_ns / LARGEST_SHARE))
        self.longest = max(self.longest, (wait_ns, spent_ns))
        return wait_ns

    def stretched(self, of_what: str) -> str | None:
        """Say that samples lie further apart than was wanted, and why; None when they do not."""
        wait_ns, spent_ns = self.longest
        if wait_ns <= self.interval_ns * 1.02:
            return None
        return (
            f"a sample of {of_what} took up to {spent_ns / 1e6:.1f} ms of CPU time, so samples lie "
            f"up to {wait_ns / 1e9:.1f} s apart and not {self.interval_ns / 1e9:g} s"
        )


class Sampler:
    """A context manager around everything that is done with a cluster.

    A sample when it is entered, one every ``every_s`` seconds, one when it is left. It never ends a
    run: should it fail, the manifest says so under ``resources``, and the run continues without it.

    Scanning directories is dear where there are many files, so beside a measurement it is done
    little by little; ``sample_space`` does it at once, for when nothing is being measured.
    """

    def __init__(
        self,
        lab: Lab,
        cluster: Cluster,
        bundle: BundleWriter,
        system: str,
        every_s: float,
        facts: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """``facts`` gives, at the end, more entries for the manifest."""
        self._lab = lab
        self._nodes = len(cluster.nodes)
        self._bundle = bundle
        self._system = system
        self._every_s = every_s
        self._facts = facts
        self._budget = SamplingBudget(round(every_s * 1e9))
        self._processes = ClusterProcesses(lab, cluster)
        self._space = SpaceScanner({name: lab.node(name).host_directory for name in cluster.nodes})
        self._traffic: InterfaceCounters | None = None
        """Open sockets keep their namespaces: closed before the lab."""
        self._append: Callable[[dict[str, Any]], None] = lambda _: None
        self._began_ns = time.monotonic_ns()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)
        self._sampling = threading.Lock()
        self._between_s = 0.0
        self._failure: str | None = None

    def sample(self, space_within_s: float = 0.0) -> None:
        """Sample now, where one stage ends and another begins, so that each one's use is known.

        With the disk space of every node, as far as that is done in the time. What this costs is
        no cost of a measurement.
        """
        began = time.monotonic()
        self._take(round(space_within_s * 1e9))
        self._between_s += time.monotonic() - began

    def sample_space(self) -> None:
        """Sample now, with the disk space of every node. It may take seconds."""
        self.sample(_SPACE_WITHIN_S)

    def __enter__(self) -> Self:
        """Sample once, so that there is a sample of the idle cluster, and begin."""
        self._began_ns = time.monotonic_ns()
        # A full collection takes more than a hundred samples do, whichever thread it falls to: now,
        # and what is here by now is not gone through again.
        gc.collect()
        gc.freeze()
        try:
            self._append = self._bundle.table("resources", tables.RESOURCES)
            self._traffic = InterfaceCounters(self._lab)
        except (OSError, WanlatError) as error:
            self._failure = str(error)
        self.sample(_FIRST_SPACE_WITHIN_S)  # mostly nothing is there yet
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop, and write into the manifest what it cost."""
        self._stop.set()
        gc.unfreeze()
        self._thread.join(_END_WITHIN_S)
        if kind is None:
            self.sample_space()
        if self._traffic is not None:
            self._traffic.close()
        before = (self._bundle.manifest.get("resources") or {}).get("systems", {})
        self._bundle.write_manifest(resources=pooled({**before, self._system: self._report()}))

    def _run(self) -> None:
        budget = self._budget
        due_ns = self._began_ns + budget.interval_ns
        while not self._stop.wait(max(due_ns - time.monotonic_ns(), 0) / 1e9):
            now_ns = time.monotonic_ns()
            spent_ns = self._take()
            if self._failure is not None:
                return
            wait_ns = budget.wait_after(spent_ns, max(now_ns - due_ns, 0))
            # On a grid, unless a sample came late or was dear.
            due_ns = max(due_ns + budget.interval_ns, now_ns + wait_ns)

    def _take(self, space_within_ns: int | None = None) -> int:
        """Sample once, and note why that failed; return the CPU time that it took (ns).

        Disk space at once and within so long, or None: a little of it, beside a measurement.
        """
        began_ns = time.thread_time_ns()
        with self._sampling:
            if self._traffic is None or self._failure is not None:
                return 0
            try:
                rows = list(self._rows(self._traffic))
                space: Mapping[str, Space] = {}
                if space_within_ns is None:
                    left_ns = self._budget.space_ns(time.thread_time_ns() - began_ns)
                    space = self._space.advance(left_ns)
                elif space_within_ns:
                    space = self._space.all(space_within_ns)
                for row in rows:
                    own = space.get(row["subject"]) if row["kind"] == "node" else None
                    self._append(row | (asdict(own) if own is not None else {}))
            except (OSError, ValueError, WanlatError) as error:
                self._failure = f"{type(error).__name__}: {error}"
        return time.thread_time_ns() - began_ns

    def _rows(self, counters: InterfaceCounters) -> Iterator[dict[str, Any]]:
        """Yield a row for each node, front and link, all of one instant, without disk space."""
        common = {"t_ns": time.monotonic_ns(), "system": self._system}
        usage, traffic = self._processes.usage(), counters.nodes()
        for (kind, name), its in usage.items():
            crossed = asdict(traffic[name]) if kind == "node" and name in traffic else {}
            yield {**common, "kind": kind, "subject": name, **asdict(its), **crossed}
        for way, its_traffic in counters.links().items():
            sent = {"tx_bytes": its_traffic.tx_bytes, "tx_packets": its_traffic.tx_packets}
            yield {**common, "kind": "link", "subject": str(way), **sent}

    def _report(self) -> dict[str, Any]:
        """What the manifest says of one system (`wanlat.bundle.documents.SystemSampling`)."""
        budget, late_ns = self._budget, sorted(self._budget.late_ns) or [0]
        elapsed_ns = max(time.monotonic_ns() - self._began_ns, 1)
        of_what = f"{self._nodes} node{'s' * (self._nodes > 1)}, {self._processes.count} processes"
        return {
            "every_s": self._every_s,
            "samples": len(budget.late_ns),
            "elapsed_s": round(elapsed_ns / 1e9, 3),
            "cpu_s": round(budget.cpu_ns / 1e9, 6),
            "cost_cpu_share": round(budget.cpu_ns / elapsed_ns, 6),
            "late_p99_ms": round(late_ns[int((len(late_ns) - 1) * 0.99)] / 1e6, 3),
            "stretched": budget.stretched(of_what),
            "between_s": round(self._between_s, 3),
            "failed": self._failure,
            **self._facts(),
        }


def pooled(systems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's ``resources``: of all systems together, and of each."""
    parts = list(systems.values())

    def said(key: str) -> str | None:
        return "; ".join(f"{name}: {its[key]}" for name, its in systems.items() if its[key]) or None

    elapsed_s = sum(part["elapsed_s"] for part in parts)
    return {
        "every_s": max(part["every_s"] for part in parts),
        "samples": sum(part["samples"] for part in parts),
        "cost_cpu_share": round(sum(part["cpu_s"] for part in parts) / max(elapsed_s, 1e-9), 6),
        "late_p99_ms": max(part["late_p99_ms"] for part in parts),
        "stretched": said("stretched"),
        "failed": said("failed"),
        "systems": dict(systems),
    }
