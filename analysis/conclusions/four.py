"""The four conclusions: what each compares, and what it says of every comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wanlat.analysis import ratios
from wanlat.analysis.conclusions.model import LIMIT_BYTES, MUCH, Clause, Conclusion, Part, Time
from wanlat.analysis.ratios import Ratio, Verdict, opposite
from wanlat.analysis.sizes import READ, WRITE, At, seed_for

MIB = 2**20
HUNDRED_MIB = 100 * MIB
MINIO_TO_BOB = "MinIO's time / Bob's"
_BYTE = "time a byte / that at the largest size below 4 MiB"
_Judge = Callable[[Ratio], Verdict]
_NEAR_ONE = (1 - MUCH, 1 + MUCH)


def the_four(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> tuple[Conclusion, ...]:
    """All of them, from times of Bob and of one MinIO that were measured together."""
    return (
        _writes(bob, minio, seed),
        _reads(bob, minio, seed),
        _skews(bob, minio),
        _slows_down(bob, minio, seed),
    )


def _writes(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    parts = _against(_of(bob, WRITE), minio, seed, _above_one)
    clause = Clause("Bob writes faster", MINIO_TO_BOB, "> 1", parts)
    return Conclusion("writes", "Bob writes faster at every size", (clause,))


def _reads(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    reads = _of(bob, READ)
    small = [time for time in reads if time.at.object_bytes <= MIB]
    large = [time for time in reads if time.at.object_bytes == HUNDRED_MIB]
    return Conclusion(
        "reads",
        "MinIO reads 100 MiB faster, and Bob 1 MiB and less",
        (
            Clause(
                "Bob reads 1 MiB and less faster",
                MINIO_TO_BOB,
                "> 1",
                _against(small, minio, seed, _above_one),
            ),
            Clause(
                "MinIO reads 100 MiB faster",
                MINIO_TO_BOB,
                "< 1",
                _against(large, minio, seed, lambda ratio: opposite(_above_one(ratio))),
            ),
        ),
    )


def _skews(bob: Sequence[Time], minio: Sequence[Time]) -> Conclusion:
    percent = f"{100 * MUCH:.0f} %"
    return Conclusion(
        "skew",
        "MinIO's mean and median differ much, and Bob's do not",
        (
            Clause(
                "MinIO's mean and median differ much",
                "MinIO's mean / median",
                f"off 1 by {percent} or more",
                tuple(_skew(time, lambda ratio: opposite(_is_near_one(ratio))) for time in minio),
                _NEAR_ONE,
            ),
            Clause(
                "Bob's mean and median do not",
                "Bob's mean / median",
                f"within {percent} of 1",
                tuple(_skew(time, _is_near_one) for time in bob),
                _NEAR_ONE,
            ),
        ),
    )


def _slows_down(bob: Sequence[Time], minio: Sequence[Time], seed: int) -> Conclusion:
    text = "Bob slows down from 4 MiB on"
    return Conclusion(
        "limit",
        text,
        (
            Clause(text, _BYTE, "> 1", _past_limit(bob, seed)),
            Clause("MinIO, to compare with", _BYTE, "> 1", _past_limit(minio, seed), counts=False),
        ),
    )


def _past_limit(times: Sequence[Time], seed: int) -> tuple[Part, ...]:
    """Each size from the limit on against the largest one below it."""
    parts = []
    for time in times:
        if time.at.object_bytes < LIMIT_BYTES:
            continue
        below = [
            other
            for other in times
            if _place(other.at) == _place(time.at)
            and other.at.placement == time.at.placement
            and other.at.object_bytes < LIMIT_BYTES
        ]
        if not below:
            continue
        largest = max(below, key=lambda other: other.at.object_bytes)
        scale = largest.at.object_bytes / time.at.object_bytes
        parts.append(_part(time, largest, seed, _above_one, scale))
    return tuple(parts)


def _above_one(ratio: Ratio) -> Verdict:
    return ratio.is_above(1.0)


def _is_near_one(ratio: Ratio) -> Verdict:
    return ratio.is_within(*_NEAR_ONE)


def _of(times: Iterable[Time], operation: str) -> list[Time]:
    return [time for time in times if time.at.operation == operation]


def _against(
    bob: Sequence[Time], minio: Sequence[Time], seed: int, judge: _Judge
) -> tuple[Part, ...]:
    """MinIO's time over Bob's in every place where both were measured, each placement of Bob's."""
    parts = []
    for time in bob:
        for other in minio:
            if (_place(other.at), other.at.object_bytes) == (_place(time.at), time.at.object_bytes):
                parts.append(_part(other, time, seed, judge, at=time.at))
    return tuple(parts)


def _place(at: At) -> tuple[Any, ...]:
    """Where, but for size and placement: MinIO does not tell where its keys lie."""
    return at.nodes, at.operation, at.keys, at.others


def _part(
    over: Time, under: Time, seed: int, judge: _Judge, scale: float = 1.0, at: At | None = None
) -> Part:
    if over.values_ms is not None and under.values_ms is not None:
        seeds = seed_for(seed, "conclusions", over.at, under.at)
        means = ratios.of_means(over.values_ms, under.values_ms, seeds)
        medians = ratios.of_medians(over.values_ms, under.values_ms)
    else:
        means = ratios.of_estimates(over.mean, under.mean)
        medians = ratios.of_estimates(over.median, under.median)
    means, medians = _scaled(means, scale), _scaled(medians, scale)
    return Part(at or over.at, means, medians, judge(means), judge(medians))


def _skew(time: Time, judge: _Judge) -> Part:
    return Part(time.at, time.skew, None, judge(time.skew), None)


def _scaled(ratio: Ratio, by: float) -> Ratio:
    interval = ratio.ci95
    return Ratio(
        ratio.estimate * by, None if interval is None else (interval[0] * by, interval[1] * by)
    )
