"""Runs a cross-check: one lab, one cluster, every client in both positions, and the record."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.emulator.calibration import Tolerance, blame, calibrate
from wanlat.emulator.lab import Lab
from wanlat.experiments.crosscheck.connections import Connections
from wanlat.experiments.crosscheck.document import document
from wanlat.experiments.crosscheck.lanes import (
    Lane,
    Position,
    Times,
    client_lane,
    header_of,
    in_lab,
    oneshot_lane,
)
from wanlat.experiments.crosscheck.packets import Recorder
from wanlat.experiments.crosscheck.prepare import Prepared
from wanlat.experiments.crosscheck.requests import BUCKET, plan, rounds
from wanlat.experiments.crosscheck.results import Results
from wanlat.experiments.crosscheck.waits import Waited, split, waits_of
from wanlat.probes.oneshot import prepare as prepare_objects
from wanlat.probes.plan import Request
from wanlat.systems.base import Cluster, SystemFailed
from wanlat.topologies.errors import RunFailed

WARMUP = 2
OBJECT_BYTES = 1024
_SHORTEST_WAIT = 0.5
"""Of a round trip: what is shorter was no wait for the network."""
_MARGIN_NS = 1_000_000
_P99_MS = 20.0
"""Medians of requests in shuffled rounds are compared: a busy machine's few late packets, which
would spoil a study, are in all of them alike. The median must be as right as a study's."""
_READY_S = 120.0

Report = Callable[[str, float, float | None], None]


def run(prepared: Prepared, report: Report) -> dict[str, Any]:
    """Measure, and return the document. Raises WanlatError."""
    report("building the lab", 0, None)
    with (
        _logs() as logs,
        Lab(prepared.plan, backend=prepared.backend, seed=prepared.seed) as lab,
    ):
        rtt_ms = _calibrate(lab, prepared, report)
        cluster = prepared.system.start(
            lab, prepared.options, logs, _READY_S, _stages(report), binary=prepared.binary
        )
        check = _Check(prepared, lab, cluster, rtt_ms, report)
        check.measure()
        cluster.check()
        return document(
            prepared.plan.name,
            cluster,
            check.results,
            rtt_ms=rtt_ms,
            samples=prepared.samples,
            seed=prepared.seed,
            backend=lab.backend,
            asked=prepared.asked,
            distant=prepared.distant,
        )


@contextmanager
def _logs() -> Iterator[Path]:
    """Yield a directory for the store's logs, which is kept when the store has failed."""
    directory = Path(tempfile.mkdtemp(prefix="wanlat-crosscheck-"))
    try:
        yield directory
    except SystemFailed:
        raise  # and says where its log is
    except BaseException:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


def _stages(report: Report) -> Callable[[str], None]:
    """Return a report of stages alone."""
    return lambda stage: report(stage, 0, None)


def _calibrate(lab: Lab, prepared: Prepared, report: Report) -> float:
    """Return the measured RTT between client and store. Raises RunFailed when it is not right."""
    found = calibrate(
        lab,
        pairs=[(prepared.distant, prepared.asked)],
        tolerance=Tolerance(p99_ms=_P99_MS),
        on_progress=lambda stage, part: report(f"calibrating ({stage})", round(part * 100), 100),
    )
    pair = found["pairs"][0]
    if pair["verdict"] != "pass":
        raise RunFailed(
            f"The emulated network is not what {prepared.plan.name} asks for, so nothing was "
            f"measured on it: {prepared.distant} → {prepared.asked}: {'; '.join(pair['reasons'])}. "
            f"{blame([pair])}"
        )
    return float(pair["rtt_ms"]["p50"])


@dataclass
class _Check:
    """The measurement in a lab with a running cluster."""

    prepared: Prepared
    lab: Lab
    cluster: Cluster
    rtt_ms: float
    report: Report
    results: Results = field(default_factory=Results)

    def measure(self) -> None:
        """Prepare, warm up, measure: all lanes in the same shuffled rounds."""
        prepared = self.prepared
        lanes = 2 * (1 + len(prepared.programs))
        requests = plan(
            self.cluster,
            prepared.api,
            prepared.endpoints,
            asked=prepared.asked,
            samples=lanes * prepared.samples,
            warmup=lanes * WARMUP,
            object_bytes=OBJECT_BYTES,
            seed=prepared.seed,
        )
        if prepared.api == "s3":
            self.cluster.create_bucket(BUCKET)
        self.report("preparing objects", 0, None)
        near = in_lab(self.lab, prepared.asked)
        header = header_of(self.cluster, prepared.asked)
        prepare_objects(near, header, requests.prepare, lambda *_: None)
        order = random.Random(prepared.seed)
        with ExitStack() as stack:
            at = (header.host, header.port)
            distance = stack.enter_context(Recorder(self.lab, prepared.distant, *at))
            loopback = stack.enter_context(Recorder(self.lab, prepared.asked, *at, "lo"))
            rtt_ns = round(self.rtt_ms * 1e6)
            watches: dict[Position, _Watch] = {
                "distance": _Watch(distance, rtt_ns),
                "loopback": _Watch(loopback, 0),
            }
            running = self._start(stack)
            self.results.clients = [lane for lane in running if lane.position == "distance"]
            for stage, phase in (("warming up", requests.warmup), ("measuring", requests.measure)):
                turns = list(rounds(phase, lanes, order))
                for done, (number, request) in enumerate(turns):
                    self.report(stage, done, len(turns))
                    self._take(running[number], request, watches)

    def _start(self, stack: ExitStack) -> list[Lane]:
        self.report("starting the clients", 0, None)
        found = []
        prepared = self.prepared
        common = (stack, self.lab, self.cluster, prepared.asked)
        found.append(oneshot_lane(*common, prepared.distant, "distance"))
        found.append(oneshot_lane(*common, prepared.asked, "loopback"))
        for program in prepared.programs:
            found.append(client_lane(*common, prepared.distant, "distance", program))
            found.append(client_lane(*common, prepared.asked, "loopback", program))
        return found

    def _take(self, lane: Lane, request: Request, watches: Mapping[Position, _Watch]) -> None:
        times = lane.ask(request)
        if times.error is not None:
            self.cluster.check()
        waited = watches[lane.position].waited(request.endpoint, times)
        self.results.add(lane, request, times, waited)


@dataclass
class _Watch:
    """What the record says of one request after another."""

    recorder: Recorder
    rtt_ns: int
    """Zero on loopback."""
    connections: Connections = field(default_factory=Connections)

    def waited(self, endpoint: str, times: Times) -> Waited:
        """Return what a request waited for that has just ended."""
        self.connections.add(self.recorder.read())
        start_ns, end_ns = times.start_ns - _MARGIN_NS, times.end_ns + _MARGIN_NS
        events = self.connections.take(start_ns, end_ns)
        waits = waits_of(events, start_ns, end_ns, round(_SHORTEST_WAIT * self.rtt_ns))
        return split(waits, endpoint, self.rtt_ns)
