"""How systems, versions and figures are written for people, and in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wanlat.bundle.documents import Titles
from wanlat.bundle.run import Series
from wanlat.bundle.units import Size

_LONGEST_VERSION = 16

EN_DASH = "\N{EN DASH}"
"""For ranges, and for a figure that does not exist."""

# Below the first, three decimals are written; below the second two; below the third one.
_DECIMALS = ((0.1, 3), (10, 2), (1000, 1))

# A version that is an instant: RELEASE.2026-02-12T20-18-48Z, or Go's pseudo-versions, which end in
# <instant>-<commit> (https://go.dev/ref/mod#pseudo-versions).
_INSTANT = re.compile(r".*\D(\d{4})-?(\d{2})-?(\d{2})(?:T[\d-]+Z|\d{6}-[0-9a-f]{12})")
# A Debian package's: 5:7.0.15-1~deb12u10, whose epoch and revision are Debian's.
_DEBIAN = re.compile(r"(?:\d+:)?(\d[\w.]*)-\d[\w.+~]*")


def short_version(version: str) -> str:
    """`version` made short enough for a legend: a date, or an ellipsis in the middle of long ones.

    `RELEASE.2026-02-12T20-18-48Z` and `v0.0.0-20260212201848-7aac2a2c5b7c` both give 2026-02-12,
    `5:7.0.15-1~deb12u10` gives 7.0.15.
    """
    for pattern in (_INSTANT, _DEBIAN):
        if match := pattern.fullmatch(version):
            return "-".join(match.groups())
    short = re.sub(r"^v(?=\d)", "", version)
    if len(short) <= _LONGEST_VERSION:
        return short
    kept = _LONGEST_VERSION - 1
    return f"{short[: kept - kept // 2]}…{short[-(kept // 2) :]}"


def series_labels(series: Sequence[Series], titles: Titles) -> dict[Series, str]:
    """A label for each of `series`, "MinIO 2026-02-12"; no two are the same.

    Two versions that shorten to the same text are written out in full.
    """
    short = {one: f"{titles[one.system]} {short_version(one.version)}" for one in series}
    taken = list(short.values())
    return {
        one: label if taken.count(label) == 1 else f"{titles[one.system]} {one.version}"
        for one, label in short.items()
    }


def row_labels(series: Sequence[Series], titles: Titles) -> dict[Series, str]:
    """The title of the system alone where that distinguishes `series`, else the full label."""
    systems = [one.system for one in series]
    return {
        one: titles[one.system] if systems.count(one.system) == 1 else label
        for one, label in series_labels(series, titles).items()
    }


def shortened(series: Iterable[Series], titles: Titles) -> list[str]:
    """System and version in full, for those of `series` with a label that lacks the version."""
    return [
        f"{titles[one.system]} {one.version}"
        for one, label in series_labels(list(series), titles).items()
        if one.version.removeprefix("v") not in label
    ]


def series_order(present: Iterable[Series], listed: Sequence[Series]) -> list[Series]:
    """The series that are `present`, in the order of `listed`, then of the alphabet."""
    ranks = {one: rank for rank, one in enumerate(listed)}
    return sorted(set(present), key=lambda one: (ranks.get(one, len(ranks)), one))


def format_ms(value: float | None, places: int | None = None) -> str:
    """`value` in milliseconds, written with about three digits; EN_DASH for None."""
    if value is None:
        return EN_DASH
    if places is None:
        places = next((decimals for below, decimals in _DECIMALS if abs(value) < below), 0)
    return f"{value:.{places}f}"


def format_trips(value: float | None) -> str:
    """Round trips with two decimals, never "-0.00"; EN_DASH for None."""
    return EN_DASH if value is None else f"{round(value, 2) + 0.0:.2f}"


def format_trips_interval(interval: tuple[float, float] | None) -> str:
    """An interval of round trips in brackets; a dash in them where there is none."""
    return f"[{', '.join(map(format_trips, interval)) if interval else EN_DASH}]"


def count(number: int, noun: str) -> str:
    """`number` and `noun`, in the plural unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(parts: Sequence[str], at_most: int) -> str:
    """`parts` joined by semicolons, the first `at_most` of them and how many there are more."""
    rest = len(parts) - at_most
    return "; ".join(parts[:at_most]) + (f"; and {rest} more" if rest > 0 else "")


_MINUS = "\N{MINUS SIGN}"


def digits(value: float | None, figures: int = 4) -> str:
    """`value` with so many digits, and all of those before its point: 258.2, 43.12, 0.0431."""
    if value is None:
        return EN_DASH
    if value == 0:
        return "0"
    if abs(value) >= 1:
        text = f"{value:.{max(0, figures - len(f'{abs(value):.0f}'))}f}"
    else:
        text = f"{value:.{figures}g}" if abs(value) >= 1e-4 else f"{value:.1e}"
    return text.replace("-", _MINUS, 1) if value < 0 else text


def with_interval(value: float | None, ci95: Sequence[float] | None, figures: int = 3) -> str:
    """A figure and its 95 % interval in brackets; a dash in them where there is none."""
    if value is None:
        return EN_DASH
    bounds = ", ".join(digits(bound, figures) for bound in ci95 or ())
    return f"{digits(value, figures)} [{bounds or EN_DASH}]"


def change(value: float | None, ci95: Sequence[float] | None) -> str:
    """A share as signed percent, with its interval: "−2.1 % [−9.2, +5.0]"."""
    if value is None:
        return EN_DASH
    return f"{_signed(value)} % [{', '.join(map(_signed, ci95 or ())) or EN_DASH}]"


def share(value: float | None) -> str:
    """A share as percent without a sign: 12 %, 0.43 %."""
    if value is None:
        return EN_DASH
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def size(value: int | None) -> str:
    """Bytes in the unit that writes them shortest, and exactly: 512kB, 1KiB."""
    return EN_DASH if value is None else str(Size(value))


def cell(write: Callable[..., str], *keys: str) -> Callable[[Mapping[str, Any]], str]:
    """A cell: what `write` makes of the figures under these keys ("client.cpu_share": nested)."""
    return lambda row: write(*(below(row, key) for key in keys))


def estimate(key: str, figures: int = 3) -> Callable[[Mapping[str, Any]], str]:
    """A cell: the figure under `key` with its interval, which stands under that and "_ci95"."""
    return lambda row: with_interval(below(row, key), below(row, f"{key}_ci95"), figures)


def below(row: Mapping[str, Any], key: str) -> Any:
    """The figure under a key with dots; None where there is none."""
    value: Any = row
    for part in key.split("."):
        value = None if value is None else value.get(part)
    return value


def _signed(value: float) -> str:
    text = f"{100 * abs(value):.1f}" if abs(value) < 0.1 else f"{100 * abs(value):.0f}"
    return f"{'' if float(text) == 0 else _MINUS if value < 0 else '+'}{text}"
