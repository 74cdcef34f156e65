"""One sample of everything that is counted: nodes, what stands before them, WAN links."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.processes import (
    CpuClocks,
    Meter,
    ProcessStat,
    ProcessTable,
    families,
)
from wanlat.experiments.resources.space import Space, SpaceScanner
from wanlat.systems.base import Cluster

Kind = Literal["node", "front"]
Row = dict[str, Any]
"""Of ``resources.parquet``."""


class ClusterReader:
    """Reads a cluster, and remembers what is needed to add up. Close it before the lab."""

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
        self._space = SpaceScanner({name: lab.node(name).host_directory for name in cluster.nodes})
        self.processes = 0
        """How many the last sample found in the lab."""

    def read(self) -> list[Row]:
        """Return a row for each node, front and link, all of one instant, without disk space.

        Raises OSError once the lab has ended.
        """
        common = {"t_ns": time.monotonic_ns(), "system": self._system}
        processes = self._table.all()
        self.processes = len(processes)
        self._clocks.learn(processes)
        return [common | row for row in (*self._of_stores(processes), *self._of_links())]

    def add_space(self, rows: list[Row], budget_ns: int) -> None:
        """Continue to scan directories for so long; put what is done into the rows of nodes."""
        _put(rows, self._space.advance(budget_ns))

    def add_all_space(self, rows: list[Row], limit_ns: int) -> None:
        """Put the space of every node, as it is now, into their rows: of as many as can be scanned
        within the limit.
        """
        _put(rows, self._space.all(limit_ns))

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
            row = self._row("node", name, found.get(of_nodes.get(name, 0), []))
            yield row | (asdict(traffic[name]) if name in traffic else {})
        for name, pid in of_fronts.items():
            yield self._row("front", name, found.get(pid, []))

    def _row(self, kind: Kind, subject: str, processes: Iterable[ProcessStat]) -> Row:
        meter = self._meters.setdefault((kind, subject), Meter())
        usage = meter.take(processes, self._table, self._clocks)
        return {"kind": kind, "subject": subject, **asdict(usage)}

    def _of_links(self) -> Iterator[Row]:
        for direction, traffic in self._traffic.links().items():
            yield {
                "kind": "link",
                "subject": str(direction),
                "tx_bytes": traffic.tx_bytes,
                "tx_packets": traffic.tx_packets,
            }


def _put(rows: list[Row], found: Mapping[str, Space]) -> None:
    for row in rows:
        if row["kind"] == "node" and (space := found.get(row["subject"])) is not None:
            row["space_bytes"] = space.bytes
            row["files"] = space.files
            row["trash_bytes"] = space.trash_bytes
            row["space_began_ns"] = space.began_ns
