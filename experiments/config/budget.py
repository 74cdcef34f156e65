"""The `budget` of a study: how many samples fit into a time, and into bytes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from wanlat.probes.fewer import Turn
from wanlat.probes.plan import Placement, Request
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_model import YamlModel

_NO_LIMIT = 2**62
_CARRY_NO_OBJECT = (
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


@dataclass(frozen=True)
class Planned:
    """How many samples of a turn are taken, and why so many."""

    endpoint: str
    placement: Placement
    samples: int
    wanted: int
    """The study's `samples`."""
    limited_by: Literal["time", "bytes", "min_samples"] | None
    """``min_samples``: a limit would have allowed fewer."""
    request_s: float | None
    """The median of the warm-up: from handing a request over until its sample was there."""
    why: str


def by_bytes(
    spec: BudgetSpec, turns: Sequence[Turn], wanted: int, object_bytes: int
) -> dict[Turn, int]:
    """Return how many samples of each turn the bytes allow: known before anything is sent."""
    planned = plan_samples(spec, turns, wanted, object_bytes, {})
    return {(each.endpoint, each.placement): each.samples for each in planned}


def plan_samples(
    spec: BudgetSpec,
    turns: Sequence[Turn],
    wanted: int,
    object_bytes: int,
    warmed_up_s: Mapping[Turn, Sequence[float]],
) -> list[Planned]:
    """Return how many samples of each turn are taken. ``warmed_up_s``: how long each of its
    requests took; of a turn without any, time limits nothing.
    """
    return [_planned(spec, turn, wanted, object_bytes, warmed_up_s.get(turn, ())) for turn in turns]


def _planned(
    spec: BudgetSpec, turn: Turn, wanted: int, object_bytes: int, took_s: Sequence[float]
) -> Planned:
    request_s = statistics.median(took_s) if took_s else None
    limits: dict[Literal["time", "bytes"], tuple[int, str]] = {}
    if (fitting := _fitting(spec, turn, object_bytes)) < wanted:
        limits["bytes"] = fitting, f"{spec.bytes} hold {fitting} objects of {Size(object_bytes)}"
    if spec.time is not None and request_s and (fitting := int(spec.time.s / request_s)) < wanted:
        said = f"in {spec.time} there are {fitting} requests of {request_s:.3g} s"
        limits["time"] = fitting, said
    if not limits:
        return Planned(*turn, wanted, wanted, None, request_s, "all fit into the budget")
    name, (fitting, said) = min(limits.items(), key=lambda each: each[1][0])
    least = min(spec.min_samples, wanted)
    if fitting < least:
        said += f", and {least} are taken at least"
        return Planned(*turn, least, wanted, "min_samples", request_s, said)
    return Planned(*turn, fitting, wanted, name, request_s, said)


def _fitting(spec: BudgetSpec, turn: Turn, object_bytes: int) -> int:
    """Return how many objects the bytes allow."""
    if spec.bytes is None or turn[0] in _CARRY_NO_OBJECT or object_bytes == 0:
        return _NO_LIMIT
    return spec.bytes.bytes // object_bytes


@dataclass
class Stopwatch:
    """How long requests took, those between them included: making and checking bodies."""

    took_s: defaultdict[Turn, list[float]] = field(default_factory=lambda: defaultdict(list))

    def timing(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests; each ends when the next is asked for."""
        for request in requests:
            began = time.monotonic()
            yield request
            self.took_s[request.endpoint, request.placement].append(time.monotonic() - began)


def to_manifest(system: str, planned: Sequence[Planned]) -> list[dict[str, Any]]:
    """Return the rows that the manifest has under `budget`."""
    return [{"system": system, **asdict(each)} for each in planned]


def budget_remark(cut: Sequence[Planned]) -> str:
    """Say of which turns fewer samples are taken than were wanted."""
    each = (
        f"{one.endpoint}{'' if one.placement == 'unknown' else f' ({one.placement})'} "
        f"{one.samples} of {one.wanted} ({one.why})"
        for one in cut
    )
    return f"the budget allows fewer samples: {'; '.join(each)}."
