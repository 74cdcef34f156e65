"""How each client fared: its reads, and its writes, one request in flight each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.drill.disturbances import Injection, outages_of, slow_stretches_of, told
from wanlat.analysis.drill.figures import figures_of
from wanlat.analysis.drill.model import OPERATIONS, PHASES, ClientFigures, FaultWindow
from wanlat.analysis.drill.normal import normal_of
from wanlat.analysis.drill.recovery import recovery_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Course:
    """What a client's figures depend on besides its requests.

    `last_heal_s` is None while something is broken still; requests were measured until `until_s`.
    """

    interval_ms: float | None
    first_fault: Injection | None
    last_heal_s: float | None
    until_s: float

    @classmethod
    def of(
        cls,
        faults: Sequence[FaultWindow],
        *,
        interval_ms: float | None,
        until_s: float,
    ) -> Course:
        """The course that `faults` give a drill."""
        heals_s = [fault.end_s for fault in faults if fault.end_s is not None]
        return cls(
            interval_ms=interval_ms,
            first_fault=_first(faults),
            last_heal_s=max(heals_s) if faults and len(heals_s) == len(faults) else None,
            until_s=until_s,
        )


def clients_of(
    requests: pd.DataFrame, names: Sequence[str], course: Course
) -> tuple[ClientFigures, ...]:
    """One entry a client and operation that has a request, in the order of `names`."""
    found = []
    for name in [*names, *sorted(set(requests["client"]) - set(names))]:
        of_client = requests[requests["client"] == name]
        for operation in OPERATIONS:
            rows = of_client[of_client["operation"] == operation]
            if not rows.empty:
                found.append(_client(rows, name, operation, course))
    return tuple(found)


def _first(faults: Sequence[FaultWindow]) -> Injection | None:
    """The injection that was begun first; of several, when the first of them was in force."""
    if not faults:
        return None
    return Injection(
        begun_s=min(fault.acts_from_s for fault in faults),
        in_force_s=min(fault.begin_s for fault in faults),
    )


def _client(rows: pd.DataFrame, client: str, operation: str, course: Course) -> ClientFigures:
    first_fault = course.first_fault
    begun_s = None if first_fault is None else first_fault.begun_s
    normal = normal_of(rows, course.interval_ms, begun_s)
    requests = told(rows, normal)
    outages = outages_of(
        requests,
        client=client,
        operation=operation,
        first_fault=first_fault,
        limit_ms=normal.limit_ms,
        record_end_s=max([course.until_s, *(each.end_s for each in requests)]),
    )
    slow = slow_stretches_of(requests, client=client, operation=operation, first_fault=first_fault)
    recovery = recovery_of(
        requests,
        outages,
        slow,
        first_fault=first_fault,
        last_heal_s=course.last_heal_s,
    )
    counted = [outage.duration_s for outage in outages if not outage.before_fault]
    return ClientFigures(
        client=client,
        operation=operation,
        phases={phase: figures_of(rows[rows["phase"] == phase]) for phase in PHASES},
        limit_ms=normal.limit_ms,
        slow_ms=normal.slow_ms,
        outages=outages,
        slow=slow,
        longest_outage_s=max(counted, default=0.0),
        recovered=recovery.recovered,
        recovery_s=recovery.recovery_s,
        recovery_after_heal_s=recovery.after_heal_s,
    )
