"""A study of one request: made a few times, undisturbed, with the packets recorded.

Between two requests nothing is sent for longer than a round trip, so that what one leaves behind
is not taken for the next one's; and before them there is a while in which only the cluster's own
background crosses the links, so that it can be distinguished.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import RttStep
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.lab import BackendName, Lab
from wanlat.experiments.calibration_gate import FOR_ROUND_TRIPS
from wanlat.experiments.config.endpoints import (
    BOB,
    S3,
    MethodEndpoint,
    endpoints_of,
    has,
    name_of,
)
from wanlat.experiments.config.overrides import changed
from wanlat.experiments.config.study import Study
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.prepare import Prepared, prepare
from wanlat.experiments.run import run
from wanlat.experiments.session import CaptureWanted, Outcome, Recording, Report, requested_rtt_ms
from wanlat.experiments.workloads.requests import STAGES, Workload, wait_until
from wanlat.experiments.workloads.rtt_steps import RttStepsRecord, StepCalibration, what_is_off
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Placement, Request
from wanlat.probes.process import Spawn
from wanlat.systems import registry
from wanlat.systems.base import Api, Cluster
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.variants import override
from wanlat.topologies.wording import did_you_mean, listing, show

NAME = "trace"
PLACEMENTS: tuple[Placement, ...] = ("local", "remote", "unknown")

_ORIGIN = "trace"
_IDLE_S = 1.2
_IDLE_RTTS = 3
_PAUSE_RTTS = 1.3
_LEAST_PAUSE_S = 0.02
_FIRST_WINDOW_BYTES = 10 * 1448
"""Of TCP (RFC 6928): what is larger takes several round trips, to some nodes after the answer."""
_QUIET_PART = 50
_LONGEST_END_S = 10.0
_WARMUP = 3
_CAPTURE = CaptureWanted(limit_bytes=1 << 30, snap_bytes=256)


@dataclass(frozen=True)
class Wish:
    """What is to be traced, as requested. None: the default."""

    topology: str
    system: str
    endpoint: str
    samples: int = 20
    rtt: Duration | None = None
    object_size: Size | None = None
    placement: str | None = None
    client: str | None = None
    options: dict[str, dict[str, Any]] | None = None
    storage: str | None = None
    seed: int | None = None
    backend: BackendName | None = None
    directory: Path | None = None


@dataclass(frozen=True)
class PreparedTrace:
    """A trace with everything that could be wrong about it looked at."""

    prepared: Prepared
    placement: Placement


def prepare_trace(wish: Wish) -> PreparedTrace:
    """Check everything that the user could have got wrong, and that the machine must have.

    Raises UserError or MachineError; nothing has been started or written then.
    """
    system = registry.get(wish.system)
    api = system.api(system.parse_options((wish.options or {}).get(system.name)))
    study = Study(
        name=NAME, topology=wish.topology, endpoints=[_endpoint(wish, api, endpoints_of(system))]
    )
    changes = {
        "description": f"One {wish.endpoint} on {system.name}, message by message",
        "systems": [system.name],
        "options": wish.options,
        "samples": wish.samples,
        "warmup": _WARMUP,
        "client": wish.client,
        "object_size": wish.object_size,
        "storage": wish.storage,
        "seed": wish.seed,
    }
    study = changed(study, {name: each for name, each in changes.items() if each is not None})
    # Jitter would blur which message waited for which, and the grid of round trips.
    topology = override(load_topology(study.topology), wish.rtt, Duration(0))
    prepared = prepare(
        study,
        directory=wish.directory,
        backend=wish.backend,
        capture=_CAPTURE,
        topologies={study.topology: topology},
    )
    placements = [placement for _, placement in prepared.subjects[0].requests.turns()]
    return PreparedTrace(prepared, _placement(wish, placements))


def run_trace(wanted: PreparedTrace, report: Report) -> Outcome:
    """Ask, and leave a bundle, as `runner.run` does. Raises UserError."""

    def parts(prepared: Prepared, recording: Recording) -> Sequence[Workload]:
        (subject,) = prepared.subjects
        return [TraceWorkload(prepared, subject, recording, placement=wanted.placement)]

    return run(wanted.prepared, report, parts=parts)


def _endpoint(wish: Wish, api: Api, own: Sequence[MethodEndpoint]) -> str | MethodEndpoint:
    """The endpoint, if the system has it. Raises UserError."""
    named = {name_of(each): each for each in own}
    if wish.endpoint in named:
        return named[wish.endpoint]
    known: Sequence[str] = {"s3": S3, "bob": BOB}.get(api, tuple(named))
    if wish.endpoint in known or (api == "grpc" and "/" in wish.endpoint):
        return wish.endpoint
    hint = did_you_mean(wish.endpoint, known)
    if wish.endpoint in (*S3, *BOB) and wish.system == "quorum":
        hint = f"; with `--option quorum.api={'bob' if wish.endpoint in BOB else 's3'}` it has"
    raise UserError(
        f"--endpoint {show(wish.endpoint)}: system {wish.system} has no such endpoint{hint}. "
        f"It has {has(api)}."
    )


def _placement(wish: Wish, there: Sequence[Placement]) -> Placement:
    """The placement that is requested: remote where nobody said, because it has more to show."""
    if wish.placement is None:
        return "remote" if "remote" in there else there[0]
    for known in PLACEMENTS:
        if wish.placement == known and known in there:
            return known
    what = (
        "nobody can tell where its keys lie" if "unknown" in there else f"it has {listing(there)}"
    )
    raise UserError(
        f"--placement {show(wish.placement)}: a key is `local` (the target node holds a "
        f"replica) or `remote`; of {wish.endpoint} on {wish.system} there are no such requests: "
        f"{what}. Leave the option out."
    )


class TraceWorkload(Workload):
    """The one system's part: requests with time between them."""

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof: messages are drawn where they were seen."""
        return FOR_ROUND_TRIPS

    def __init__(self, *given: Any, placement: Placement) -> None:
        super().__init__(*given)
        self._placement = placement
        links = self.prepared.plan.wan_links
        self._longest_s = (
            max(link.forward.delay_ns + link.backward.delay_ns for link in links) / 1e9
        )
        self._one_rtt = _one_rtt(self.prepared.plan)

    @property
    def _pause_s(self) -> float:
        """Between two requests: what one leaves behind has crossed the links by then."""
        return max(_PAUSE_RTTS * self._longest_s, _LEAST_PAUSE_S)

    def before_start(self, lab: Lab) -> None:
        """Bring all sites together where their links are alike, so that starting is quick."""
        if self._one_rtt is not None:
            lab.change("wan", rtt="0ms", jitter="0ms", origin=_ORIGIN)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Prepare, set the links, warm up, listen to the background, and ask."""
        plan, own = self.prepared.plan, self.subject.requests
        requests, header = own.plan(), own.header(cluster)
        rtt_ms = requested_rtt_ms(plan, self.prepared.target)
        step = RttStep(system=self.name, rtt_step=0, requested_rtt_ms=rtt_ms)
        take = self.taking(cluster, not_found, {"rtt_ms": rtt_ms, "rtt_step": 0})
        self.prepare(spawn, header, requests.prepare)
        step.changed_ns = time.monotonic_ns()
        if self._one_rtt is not None:
            rtt = str(self._one_rtt)
            step.changed_ns = lab.change("wan", rtt=rtt, jitter="0ms", origin=_ORIGIN)
        chosen = [one for one in requests.measure if one.placement == self._placement]
        warmup = [one for one in requests.warmup if one.placement == self._placement]
        target, seed = self.prepared.target, self.prepared.seed
        with (
            StepCalibration(lab, plan, target, seed) as calibration,
            Oneshot(spawn, header) as oneshot,
        ):
            for number, request in enumerate(warmup, start=1):
                self.tell(STAGES["warmup"], number, len(warmup))
                self._ask(lab, oneshot, request, take)
            self._listen(lab, cluster, step, calibration)
            step.begun_ns = time.monotonic_ns()
            for request in self.retaking(own, requests.prepare).following(chosen):
                self._ask(lab, oneshot, request, take)
                self.tell(STAGES["measure"], self.outcome.measured, len(chosen))
            step.ended_ns = time.monotonic_ns()
            oneshot.finish()
        RttStepsRecord(self.bundle).add(step)
        self._judge(step)
        cluster.check()

    def _ask(self, lab: Lab, oneshot: Oneshot, request: Request, take: Any) -> None:
        oneshot.send(request)
        take(request, oneshot.receive())
        wait_until(lab, time.monotonic() + self._pause_s)
        if self.prepared.study.object_size.bytes > _FIRST_WINDOW_BYTES:
            self._let_it_end(lab)

    def _let_it_end(self, lab: Lab) -> None:
        """Wait until copies of a large body that nobody waits for have crossed, or for long."""
        quiet = self.prepared.study.object_size.bytes / _QUIET_PART
        until = time.monotonic() + _LONGEST_END_S
        before = _bytes(lab)
        while time.monotonic() < until:
            wait_until(lab, time.monotonic() + self._pause_s)
            now = _bytes(lab)
            if now - before <= quiet:
                return
            before = now

    def _listen(
        self, lab: Lab, cluster: Cluster, step: RttStep, calibration: StepCalibration
    ) -> None:
        """Let only the background cross the links; then measure them."""
        self.tell("listening to the background")
        begin = time.monotonic_ns()
        wait_until(lab, time.monotonic() + max(_IDLE_S, _IDLE_RTTS * self._longest_s))
        cluster.check()
        step.idle_ns = (begin, time.monotonic_ns())
        calibration.into(step)

    def _judge(self, step: RttStep) -> None:
        if step.verdict == "pass":
            return
        self.session.warn(
            "while the requests were made, the network was not quite what was requested: "
            f"{what_is_off(step)} The trace shows what there was."
        )


def _one_rtt(plan: Plan) -> Duration | None:
    """The RTT of every WAN link, where all are alike and the same both ways; else None."""
    delays = {way.delay_ns for link in plan.wan_links for way in (link.forward, link.backward)}
    return Duration(2 * delays.pop()) if len(delays) == 1 else None


def _bytes(lab: Lab) -> int:
    """What has gone over all links together."""
    return sum(counters.bytes for counters in lab.counters().values())
