"""What a study does to a store beside the probe's single requests, and how it is watched meanwhile.

`prefill` writes objects before; `resources` sets how often what nodes use is sampled, `budget` how
many samples fit into a time, and into bytes. What makes a study one of another kind is in `kinds`.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from wanlat.bundle.documents import Budgeted
from wanlat.probes.fewer import Turn
from wanlat.probes.plan import Request
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_model import YamlModel, within

BUCKET = "wanlat"
"""The first bucket: the one that the probe uses, too."""


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
        """The buckets: ``wanlat``, which the probe uses, then ``wanlat-2`` and so on."""
        more = (f"{BUCKET}-{number}" for number in range(2, self.buckets + 1))
        return [BUCKET, *more]

    def object_bytes(self, of_study: Size) -> int:
        """Return the size of each in bytes; ``of_study`` is the study's `object_size`."""
        return (self.object_size or of_study).bytes


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
            reason = f"{self.bytes} hold {count} objects of {Size(object_bytes)}"
            fitting.append((count, "bytes", reason))
        if self.time is not None and request_s:
            count = int(self.time.s / request_s)
            reason = f"in {self.time} there are {count} requests of {request_s:.3g} s"
            fitting.append((count, "time", reason))
        samples, limited_by, why = min(fitting, key=lambda limit: limit[0])
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
        """Yield the requests; each ends when the next is taken."""
        for request in requests:
            began = time.monotonic()
            yield request
            self.took_s[request.called, request.placement].append(time.monotonic() - began)


def budget_remark(planned: Sequence[Budgeted]) -> str | None:
    """Describe turns of which fewer samples are taken than were wanted; None: there are none."""
    shortened = [
        f"{one.endpoint}{'' if one.placement == 'unknown' else f' ({one.placement})'} "
        f"{one.samples} of {one.wanted} ({one.why})"
        for one in planned
        if one.samples < one.wanted
    ]
    return f"the budget allows fewer samples: {'; '.join(shortened)}." if shortened else None
