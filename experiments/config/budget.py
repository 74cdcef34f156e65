"""The `budget` of a study: how many samples fit into a time, and into bytes."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import Field, model_validator

from wanlat.bundle.documents import Budgeted
from wanlat.probes.fewer import Turn
from wanlat.probes.plan import Request
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.yaml_model import YamlModel

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
        samples, why = wanted, "all fit into the budget"
        limited_by: Literal["time", "bytes", "min_samples"] | None = None
        if self.bytes is not None and object_bytes and turn[0] not in _CARRY_NO_OBJECT:
            fitting = self.bytes.bytes // object_bytes
            if fitting < samples:
                samples, limited_by = fitting, "bytes"
                why = f"{self.bytes} hold {fitting} objects of {Size(object_bytes)}"
        if self.time is not None and request_s:
            fitting = int(self.time.s / request_s)
            if fitting < samples:
                samples, limited_by = fitting, "time"
                why = f"in {self.time} there are {fitting} requests of {request_s:.3g} s"
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
