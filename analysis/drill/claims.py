"""What somebody claims of a system, compared with what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.drill.model import Claim, Durability, Phase, Place
from wanlat.analysis.drill.quantities import part, seconds
from wanlat.analysis.names import count

if TYPE_CHECKING:
    import pandas as pd

HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"
LEAST_N = 10
"""Requests; of fewer nothing is decided."""
_Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True)
class Measured:
    """What claims are compared with."""

    requests: pd.DataFrame
    phases: Sequence[Phase]
    places: Sequence[Place]
    durability: Durability


def wilson(ok: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a part of which `ok` of `n` were seen (1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    seen = ok / n
    middle = (seen + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(seen * (1 - seen) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    # Exact at the ends, where rounding would leave a hair.
    return (0.0 if ok == 0 else middle - half), (1.0 if ok == n else middle + half)


def claims_of(specs: Sequence[Mapping[str, Any]], measured: Measured) -> tuple[Claim, ...]:
    """The claims of a manifest, each with its verdict."""
    return tuple(_claim(spec, measured) for spec in specs)


def _claim(spec: Mapping[str, Any], measured: Measured) -> Claim:
    if spec.get("durability") is not None:
        verdict, evidence = _on_durability(str(spec["durability"]), measured.durability)
    else:
        verdict, evidence = _on_availability(spec.get("availability") or {}, measured)
    return Claim(
        id=str(spec.get("id", "")),
        claim=str(spec.get("claim", "")),
        source=str(spec.get("source", "")),
        verdict=verdict,
        evidence=evidence,
        spec=spec,
    )


def _on_durability(claimed: str, durability: Durability) -> tuple[str, str]:
    if durability.verdict == "unknown":
        return NOT_DECIDED, f"durability is unknown: {durability.why}"
    is_intact = durability.verdict == "pass"
    return (HOLDS if is_intact == (claimed == "intact") else DOES_NOT_HOLD), durability.why


def _on_availability(spec: Mapping[str, Any], measured: Measured) -> tuple[str, str]:
    name = str(spec.get("phase") or "during")
    phase = next((each for each in measured.phases if each.name == name), None)
    if phase is None or phase.begin_s is None or phase.end_s is None:
        return NOT_DECIDED, f"`{name}` was not reached"
    since_s = seconds(spec.get("from")) or 0.0
    until_s = seconds(spec.get("to"))
    rows = _selected(spec, measured.requests, name)
    rows = rows[rows["due_s"] >= phase.begin_s + since_s]
    if until_s is not None:
        rows = rows[rows["due_s"] < phase.begin_s + until_s]
    n, ok = len(rows), int((rows["outcome"] == "ok").sum())
    measured_s = phase.end_s - phase.begin_s
    covered = phase.complete or (until_s is not None and measured_s >= until_s)
    evidence = _evidence(spec, measured.places, n, ok, (since_s, until_s, name))
    if not covered:
        return NOT_DECIDED, f"{evidence}; `{name}` was cut short after {measured_s:.1f} s"
    if n < LEAST_N:
        return NOT_DECIDED, f"{evidence}: too few to decide"
    return _decided(spec, wilson(ok, n)), evidence


def _selected(spec: Mapping[str, Any], requests: pd.DataFrame, phase: str) -> pd.DataFrame:
    rows = requests[requests["phase"] == phase]
    if spec.get("of") in ("reads", "writes"):
        rows = rows[rows["operation"] == str(spec["of"]).removesuffix("s")]
    if spec.get("client"):
        rows = rows[rows["client"] == str(spec["client"])]
    return rows


def _decided(bound: Mapping[str, Any], interval: tuple[float, float]) -> str:
    """Whether all of `interval` is on the claimed side of `bound`, all on the other, or neither."""
    low, high = interval
    if (least := part(bound.get("at_least"))) is not None:
        return HOLDS if low >= least else DOES_NOT_HOLD if high < least else NOT_DECIDED
    if (most := part(bound.get("at_most"))) is not None:
        return HOLDS if high <= most else DOES_NOT_HOLD if low > most else NOT_DECIDED
    return NOT_DECIDED


def _evidence(
    spec: Mapping[str, Any],
    places: Sequence[Place],
    n: int,
    ok: int,
    window: tuple[float, float | None, str],
) -> str:
    """ "157 of 160 reads from n3 between 5 s and 30 s of `during` were ok (98.1 %, 95–99 %)"."""
    what = str(spec.get("of") or "requests")
    nodes = {each.name: each.node for each in places}
    client = str(spec.get("client") or "")
    where = f"from {nodes.get(client, client)}" if client else "from everywhere"
    if client and nodes.get(client, client) != client:
        where += f" ({client})"
    since_s, until_s, phase = window
    when = f"of `{phase}`"
    if until_s is not None:
        when = f"between {since_s:g} s and {until_s:g} s {when}"
    elif since_s:
        when = f"from {since_s:g} s {when} on"
    else:
        when = f"in `{phase}`"
    if not n:
        return f"no {what.removesuffix('s')} was due {where} {when}"
    low, high = wilson(ok, n)
    were = "was" if n == 1 else "were"
    of = count(n, what.removesuffix("s"))
    return (
        f"{ok} of {of} {where} {when} {were} ok "
        f"({ok / n * 100:.1f} %, {low * 100:.1f}–{high * 100:.1f} %)"
    )
