"""Studies of round trips on the reference store, several labs beside each other.

They mostly wait for emulated distance, so two cores carry six. Each visit is calibrated in its lab
while the others run; the proof of the network at the start is left out, because it asks for a
machine that does nothing else.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis.bundle import read_bundle
from analysis.round_trips_block import RoundTrips, round_trips_of
from tests.round_trips.runs import WITHIN, Asked, Run

BESIDE_EACH_OTHER = 6
ATTEMPTS = 3
RTTS = ("0ms", "80ms", "160ms")
HELD_UP_MS = 0.5
"""An echo that takes so much longer than the median of its pair was held up by the machine."""
IDLE_AT_LEAST = 0.4
"""Of the machine's processors. These labs leave more than half of two to others."""
_CAPTURE_BYTES, _SNAP_BYTES = 1 << 28, 256


@dataclass(frozen=True)
class Came:
    """What came of a run: the last attempt, and why earlier ones did not count."""

    name: str
    directory: Path
    status: str
    reason: str | None
    round_trips: Mapping[Asked, RoundTrips]
    """What the bundle says of each endpoint and placement."""
    discarded: tuple[str, ...]
    held_up: str | None
    """If it missed the truth: how its own calibration shows that the machine was busy."""

    def off(self, truth: Mapping[Asked, float]) -> dict[Asked, object]:
        """The endpoints whose slope is not the truth, with what was said of them."""
        said = {asked: self.round_trips.get(asked) for asked in truth}
        return {
            asked: (found.round_trips, found.ci95, found.why) if found else None
            for asked, found in said.items()
            if found is None
            or found.round_trips is None
            or abs(found.round_trips - truth[asked]) > WITHIN
        }

    def __str__(self) -> str:
        tried = "".join(f"; discarded: {why}" for why in self.discarded)
        return f"{self.name}: {self.status} ({self.reason}){tried} ({self.directory})"


class Labs:
    """Runs that are under way; `came` waits for one."""

    def __init__(self, runs: Mapping[str, Run], below: Path) -> None:
        # A fresh interpreter each: threads of the parent are not to be forked.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(BESIDE_EACH_OTHER, context, _leave_out_the_proof)
        self._runs, self._below = runs, below
        self._ended: dict[str, Future[Came]] = {name: Future() for name in runs}
        for name in sorted(runs, key=lambda name: -runs[name].weight):
            self._start(name, ())

    def came(self, name: str) -> Came:
        """Wait for a run to end, with all its attempts."""
        return self._ended[name].result()

    def close(self) -> None:
        """Wait for what runs; leave out what has not begun."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self, name: str, discarded: tuple[str, ...]) -> None:
        bundle = self._below / f"{name.replace(' ', '-')}-{len(discarded) + 1}"
        attempt = self._pool.submit(_play, name, self._runs[name], bundle, discarded)
        attempt.add_done_callback(lambda ended: self._take(name, ended))

    def _take(self, name: str, ended: Future[Came]) -> None:
        """Take what came of an attempt, or have another, after all that wait for their first.

        What counts as a miss is never looser: on a machine whose echoes came back in time, the
        first attempt is the last.
        """
        try:
            came = ended.result()
            if came.held_up is None or len(came.discarded) == ATTEMPTS - 1:
                self._ended[name].set_result(came)
            else:
                self._start(name, (*came.discarded, came.held_up))
        except BaseException as error:
            self._ended[name].set_exception(error)


def _leave_out_the_proof() -> None:
    from experiments import system_run

    system_run.prove = lambda *_: None


def _play(name: str, run: Run, bundle: Path, discarded: tuple[str, ...]) -> Came:
    from experiments.prepared import CaptureWanted, prepare
    from experiments.runner import run as run_study

    topology = bundle.with_suffix(".yaml")
    topology.write_text(_topology(run), encoding="utf-8")
    wanted = CaptureWanted(_CAPTURE_BYTES, _SNAP_BYTES)
    prepared = prepare(_study(run, topology), directory=bundle, capture=wanted)
    before = _Processors.now()
    outcome = run_study(prepared, lambda *_: None)
    idle = _Processors.now().idle_since(before)
    complete = outcome.status == "complete"
    found = round_trips_of(read_bundle(bundle)) if complete else ()
    by_asked = {(each.endpoint, each.placement): each for each in found}
    came = Came(name, bundle, outcome.status, outcome.reason, by_asked, discarded, None)
    missed = not complete or came.off(run.truth)
    return replace(came, held_up=_held_up(bundle, idle)) if missed else came


def _topology(run: Run) -> str:
    loss = f", loss: {run.loss}" if run.loss else ""
    sites = "".join(f"  - {{name: dc{n}, nodes: [n{n}]}}\n" for n in (1, 2, 3))
    return f"name: three-sites\nsites:\n{sites}links:\n  default: {{rtt: 40ms{loss}}}\n"


def _study(run: Run, topology: Path) -> Any:
    from experiments.study import Study

    return Study.model_validate(
        {
            "name": "known-round-trips",
            "topology": str(topology),
            "systems": ["quorum"],
            "options": {"quorum": dict(run.options)},
            "endpoints": list(dict.fromkeys(endpoint for endpoint, _ in run.truth)),
            # Beside the node that is asked.
            "client": run.target,
            "round_trips": {"rtts": list(RTTS), "visits": 2, "settle": "1s"},
            "samples": run.samples,
            "warmup": 1,
        }
    )


def _held_up(bundle: Path, idle: float) -> str | None:
    """How a run shows, but for its result, that the machine was busy; None where it does not."""
    file = bundle / "visits.json"
    visits = json.loads(file.read_bytes())["visits"] if file.is_file() else []
    if not visits:
        return "it did not come to a visit"
    failed = [visit["visit"] for visit in visits if visit["verdict"] != "pass"]
    if failed:
        return f"the calibration of visits {failed} failed"
    late = [visit["visit"] for visit in visits if any(map(_is_late, visit["pairs"]))]
    if late:
        return f"echoes in visits {late} were held up by {HELD_UP_MS:g} ms and more"
    return f"processors were idle for {idle:.0%} of the time" if idle < IDLE_AT_LEAST else None


def _is_late(pair: Mapping[str, Any]) -> bool:
    return bool(pair["p99_ms"] - pair["measured_rtt_ms"] > HELD_UP_MS)


class _Processors(NamedTuple):
    """What all processors have spent idle, and in all, since the machine started; ticks."""

    idle: int
    all: int

    @classmethod
    def now(cls) -> _Processors:
        """Read it: the first line of /proc/stat, of which the fourth and fifth figure are idle."""
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        ticks = [int(word) for word in line.split()[1:9]]
        return cls(ticks[3] + ticks[4], sum(ticks))

    def idle_since(self, before: _Processors) -> float:
        """Return the idle part of the time."""
        return (self.idle - before.idle) / max(1, self.all - before.all)
