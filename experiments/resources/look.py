"""One look at everything that is sampled: nodes, what stands before them, our own, links."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from wanlat.emulator.interface_counters import InterfaceCounters, Traffic
from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.cpu_clocks import CpuClocks
from wanlat.experiments.resources.processes import (
    Meter,
    OneProcess,
    ProcessStat,
    ProcessTable,
    families,
)
from wanlat.experiments.resources.rows import Kind, Usage
from wanlat.experiments.resources.space import Space, SpaceWatch
from wanlat.systems.base import Cluster

_SUPERVISOR = 1
_OURS = ("oneshot", "wire")
"""Programs of ours in a lab, by the name that the kernel knows them by."""

Row = dict[str, Any]


class Looker:
    """Looks, and remembers what is needed to add up. Close it before the lab."""

    def __init__(self, lab: Lab, cluster: Cluster, system: str) -> None:
        """Open what is read. Raises OSError, MachineError."""
        self._cluster = cluster
        self._system = system
        self._meters: dict[tuple[Kind, str], Meter] = {}
        self._table = ProcessTable(f"/proc/{lab.supervisor_pid}/root/proc")
        try:
            self._host = ProcessTable("/proc")
            self._traffic = InterfaceCounters(lab)
        except BaseException:
            self.close()
            raise
        self._clocks = CpuClocks(self._host)
        self._supervisor = OneProcess(self._table, _SUPERVISOR)
        self._wanlat = OneProcess(self._host, os.getpid())
        self._space = SpaceWatch({name: lab.node(name).host_directory for name in cluster.nodes})
        self.processes = 0
        """How many the last look found in the lab."""

    def look(self) -> list[Row]:
        """Return a row for each subject, all of one instant, without disk space.

        Raises OSError once the lab has ended.
        """
        t_ns = time.monotonic_ns()
        processes = self._table.all()
        self.processes = len(processes)
        self._clocks.learn(processes)
        rows = [*self._of_stores(processes), *self._of_ours(processes), *self._of_links()]
        for row in rows:
            row["t_ns"] = t_ns
            row["system"] = self._system
        return rows

    def look_at_space(self, rows: list[Row], budget_ns: int) -> None:
        """Go on with directories for so long; put what came of it into the rows of nodes."""
        self._put(rows, self._space.go_on(budget_ns))

    def weigh(self, rows: list[Row], limit_ns: int) -> bool:
        """Put the space of every node, as it is now, into their rows.

        Where that takes longer than the limit, of as many nodes as could be looked at; and False.
        """
        found = self._space.all(limit_ns)
        self._put(rows, found)
        return len(found) == len(self._cluster.nodes)

    def _put(self, rows: list[Row], found: Mapping[str, Space]) -> None:
        for row in rows:
            if row["kind"] == "node" and (space := found.get(row["subject"])) is not None:
                row.update(_of_space(space))

    def close(self) -> None:
        """Let go of everything. May be called again."""
        for name in ("_table", "_host", "_traffic"):
            with suppress(AttributeError):  # it never came so far
                getattr(self, name).close()

    def _of_stores(self, processes: Mapping[int, ProcessStat]) -> Iterator[Row]:
        traffic = self._traffic.nodes()
        of_nodes = {name: its.pid for name, its in self._cluster.processes.items()}
        of_fronts = {name: its.pid for name, its in self._cluster.fronts.items()}
        found = families(processes, (*of_nodes.values(), *of_fronts.values()))
        for name in self._cluster.nodes:
            members = found.get(of_nodes.get(name, 0), [])
            yield {
                **self._row("node", name, self._used("node", name, members)),
                **_of_traffic(traffic.get(name)),
            }
        for name, pid in of_fronts.items():
            yield self._row("front", name, self._used("front", name, found.get(pid, [])))

    def _of_ours(self, processes: Mapping[int, ProcessStat]) -> Iterator[Row]:
        for name in _OURS:
            roots = [stat for stat in processes.values() if stat.name == name]
            if roots or ("own", name) in self._meters:
                yield self._row("own", name, self._used("own", name, roots))
        for name, process in (("supervisor", self._supervisor), ("wanlat", self._wanlat)):
            if (usage := process.take()) is not None:
                yield self._row("own", name, usage)

    def _of_links(self) -> Iterator[Row]:
        for direction, traffic in self._traffic.links().items():
            yield {
                "kind": "link",
                "subject": str(direction),
                "tx_bytes": traffic.tx_bytes,
                "tx_packets": traffic.tx_packets,
            }

    def _row(self, kind: Kind, subject: str, usage: Usage) -> Row:
        return {"kind": kind, "subject": subject, **usage.columns()}

    def _used(self, kind: Kind, subject: str, processes: Iterable[ProcessStat]) -> Usage:
        meter = self._meters.setdefault((kind, subject), Meter())
        return meter.take(processes, self._table, self._clocks)


def _of_traffic(traffic: Traffic | None) -> Row:
    if traffic is None:
        return {}
    return {
        "rx_bytes": traffic.rx_bytes,
        "tx_bytes": traffic.tx_bytes,
        "rx_packets": traffic.rx_packets,
        "tx_packets": traffic.tx_packets,
    }


def _of_space(space: Space) -> Row:
    return {
        "space_bytes": space.bytes,
        "files": space.files,
        "trash_bytes": space.trash_bytes,
        "space_began_ns": space.began_ns,
    }
