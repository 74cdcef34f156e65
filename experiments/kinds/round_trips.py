"""Round trips: the RTT of every WAN link changes, and latency is a line over it."""

from __future__ import annotations

from itertools import product
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from wanlat.emulator.changes import Change, mistakes
from wanlat.experiments.kinds.base import StudyKind
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration
from wanlat.topologies.variants import override
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import refused, unique, within

IDLE = Duration(10**9)
"""At least so much of the settling only watches what crosses the links without any request."""
LONGEST_RTT = Duration(10 * 10**9)
_WHY_IDLE = f"; for {IDLE} of it nothing is sent, to see what crosses the links without any request"
FEWEST_RTTS = 3
"""With fewer no line can be distinguished from a curve."""


class RoundTripsSpec(StudyKind):
    """What makes a study one of round trips: all WAN links change together, again and again."""

    key = "round_trips"
    purpose = (
        "Makes it a study of round trips: the RTT of the WAN links is changed, and all samples are "
        "taken at each. Default: one network, the topology's"
    )
    records_packets = True
    instead: ClassVar = {
        "rtt": "round_trips.rtts=[0ms,50ms,100ms]",
        "jitter": "round_trips.jitter=1ms",
    }

    rtts: Annotated[
        list[Annotated[Duration, within(Duration(0), LONGEST_RTT)]],
        unique("`repeats` says how often each is a step"),
    ] = Field(
        default=[Duration(rtt_ms * 10**6) for rtt_ms in (0, 25, 50, 100, 200)],
        min_length=1,
        description="RTTs that every WAN link is given, one after another",
    )
    repeats: int = Field(default=3, ge=1, le=1000, description="Steps at each of these RTTs")
    settle: Annotated[Duration, within(IDLE, None, _WHY_IDLE)] = Field(
        default=Duration(2 * 10**9),
        description="After each change, before anything counts",
    )
    jitter: Duration = Field(
        default=Duration(0),
        description="Of every WAN link. With any there is no number of round trips",
        json_schema_extra={"default": "0ms"},
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "`rtts` takes a list",
        "samples": "it stands beside `round_trips`, and is per endpoint, placement and RTT step",
        "warmup": "it stands beside `round_trips`, and is per endpoint, placement and RTT step",
    }

    @property
    def total_steps(self) -> int:
        """How many steps there are in all."""
        return self.repeats * len(self.rtts)

    def jitter_at(self, rtt: Duration) -> Duration:
        """The jitter at an RTT: no more than there is room for."""
        return min(self.jitter, rtt)

    @property
    def doubts(self) -> list[str]:
        """Why no number of round trips can come of it, in sentences; nothing where one can."""
        doubts = []
        if len(self.rtts) < FEWEST_RTTS:
            doubts.append(
                f"`round_trips` has {len(self.rtts)} RTT{'s' * (len(self.rtts) > 1)}, and through "
                f"so few points goes any line: no number of round trips will be given. Name at "
                f"least {FEWEST_RTTS}."
            )
        if self.jitter.ns:
            doubts.append(
                f"`round_trips` has a jitter of {self.jitter}: a request that waits for several "
                "answers then waits for the slowest, so no number of round trips will be given. "
                "Leave the jitter out."
            )
        return doubts

    @model_validator(mode="after")
    def _settles(self) -> Self:
        """Of the step before, no packet is on its way any more when the next one begins."""
        longest = max(self.rtts)
        if self.settle < longest:
            text = (
                f"{show(str(self.settle))} is shorter than an RTT of {longest}, so that packets of "
                "the step before would still be on their way"
            )
            raise refused([Finding(("settle",), text)])
        return self

    def network(self, topology: Topology) -> Topology:
        """Return it at the greatest RTT of the steps.

        Nothing is measured at the topology's own, and to calibrate a jitter takes longer than all
        the rest.
        """
        return override(topology, max(self.rtts), self.jitter_at(max(self.rtts)))

    def check(self, study: str, plan: Plan) -> None:
        """Raise UserError where there is no link to change, or one that cannot be changed so."""
        if not plan.wan_links:
            raise UserError(
                f"Study {study} changes the RTT between sites, and topology {plan.name} has one "
                "site, so no request crosses a WAN link. Choose a topology of several sites "
                "(`--topology`; `wanlat topology list` shows those that are here), or a study "
                "without `round_trips`."
            )
        for rtt, link in product(self.rtts, plan.wan_links):
            settings = {"rtt": str(rtt), "jitter": str(self.jitter_at(rtt))}
            change = Change.parse(settings, both_ways=True)
            if wrong := [*mistakes(change.on(link.forward)), *mistakes(change.on(link.backward))]:
                raise UserError(
                    f"Study {study} gives the link {link.a}/{link.b} of topology {plan.name} "
                    f"an RTT of {rtt}, and with that it cannot be: "
                    f"{listing(dict.fromkeys(wrong))}. Change the link in the topology, or "
                    "`round_trips` in the study."
                )
