"""What the manifest tells of a load: what was asked for, and what it cost the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wanlat.analysis.load.model import Client, QuietLine


@dataclass(frozen=True)
class Settings:
    """Of one system. Everything may be missing of a run that was killed.

    `zero_ns` is when the ramp was over, `ended_ns` when no request was begun any more, both on the
    clock of samples. `left_out` were due and not begun before the end.
    """

    zero_ns: int | None
    ended_ns: int | None
    workers: int | None
    rate: float | None
    done: int | None
    left_out: int
    line: QuietLine
    client: Client

    def at(self, zero_ns: int) -> Settings:
        """The same, with this instant as its zero."""
        return replace(self, zero_ns=zero_ns)


def settings_of(manifest: Mapping[str, Any], system: str) -> Settings:
    """Of `system`, from the manifest's "load" where that is there, else from its study."""
    recorded = _mapping(_mapping(manifest.get("load")).get(system))
    study = manifest.get("study")
    asked = _mapping(study.get("load")) if isinstance(study, Mapping) else {}
    offered = _mapping(recorded.get("offered"))
    client = _mapping(recorded.get("client"))
    began_ns = _whole(recorded.get("began_ns"))
    ramp_ms = _number(recorded.get("ramp_ms")) or 0.0
    workers = _first(_whole, offered.get("workers"), recorded.get("workers"), asked.get("workers"))
    rate = _first(_number, offered.get("rate"), recorded.get("rate"), asked.get("rate"))
    bottleneck = recorded.get("bottleneck")
    return Settings(
        zero_ns=None if began_ns is None else began_ns + round(ramp_ms * 1e6),
        ended_ns=_whole(recorded.get("ended_ns")),
        workers=workers,
        rate=rate,
        done=_whole(recorded.get("done")),
        left_out=_whole(recorded.get("left_out")) or 0,
        line=QuietLine(
            from_due=recorded.get("probe_from") == "due",
            every_ms=_number(recorded.get("probe_interval_ms")),
            late=_whole(recorded.get("probe_late")) or 0,
            left_out=_whole(recorded.get("probe_left_out")) or 0,
            missed=_whole(recorded.get("probe_missed")) or 0,
        ),
        client=Client(
            workers=workers,
            offered_per_s=rate,
            achieved_per_s=_number(recorded.get("achieved_per_s")),
            cpu_share=_number(client.get("cpu_share")),
            busiest_thread_share=_number(client.get("busiest_thread_share")),
            verify_share=_number(client.get("verify_share")),
            waited_share=_number(client.get("waited_share")),
            threads=_whole(client.get("threads")),
            bottleneck=str(bottleneck) if bottleneck else None,
        ),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _first(read: Any, *values: object) -> Any:
    """The first of `values` that is a number."""
    return next((found for value in values if (found := read(value)) is not None), None)
