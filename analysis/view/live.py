"""A run that is under way: what it has written so far, read as it grows."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.drill.requests import PHASES, happened, read_events
from wanlat.analysis.names import count
from wanlat.analysis.report.strip import READ, Lane, columns_of, document, since, timeline
from wanlat.bundle import beneath, documents
from wanlat.bundle.documents import REMOTE, UNKNOWN, titles_of
from wanlat.bundle.read import read_document, read_manifest
from wanlat.bundle.run import UNCOUNTED_PHASES, Series

LATEST = 500
"""So many samples of each row are shown."""

_Key = tuple[Series, str, bool]


class Live:
    """A run or a matrix that is followed: each look reads what is new since the one before."""

    def __init__(self, directory: Path) -> None:
        """`directory`: of a bundle."""
        self._directory = directory
        self._tails: dict[str, _Tail] = {}

    def look(self) -> dict[str, Any]:
        """How far every lab is, and the latest samples. Raises BundleError."""
        manifest = read_manifest(self._directory)
        points = read_document(self._directory, documents.Points)
        labs: list[tuple[str, str]] = []
        running = [("", ".")]
        if points is not None:
            labs = [(point.name, point.status) for point in points.points]
            running = [(e.name, e.directory) for e in points.points if e.status == "running"]
        for name, place in running:
            self._tails.setdefault(name, _Tail(self._directory / place)).read()
        tails = {name: self._tails[name] for name, _ in running}
        lanes = [lane for name, tail in tails.items() for lane in tail.lanes(name)]
        labs += [(f"{name} {lab}".strip(), how) for name, t in tails.items() for lab, how in t.labs]
        drill = next(iter(tails.values())).drill if manifest.kind == "drill" else None
        taken = sum(lane.n for lane in lanes)
        return {
            "status": manifest.status,
            "reason": manifest.reason,
            "labs": labs,
            "said": f"{manifest.status}, {count(taken, 'sample')}",
            "strip": document(lanes, titles_of(manifest), timeline=drill),
        }


class _Tail:
    """A run's samples as they come; of each row the latest stay."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._position = 0
        self._counts = Counter[_Key]()
        self._rows: dict[_Key, deque[Mapping[str, Any]]] = {}
        self._zero_ns: int | None = None

    def read(self) -> None:
        """Take in what was written since."""
        for row in self._new():
            if row.get("phase") in UNCOUNTED_PHASES:
                continue
            name = f"{row.get('operation')}s of {row.get('drill_client')}"
            placement = row.get("placement") or UNKNOWN
            if row.get("drill_client") is None:
                name = with_placement(str(row["endpoint"]), placement)
            series = Series(str(row["system"]), str(row["version"]))
            key = (series, name, placement == REMOTE)
            self._counts[key] += 1
            self._rows.setdefault(key, deque(maxlen=LATEST)).append(row)
            if self._zero_ns is None:
                self._zero_ns = row.get("start_ns")

    @property
    def labs(self) -> list[tuple[str, str]]:
        """The system of each lab, and what last happened to it."""
        last = {event.subject: event.kind for event in self._events if event.kind in _STEPS}
        reached = [event.subject for event in self._events if event.kind == "stage"]
        return [*last.items(), *([("drill", reached[-1])] if reached else [])]

    @property
    def drill(self) -> Mapping[str, Any]:
        """What was broken when, and the phases that were reached."""
        zero_ns = self._origin_ns or 0
        started = {e.subject: e.at_s(zero_ns) for e in self._events if e.kind == "phase"}
        now_s = max((event.at_s(zero_ns) for event in self._events), default=0.0)
        phases = [
            {"name": name, "begin_s": started[name], "end_s": max(started[name], now_s)}
            for name in PHASES
            if name in started
        ]
        return timeline({**happened(self._events, zero_ns), "phases": phases})

    def lanes(self, point: str) -> Iterator[Lane]:
        """The latest samples of each row; `of`: the point."""
        origin_ns = self._origin_ns
        zero_ns, names = origin_ns or self._zero_ns or 0, [*READ, "due_ns"]
        for key, rows in self._rows.items():
            series, name, is_open = key
            frame = pd.DataFrame.from_records(list(rows)).reindex(columns=names)
            columns = columns_of(frame, is_drill=origin_ns is not None)
            facts = {"name": name, "of": point, "open": is_open}
            yield Lane(series, self._counts[key], facts, since(columns, round(zero_ns / 1e3)))

    @property
    def _origin_ns(self) -> int | None:
        return read_manifest(self._directory).origin_ns

    @property
    def _events(self) -> list[Any]:
        return read_events(self._directory)

    def _new(self) -> Iterator[Mapping[str, Any]]:
        """The lines that are whole and new; none where the run has not started or has ended."""
        path = self._directory / "samples.jsonl"
        if not beneath.is_file(path):
            return
        with beneath.opened(path) as file:
            file.seek(self._position)
            whole, _, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + 1 if whole else 0
        for line in whole.split(b"\n") if whole else ():
            row = json.loads(line)
            if isinstance(row, dict):
                yield row


_STEPS = ("lab up", "calibrated", "ready", "lab down", "loaded")
