"""What a study has done to a store beside the probe's requests, and how it is watched meanwhile.

`prefill` writes objects before, `load` reads and writes them, `reclaim` removes them; `resources`
says how often what nodes use is sampled.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel, refused, within

Api = Literal["s3", "bob"]

NAMES = {"GetObject": "Get", "PutObject": "Put", "HeadObject": "Exist", "RemoveObject": "Delete"}
"""What a mix may have, in S3 and in Bob. A system is asked by the name that its API has."""
_OF_BOB = {bob: s3 for s3, bob in NAMES.items()}
_READS = ("GetObject", "HeadObject")

LONGEST_RAMP = Duration(2 * 10**9)
_SHARE_OF_RAMP = 10
_SUM_TOLERANCE = 0.02
"""Shares may be off by so much: 1/3 is written 0.33. As in oneshot."""


def _mix(mix: dict[str, float]) -> dict[str, float]:
    """Refuse endpoints that no load has, and shares that are none."""
    known = [*NAMES, *_OF_BOB]
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
        mix = self.mix_of("s3")
        return any(mix.get(name) for name in _READS)

    def mix_of(self, api: Api) -> dict[str, float]:
        """Return the mix by the names of an API."""
        mix: dict[str, float] = {}
        for given, share in self.mix.items():
            s3 = _OF_BOB.get(given, given)
            name = s3 if api == "s3" else NAMES[s3]
            mix[name] = mix.get(name, 0.0) + share
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
        description="How long the nodes may take to come to rest afterwards, before anything is "
        "measured; 0: it is not waited for",
    )

    @property
    def total(self) -> int:
        """How many objects there are in all."""
        return self.objects * self.buckets

    @property
    def settles(self) -> bool:
        """Whether it is waited until the nodes have come to rest."""
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
        description="Time between two samples; longer where sampling would cost 1 % of a core",
    )
    idle: Annotated[Duration, within(Duration(0), LONGEST_IDLE)] = Field(
        default=Duration(0),
        description="How long the cluster is left idle before the first request: its usage then is "
        "subtracted from usage per request",
    )
