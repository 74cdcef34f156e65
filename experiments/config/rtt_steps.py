"""The `round_trips` of a study: which RTTs the WAN links are given, how often, and how settled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from wanlat.emulator.changes import Change, mistakes
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, QuantityError
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import YamlModel

IDLE = Duration(10**9)
"""At least so much of the settling only watches what crosses the links without any request."""
LONGEST_RTT = Duration(10 * 10**9)
FEWEST_RTTS = 3
"""With fewer no line can be told from a curve."""


def _settle(settle: Duration) -> Duration:
    if settle < IDLE:
        raise ValueError(
            f"{settle} is too short: for {IDLE} of it nothing is sent, to see what crosses the "
            "links without any request"
        )
    return settle


def _rtt(rtt: Duration) -> Duration:
    if rtt > LONGEST_RTT:
        raise ValueError(f"{rtt} is longer than any network's; at most {LONGEST_RTT}")
    return rtt


class RoundTripsSpec(YamlModel):
    """What makes a study one of round trips: all WAN links change together, again and again."""

    rtts: list[Annotated[Duration, AfterValidator(_rtt)]] = Field(
        default=[Duration(each * 10**6) for each in (0, 25, 50, 100, 200)],
        min_length=1,
        description="RTTs that every WAN link is given, one after another",
    )
    visits: int = Field(default=3, ge=1, le=1000, description="Visits to each of these RTTs")
    settle: Annotated[Duration, AfterValidator(_settle)] = Field(
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
        "samples": "it stands beside `round_trips`, and is per endpoint, placement and visit",
        "warmup": "it stands beside `round_trips`, and is per endpoint, placement and visit",
    }

    @property
    def total_visits(self) -> int:
        """How many visits there are in all."""
        return self.visits * len(self.rtts)

    def jitter_at(self, rtt: Duration) -> Duration:
        """The jitter at an RTT: no more than there is room for."""
        return min(self.jitter, rtt)

    def doubts(self) -> list[str]:
        """Why no number of round trips can come of it, in sentences; nothing where one can."""
        said = []
        if len(self.rtts) < FEWEST_RTTS:
            said.append(
                f"`round_trips` has {len(self.rtts)} RTT{'s' * (len(self.rtts) > 1)}, and through "
                f"so few points goes any line: no number of round trips will be given. Name at "
                f"least {FEWEST_RTTS}."
            )
        if self.jitter.ns:
            said.append(
                f"`round_trips` has a jitter of {self.jitter}: a request that waits for several "
                "answers then waits for the slowest, so no number of round trips will be given. "
                "Leave the jitter out."
            )
        return said

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Tell of RTTs given twice, and of a settling shorter than what is on its way."""
        if not isinstance(raw, dict):
            return []
        given = raw.get("rtts", cls.model_fields["rtts"].get_default())
        rtts = list(_durations(given if isinstance(given, list) else ()))
        findings = []
        for place, (index, rtt) in enumerate(rtts):
            earlier = next((i for i, other in rtts[:place] if other == rtt), None)
            if earlier is not None:
                text = f"{rtt} is given twice; `visits` says how often each is visited"
                findings.append(Finding(("rtts", index), text, see=("rtts", earlier)))
        settle = dict(_durations([raw.get("settle", cls.model_fields["settle"].get_default())]))
        longest = max((rtt for _, rtt in rtts), default=Duration(0))
        if settle and IDLE <= settle[0] < longest:
            text = (
                f"{show(str(settle[0]))} is shorter than an RTT of {longest}, so that packets of "
                "the visit before would still be on their way"
            )
            findings.append(Finding(("settle",) if "settle" in raw else ("rtts",), text))
        return findings


def _durations(values: Any) -> Iterator[tuple[int, Duration]]:
    """Yield those of the values that are durations, with their places."""
    for index, value in enumerate(values):
        try:
            yield index, Duration.parse(value)
        except QuantityError:
            continue  # the type's own business


def check_visits(study: str, spec: RoundTripsSpec, plan: Plan) -> None:
    """Raise UserError where there is no link to change, or one that cannot be changed so."""
    if not plan.wan_links:
        raise UserError(
            f"Study {study} changes the RTT between sites, and topology {plan.name} has one site, "
            "so no request crosses a WAN link. Choose a topology of several sites (`--topology`; "
            "`wanlat topology list` shows those that are here), or a study without `round_trips`."
        )
    for rtt in spec.rtts:
        settings = {"rtt": str(rtt), "jitter": str(spec.jitter_at(rtt))}
        change = Change.of(settings, both_ways=True)
        for link in plan.wan_links:
            for before in (link.forward, link.backward):
                wrong = mistakes(change.on(before))
                if wrong:
                    raise UserError(
                        f"Study {study} gives the link {link.a}/{link.b} of topology {plan.name} "
                        f"an RTT of {rtt}, and with that it cannot be: {listing(wrong)}. Change "
                        "the link in the topology, or `round_trips` in the study."
                    )
