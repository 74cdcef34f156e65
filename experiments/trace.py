"""A study of one request: made a few times, undisturbed, with the packets recorded.

It is one RTT step, in which nothing is sent between two requests for longer than a round trip, so
that what one leaves behind is not taken for the next one's; and before them there is a while in
which only the cluster's own background crosses the links, so that it can be distinguished.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.documents import RttStep
from wanlat.emulator.lab import BackendName, Lab
from wanlat.experiments.config.endpoints import BOB, S3, endpoints_of, name_of
from wanlat.experiments.config.study import Study, changed
from wanlat.experiments.kinds.round_trips import RoundTripsSpec
from wanlat.experiments.prepare import Prepared, Subject, prepare
from wanlat.experiments.requests import NotFoundTracker
from wanlat.experiments.run import run
from wanlat.experiments.session import CaptureWanted, Outcome, Recording, Report, requested_rtt_ms
from wanlat.experiments.workloads.requests import STAGES, Workload, wait_until
from wanlat.experiments.workloads.rtt_steps import (
    RttStepsRecord,
    RttStepsWorkload,
    StepCalibration,
    what_is_off,
)
from wanlat.probes.oneshot import Oneshot, OnSample
from wanlat.probes.plan import Placement
from wanlat.probes.plan import Plan as Requests
from wanlat.probes.process import Spawn
from wanlat.probes.protocols import PLANNERS
from wanlat.systems import registry
from wanlat.systems.base import Api, Cluster
from wanlat.systems.engine.protocols import PROTOCOLS
from wanlat.systems.engine.protocols.requests import Requested
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.variants import override
from wanlat.topologies.wording import did_you_mean, listing, show

NAME = "trace"

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
    study = changed(study, {name: value for name, value in changes.items() if value is not None})
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
    """Send the requests, and leave a bundle, as `runner.run` does. Raises UserError."""

    def parts(prepared: Prepared, recording: Recording) -> Sequence[Workload[Any]]:
        (subject,) = prepared.subjects
        return [TraceWorkload(prepared, subject, recording, wanted.placement)]

    return run(wanted.prepared, report, parts=parts)


def _endpoint(wish: Wish, api: Api, own: Sequence[Requested]) -> str | Requested:
    """The endpoint, if the system has it. Raises UserError."""
    named = {name_of(endpoint): endpoint for endpoint in own}
    if wish.endpoint in named:
        return named[wish.endpoint]
    known = PLANNERS[api].endpoints or tuple(named)
    if wish.endpoint in known or PROTOCOLS[api].is_named(wish.endpoint):
        return wish.endpoint
    hint = did_you_mean(wish.endpoint, known)
    if wish.endpoint in (*S3, *BOB) and wish.system == "quorum":
        hint = f"; with `--option quorum.api={'bob' if wish.endpoint in BOB else 's3'}` it has"
    raise UserError(
        f"--endpoint {show(wish.endpoint)}: system {wish.system} has no such endpoint{hint}. "
        f"It has {listing(named) or PLANNERS[api].known}."
    )


def _placement(wish: Wish, there: Sequence[Placement]) -> Placement:
    """The placement that is requested: remote by default, because it has more to show."""
    if wish.placement is None:
        return "remote" if "remote" in there else there[0]
    if chosen := [known for known in there if known == wish.placement]:
        return chosen[0]
    what = (
        "nobody can tell where its keys lie" if "unknown" in there else f"it has {listing(there)}"
    )
    raise UserError(
        f"--placement {show(wish.placement)}: a key is `local` (the target node holds a "
        f"replica) or `remote`; of {wish.endpoint} on {wish.system} there are no such requests: "
        f"{what}. Leave the option out."
    )


class TraceWorkload(RttStepsWorkload):
    """The one system's part: a step with time between its requests."""

    def __init__(
        self, prepared: Prepared, subject: Subject, recording: Recording, placement: Placement
    ) -> None:
        links = prepared.plan.wan_links
        delays_ns = [link.forward.delay_ns + link.backward.delay_ns for link in links]
        self._longest_s = max(delays_ns) / 1e9
        ways = {way.delay_ns for link in links for way in (link.forward, link.backward)}
        self._are_alike = len(ways) == 1
        """Whether all links have one delay: then they can have none while the cluster starts."""
        rtt = Duration(2 * max(ways))
        settle = Duration(round(max(_IDLE_S, _IDLE_RTTS * self._longest_s) * 1e9))
        super().__init__(prepared, subject, recording, RttStepsRecord(recording.bundle))
        self.spec = RoundTripsSpec.model_construct(rtts=[rtt], repeats=1, settle=settle)
        self._placement = placement

    def change(self, lab: Lab, rtt: Duration, jitter: Duration) -> int:
        """Change the links where they are alike, so that starting is quick; else none."""
        return super().change(lab, rtt, jitter) if self._are_alike else time.monotonic_ns()

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Prepare, set the links, warm up, listen to the background, and measure."""
        prepared, own = self.prepared, self.subject.requests
        plan, header = own.plan(), own.header(cluster)
        rtt_ms = requested_rtt_ms(prepared.plan, prepared.target)
        step = RttStep(system=self.name, rtt_step=0, requested_rtt_ms=rtt_ms)
        take = self.taking(cluster, not_found, {"rtt_ms": rtt_ms, "rtt_step": 0})
        self.prepare(spawn, header, plan.prepare)
        step.changed_ns = self.change(lab, self.spec.rtts[0], Duration(0))
        with (
            StepCalibration(lab, prepared.plan, prepared.target, prepared.seed) as calibration,
            Oneshot(spawn, header) as oneshot,
        ):
            self._send_stage(lab, oneshot, "warmup", plan, take)
            self.progress("listening to the background")
            started_ns = time.monotonic_ns()
            wait_until(lab, started_ns / 1e9 + self.spec.settle.s)
            cluster.check()
            step.idle_ns = (started_ns, time.monotonic_ns())
            calibration.into(step)
            step.begun_ns = time.monotonic_ns()
            self._send_stage(lab, oneshot, "measure", plan, take)
            step.ended_ns = time.monotonic_ns()
            oneshot.finish()
        self.record.add(step)
        if step.verdict != "pass":
            self.session.warn(
                "while the requests were made, the network was not quite what was requested: "
                f"{what_is_off(step)} The trace shows what there was."
            )
        cluster.check()

    def _send_stage(
        self, lab: Lab, oneshot: Oneshot, stage: str, plan: Requests, take: OnSample
    ) -> None:
        planned = plan.warmup if stage == "warmup" else plan.measure
        chosen = [one for one in planned if one.placement == self._placement]
        resampling = self.resampled(self.subject.requests, plan.prepare, self.spec.rtts[0].ms)
        requests = resampling.following(chosen) if stage == "measure" else chosen
        for done, request in enumerate(requests, start=1):
            oneshot.send(request)
            take(request, oneshot.receive())
            self.progress(STAGES[stage], done - self.late, len(chosen))
            self._pause(lab)
            if self.prepared.study.object_size.bytes > _FIRST_WINDOW_BYTES:
                self._let_it_end(lab)

    def _pause(self, lab: Lab) -> None:
        """Wait until what a request leaves behind has crossed the links."""
        wait_until(lab, time.monotonic() + max(_PAUSE_RTTS * self._longest_s, _LEAST_PAUSE_S))

    def _let_it_end(self, lab: Lab) -> None:
        """Wait until copies of a large body that no request waits for have crossed, or for long."""
        quiet = self.prepared.study.object_size.bytes / _QUIET_PART
        until, before = time.monotonic() + _LONGEST_END_S, _bytes(lab)
        while time.monotonic() < until:
            self._pause(lab)
            now = _bytes(lab)
            if now - before <= quiet:
                return
            before = now


def _bytes(lab: Lab) -> int:
    """What has gone over all links together."""
    return sum(counters.bytes for counters in lab.counters().values())
