"""A file of values over time, replayed on links: each is in force from its own instant on.

Instants are multiples of the interval from the first change on, so that a late change moves none
after it. What would be due already when the next is, is left out, not caught up with.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wanlat.topologies.errors import UserError
from wanlat.topologies.remarks import stated_round_trip, stated_unit
from wanlat.topologies.stop import Stop
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.units import Duration, QuantityError
from wanlat.topologies.wording import printable, short

LARGEST_FILE = 64 * 2**20
MOST_VALUES = 10_000_000
_BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Replayed:
    """What became of a file of values: how many were due, applied, left out; how late.

    `worst_ns` is the longest time after its instant at which a change was in force; `last` is the
    value in force now; `is_whole`: it was not cut short.
    """

    values: int
    applied: int
    skipped: int
    worst_ns: int
    last: Duration
    is_whole: bool


def read(path: Path, *, key: str | None = None) -> list[Duration]:
    """The values in a file, one a line: `25` (milliseconds), `25ms`, `800us`; `#` begins a comment.

    ``key``: `delay` or `rtt`, where that was given; without it they are delays. Raises UserError
    with the line of the first that is none, and for a comment by which they are something else.
    """
    file = printable(str(path))
    values: list[Duration] = []
    comments: list[str] = []
    bare = ""
    try:
        lines = read_text(path, "a file of delays", LARGEST_FILE).split("\n")
        for number, line in enumerate(lines, start=1):
            value, _, comment = line.partition("#")
            comments += [comment.strip()] if comment else []
            if text := value.strip():
                bare = bare or (text if _BARE.fullmatch(text) else "")
                try:
                    values.append(_duration(text))
                except QuantityError as problem:
                    raise UnreadableFile(str(problem), number) from None
    except UnreadableFile as problem:
        raise UserError(problem.at(file)) from None
    if not 0 < len(values) <= MOST_VALUES:
        count = "no values" if not values else f"{len(values)} values"
        raise UserError(
            f"{file} has {count}; a line has one, such as `25` (ms), from 1 to 10 million"
        )
    if bare and (unit := stated_unit(comments)):
        raise UserError(
            f"{file}: a comment names {unit}, and numbers without a unit are milliseconds; write"
            f" the unit behind each, as `{bare}{unit}`"
        )
    if key is None and (stated := stated_round_trip(comments)):
        raise UserError(
            f"{file}: a comment says round trips ({short(stated)}); `rtt=FILE` replays these,"
            " `delay=FILE` delays of one direction"
        )
    return values


def _duration(text: str) -> Duration:
    return Duration.parse(f"{text}ms" if _BARE.fullmatch(text) else text)


def replay(
    values: Sequence[Duration],
    interval: Duration,
    apply: Callable[[Duration], int],
    stopping: Stop,
    report: Callable[[int, Duration], None] = lambda *_: None,
) -> Replayed:
    """Apply each value at its instant, and return when the last has been in force as long.

    ``apply`` returns since when a value is in force (CLOCK_MONOTONIC, ns) and may raise; ``report``
    receives how many values are over, and the one in force. With ``stopping`` set it returns at
    once: what was applied stays.
    """
    start_ns = apply(values[0])
    applied, skipped, worst_ns, last, index = 1, 0, 0, values[0], 0
    report(1, last)
    while True:
        index += 1
        is_over = _wait_until(start_ns + index * interval.ns, stopping)
        if index >= len(values) or not is_over:
            return Replayed(len(values), applied, skipped, worst_ns, last, is_over)
        behind = (time.monotonic_ns() - start_ns) // interval.ns
        if behind > index:
            due = min(behind, len(values) - 1)
            skipped += due - index
            index = due
        last = values[index]
        in_force_ns = apply(last)
        applied += 1
        worst_ns = max(worst_ns, in_force_ns - (start_ns + index * interval.ns))
        report(index + 1, last)


def _wait_until(due_ns: int, stopping: Stop) -> bool:
    """Wait for an instant; return False if that was cut short."""
    while (left_ns := due_ns - time.monotonic_ns()) > 0:
        if stopping.wait(left_ns / 1e9):
            return False
    return not stopping.is_set()
