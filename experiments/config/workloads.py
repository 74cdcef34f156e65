"""What a study does to a store beside the probe's single requests, and how it is watched meanwhile.

`prefill` writes objects before, `load` reads and writes them, `reclaim` removes them;
`round_trips` changes the RTT of the WAN links, again and again; `resources` says how often what
nodes use is sampled, `budget` how many samples fit into a time, and into bytes.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from wanlat.bundle.documents import Budgeted
from wanlat.emulator.changes import Change, mistakes
from wanlat.probes.fewer import Turn
from wanlat.probes.plan import Request
from wanlat.systems.engine.protocols import PROTOCOLS, Operation
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel, refused, unique, within

LOADED = {
    name: does
    for protocol in PROTOCOLS.values()
    for does, name in protocol.objects.names.items()
    if does != "list"
}
"""What a mix may have, by S3's name or Bob's. A system is asked by its own."""

LONGEST_RAMP = Duration(2 * 10**9)
_SHARE_OF_RAMP = 10
_SUM_TOLERANCE = 0.02
"""Shares may be off by so much: 1/3 is written 0.33. As in oneshot."""


def _mix(mix: dict[str, float]) -> dict[str, float]:
    """Refuse endpoints that no load has, and shares that are none."""
    known = list(LOADED)
    found = []
    for name, share in mix.items():
        if name not in known:
            near = did_you_mean(name, known)
            text = f"{show(name)} is nothing that a load asks for{near}; it has {listing(known)}"
            found.append(Finding((name,), text, at_key=True))
        if not 0 <= share <= 1:
            found.append(Finding((name,), f"a share is from 0 to 1, not {share}"))
    if not found and abs(sum(mix.values()) - 1) > _SUM_TOLERANCE:
        found = [Finding((), f"shares add up to 1, not to {sum(mix.values()):g}")]
    if found:
        raise refused(found)
    return mix


class LoadSpec(YamlModel):
    """What makes a study one of mixed load: closed-loop workers, and a probe client beside them."""

    workers: int = Field(default=16, ge=1, le=10_000, description="Each with a request in flight")
    mix: Annotated[dict[str, float], AfterValidator(_mix)] = Field(
        default={"GetObject": 0.5, "PutObject": 0.5},
        description="Share of each endpoint, by S3's name or Bob's",
    )
    duration: Annotated[Duration, within(Duration(1))] = Field(
        default=Duration(600 * 10**9), description="Of the load"
    )
    rate: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="Requests a second in all. Default: as fast as answers come",
    )
    probe_interval: Annotated[Duration, within(Duration(1))] = Field(
        default=Duration(100 * 10**6), description="Between two requests of the probe client"
    )
    idle: Duration = Field(
        default=Duration(30 * 10**9), description="The probe client alone, before the load"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "object_size": "it is the study's",
        "objects": "`prefill` writes what is read",
        "buckets": "`prefill` says how many",
        "writers": "`workers` read and write; those of `prefill` write before",
        "samples": "the probe client asks every `probe_interval`",
    }

    @property
    def ramp(self) -> Duration:
        """How long it takes until all workers have begun: a tenth of the load, 2 s at most."""
        return Duration(min(LONGEST_RAMP.ns, self.duration.ns // _SHARE_OF_RAMP))

    @property
    def reads(self) -> bool:
        """Whether it reads what was there before."""
        return any(self.operations.get(each) for each in ("read", "exists"))

    @property
    def operations(self) -> dict[Operation, float]:
        """The mix, by what is done to objects."""
        mix: dict[Operation, float] = {}
        for name, share in self.mix.items():
            mix[LOADED[name]] = mix.get(LOADED[name], 0.0) + share
        return mix


BUCKET = "wanlat"
"""The first bucket: the one that the probe asks for as well."""


class PrefillSpec(YamlModel):
    """Objects that parallel writers put into every bucket before anything is measured."""

    objects: int = Field(
        default=10_000,
        ge=0,
        le=100_000_000,
        description="In each bucket (Bob, which has no buckets: so many for each all the same)",
    )
    buckets: int = Field(default=1, ge=1, le=1000, description="That are filled alike")
    object_size: Size | None = Field(
        default=None, description="Size of each. Default: the study's `object_size`"
    )
    writers: int = Field(default=8, ge=1, le=1000, description="Requests in flight at once")
    settle: Duration = Field(
        default=Duration(60 * 10**9),
        description="How long the nodes may take to become idle afterwards, before anything is "
        "measured; 0: it is not waited for",
    )

    @property
    def total(self) -> int:
        """How many objects there are in all."""
        return self.objects * self.buckets

    @property
    def settles(self) -> bool:
        """Whether it is waited until the nodes are idle."""
        return self.total > 0 and self.settle.ns > 0

    @property
    def bucket_names(self) -> list[str]:
        """The buckets: ``wanlat``, which the probe asks for, then ``wanlat-2`` and so on."""
        more = (f"{BUCKET}-{number}" for number in range(2, self.buckets + 1))
        return [BUCKET, *more]

    def object_bytes(self, of_study: Size) -> int:
        """Return the size of each in bytes; ``of_study`` is the study's `object_size`."""
        return (self.object_size or of_study).bytes


LONGEST_WATCH = Duration(24 * 3600 * 10**9)

Which = Literal["spread", "oldest"]


class ReclaimSpec(YamlModel):
    """What makes a study one of disk space that is given back."""

    objects: int = Field(default=2000, ge=2, le=10**7, description="Written at first")
    remove: float = Field(default=0.5, gt=0, le=1, description="Share of them that is removed")
    which: Which = Field(
        default="spread",
        description="`spread`: drawn evenly from all; `oldest`: those that were written first",
    )
    workers: int = Field(
        default=8, ge=1, le=1000, description="Requests in flight while writing and removing"
    )
    settle: Duration = Field(
        default=Duration(10 * 10**9), description="Between the writing and the removal"
    )
    watch: Annotated[Duration, within(Duration(1), LONGEST_WATCH)] = Field(
        default=Duration(600 * 10**9), description="How long space is watched after the removal"
    )

    @property
    def removed(self) -> int:
        """How many objects are removed."""
        return max(1, round(self.objects * self.remove))

    def chosen(self, seed: int) -> list[int]:
        """Return the numbers of the objects that are removed, in order."""
        if self.which == "oldest":
            return list(range(self.removed))
        return sorted(random.Random(f"{seed}/reclaim").sample(range(self.objects), self.removed))


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as half-open ranges."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return found


SHORTEST = Duration(50 * 10**6)
LONGEST = Duration(60 * 10**9)
LONGEST_IDLE = Duration(3600 * 10**9)


class ResourcesSpec(YamlModel):
    """How often resources are sampled, and how long a cluster is idle before it is loaded."""

    interval: Annotated[Duration, within(SHORTEST, LONGEST)] = Field(
        default=Duration(10**9),
        description="Time between two samples; longer where sampling would cost 0.8 % of a core",
    )
    idle: Annotated[Duration, within(Duration(0), LONGEST_IDLE)] = Field(
        default=Duration(0),
        description="How long the cluster is left idle before the first request: its usage then is "
        "subtracted from usage per request",
    )


IDLE = Duration(10**9)
"""At least so much of the settling only watches what crosses the links without any request."""
LONGEST_RTT = Duration(10 * 10**9)
_WHY_IDLE = f"; for {IDLE} of it nothing is sent, to see what crosses the links without any request"
FEWEST_RTTS = 3
"""With fewer no line can be told from a curve."""


class RoundTripsSpec(YamlModel):
    """What makes a study one of round trips: all WAN links change together, again and again."""

    rtts: Annotated[
        list[Annotated[Duration, within(Duration(0), LONGEST_RTT)]],
        unique("`repeats` says how often each is a step"),
    ] = Field(
        default=[Duration(each * 10**6) for each in (0, 25, 50, 100, 200)],
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


def check_rtt_steps(study: str, spec: RoundTripsSpec, plan: Plan) -> None:
    """Raise UserError where there is no link to change, or one that cannot be changed so."""
    if not plan.wan_links:
        raise UserError(
            f"Study {study} changes the RTT between sites, and topology {plan.name} has one site, "
            "so no request crosses a WAN link. Choose a topology of several sites (`--topology`; "
            "`wanlat topology list` shows those that are here), or a study without `round_trips`."
        )
    for rtt, link in product(spec.rtts, plan.wan_links):
        settings = {"rtt": str(rtt), "jitter": str(spec.jitter_at(rtt))}
        change = Change.of(settings, both_ways=True)
        if wrong := [*mistakes(change.on(link.forward)), *mistakes(change.on(link.backward))]:
            raise UserError(
                f"Study {study} gives the link {link.a}/{link.b} of topology {plan.name} "
                f"an RTT of {rtt}, and with that it cannot be: {listing(dict.fromkeys(wrong))}. "
                "Change the link in the topology, or `round_trips` in the study."
            )


CARRY_NO_OBJECT = (
    *("ListBuckets", "ListObjects", "ListObjectsPage", "HeadObject"),
    *("Exist", "Ping"),
)


class BudgetSpec(YamlModel):
    """What an endpoint and placement may cost; `min_samples` are taken whatever they cost."""

    time: Duration | None = Field(
        default=None, description="Of all its samples, judged from the warm-up"
    )
    bytes: Size | None = Field(
        default=None, description="Of all its objects, sent or received (or written to be removed)"
    )
    min_samples: int = Field(
        default=10, ge=1, le=1_000_000, description="Samples at least, whatever they cost"
    )

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.time is None and self.bytes is None:
            raise ValueError("a budget has a `time`, or `bytes`, or both")
        return self

    def planned(
        self,
        system: str,
        turns: Sequence[Turn],
        wanted: int,
        object_bytes: int,
        warmed_up_s: Mapping[Turn, Sequence[float]],
    ) -> list[Budgeted]:
        """Return how many samples of each turn are taken. ``warmed_up_s``: how long each of its
        requests took; of a turn without any, time limits nothing.
        """
        return [
            self._of_turn(system, turn, wanted, object_bytes, warmed_up_s.get(turn, ()))
            for turn in turns
        ]

    def _of_turn(
        self, system: str, turn: Turn, wanted: int, object_bytes: int, took_s: Sequence[float]
    ) -> Budgeted:
        request_s = statistics.median(took_s) if took_s else None
        fitting: list[tuple[int, Literal["time", "bytes", "min_samples"] | None, str]] = [
            (wanted, None, "all fit into the budget")
        ]
        if self.bytes is not None and object_bytes and turn[0] not in CARRY_NO_OBJECT:
            count = self.bytes.bytes // object_bytes
            said = f"{self.bytes} hold {count} objects of {Size(object_bytes)}"
            fitting.append((count, "bytes", said))
        if self.time is not None and request_s:
            count = int(self.time.s / request_s)
            said = f"in {self.time} there are {count} requests of {request_s:.3g} s"
            fitting.append((count, "time", said))
        samples, limited_by, why = min(fitting, key=lambda each: each[0])
        least = min(self.min_samples, wanted)
        if samples < least:
            samples, limited_by = least, "min_samples"
            why += f", and {least} are taken at least"
        return Budgeted(
            system=system,
            endpoint=turn[0],
            placement=turn[1],
            samples=samples,
            wanted=wanted,
            limited_by=limited_by,
            request_s=request_s,
            why=why,
        )


@dataclass
class Stopwatch:
    """How long requests took, those between them included: making and checking bodies."""

    took_s: defaultdict[Turn, list[float]] = field(default_factory=lambda: defaultdict(list))

    def timing(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests; each ends when the next is asked for."""
        for request in requests:
            began = time.monotonic()
            yield request
            self.took_s[request.called, request.placement].append(time.monotonic() - began)


def budget_remark(planned: Sequence[Budgeted]) -> str | None:
    """Say of which turns fewer samples are taken than were wanted; None of none."""
    each = [
        f"{one.endpoint}{'' if one.placement == 'unknown' else f' ({one.placement})'} "
        f"{one.samples} of {one.wanted} ({one.why})"
        for one in planned
        if one.samples < one.wanted
    ]
    return f"the budget allows fewer samples: {'; '.join(each)}." if each else None
