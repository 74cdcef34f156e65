"""Studies of round trips on the reference store, several labs beside each other.

They mostly wait for emulated distance, so two cores carry six. Each RTT step is calibrated in its
lab while the others run; the proof of the network at the start is left out, because it asks for a
machine that does nothing else.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.late_network import accept_late_packets
from tests.round_trips.runs import WIDENED_BY, Request, Run
from wanlat.analysis.figures.round_trips import RoundTrips, round_trips_of
from wanlat.bundle.run import read_run

BESIDE_EACH_OTHER = 6
RTTS = ("0ms", "80ms", "160ms")
UNDECIDED_FROM = 0.5
"""An interval as wide as this may hold two whole numbers: it decides nothing."""
_CAPTURE_BYTES, _SNAP_BYTES = 1 << 28, 256

Said = Literal["truth", "undecided", "wrong"]


@dataclass(frozen=True)
class Came:
    """What came of a run."""

    name: str
    directory: Path
    status: str
    reason: str | None
    round_trips: Mapping[Request, RoundTrips]
    """What the bundle says of each endpoint and placement."""

    def said(self, request: Request, truth: float) -> Said:
        """Return what the slope of an endpoint says, by its own interval.

        ``undecided`` is an honest answer of an instrument on a machine that held it up: it gives
        no number, and the reason; or an interval too wide to mean one number.
        """
        found = self.round_trips[request]
        if found.ci95 is None:
            return "undecided" if found.why else "wrong"
        low, high = found.ci95
        if not low - WIDENED_BY <= truth <= high + WIDENED_BY:
            return "wrong"
        return "undecided" if high - low >= UNDECIDED_FROM else "truth"

    def wrong(self, truth: Mapping[Request, float]) -> dict[Request, object]:
        """The endpoints whose slope is said to be another than the truth, with what was said."""
        return {
            request: (found.round_trips, found.ci95, found.why)
            for request, found in ((request, self.round_trips[request]) for request in truth)
            if self.said(request, truth[request]) == "wrong"
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.status} ({self.reason}) ({self.directory})"


class Labs:
    """Runs that are under way; `came` waits for one."""

    def __init__(self, runs: Mapping[str, Run], below: Path) -> None:
        # A fresh interpreter each: threads of the parent are not to be forked.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(BESIDE_EACH_OTHER, context, _leave_out_the_proof)
        self._ended: dict[str, Future[Came]] = {
            name: self._pool.submit(_play, name, runs[name], below / name.replace(" ", "-"))
            for name in sorted(runs, key=lambda name: -runs[name].weight)
        }

    def came(self, name: str) -> Came:
        """Wait for a run to end."""
        return self._ended[name].result()

    def close(self) -> None:
        """Wait for what runs; leave out what has not begun."""
        self._pool.shutdown(cancel_futures=True)


def _leave_out_the_proof() -> None:
    """In a process that runs labs: every step is measured, and none refused for its lateness.

    What a step measured is what its latencies are compared with, as in any run.
    """
    from wanlat.experiments import session

    accept_late_packets("run")
    session.prove = lambda *_, **__: None


def _play(name: str, run: Run, bundle: Path) -> Came:
    from wanlat.experiments.prepare import prepare
    from wanlat.experiments.run import run as run_study
    from wanlat.experiments.session import CaptureWanted

    topology = bundle.with_suffix(".yaml")
    topology.write_text(_topology(run), encoding="utf-8")
    wanted = CaptureWanted(_CAPTURE_BYTES, _SNAP_BYTES)
    prepared = prepare(_study(run, topology), directory=bundle, capture=wanted)
    outcome = run_study(prepared, lambda *_: None)
    found = round_trips_of(read_run(bundle)) if outcome.status == "complete" else ()
    by_request = {(each.endpoint, each.placement): each for each in found}
    return Came(name, bundle, outcome.status, outcome.reason, by_request)


def _topology(run: Run) -> str:
    loss = f", loss: {run.loss}" if run.loss else ""
    sites = "".join(f"  - {{name: dc{n}, nodes: [n{n}]}}\n" for n in (1, 2, 3))
    return f"name: three-sites\nsites:\n{sites}links:\n  default: {{rtt: 40ms{loss}}}\n"


def _study(run: Run, topology: Path) -> Any:
    from wanlat.experiments.config.study import Study

    return Study.model_validate(
        {
            "name": "known-round-trips",
            "topology": str(topology),
            "systems": ["quorum"],
            "options": {"quorum": dict(run.options)},
            "endpoints": list(dict.fromkeys(endpoint for endpoint, _ in run.truth)),
            # Beside the target node.
            "client": run.target,
            "round_trips": {"rtts": list(RTTS), "repeats": 2, "settle": "1s"},
            "samples": run.samples,
            "warmup": 1,
        }
    )
