"""How figures of a load are written in its tables and charts."""

from __future__ import annotations

from collections.abc import Iterable

from wanlat.analysis.load.model import Estimate, Quiet, QuietLine
from wanlat.analysis.names import EN_DASH, count

_MINUS = "\N{MINUS SIGN}"
_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def digits(value: float | None, figures: int = 4) -> str:
    """`value` with so many digits, and all of those before its point: 258.2, 43.12, 0.0431."""
    if value is None:
        return EN_DASH
    if value == 0:
        return "0"
    whole = len(f"{abs(value):.0f}")
    if abs(value) >= 1:
        return _signed(f"{value:.{max(0, figures - whole)}f}")
    return _signed(f"{value:.{figures}g}" if abs(value) >= 1e-4 else f"{value:.1e}")


def with_interval(estimate: Estimate | None, figures: int = 4) -> str:
    """A figure and its 95 % interval in brackets; a dash in them where there is none."""
    if estimate is None:
        return EN_DASH
    return f"{digits(estimate.value, figures)} {interval(estimate, figures)}"


def interval(estimate: Estimate, figures: int = 3) -> str:
    """The 95 % interval alone, in brackets."""
    if estimate.ci95 is None:
        return f"[{EN_DASH}]"
    return f"[{digits(estimate.ci95[0], figures)}, {digits(estimate.ci95[1], figures)}]"


def percent(estimate: Estimate | None) -> str:
    """A share as percent, signed, with its interval."""
    if estimate is None:
        return EN_DASH
    value = _percent(estimate.value)
    if estimate.ci95 is None:
        return f"{value} % [{EN_DASH}]"
    return f"{value} % [{_percent(estimate.ci95[0])}, {_percent(estimate.ci95[1])}]"


def share(value: float | None) -> str:
    """A share as percent without a sign."""
    if value is None:
        return EN_DASH
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def size(value: int | None) -> str:
    """Bytes in the largest unit that writes them exactly, decimal ones first: 512kB, 1KiB."""
    if value is None:
        return EN_DASH
    for scale, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if value and value % scale == 0:
            return f"{value // scale}{unit}"
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{unit}"
    return f"{value}B"


def volume(value: float) -> str:
    """Bytes with four digits: 79.23 GB."""
    for scale, unit in _UNITS:
        if value >= scale:
            return f"{digits(value / scale)} {unit}"
    return f"{value:.0f} B"


def _percent(value: float) -> str:
    text = f"{100 * abs(value):.1f}" if abs(value) < 0.1 else f"{100 * abs(value):.0f}"
    sign = "" if float(text) == 0 else _MINUS if value < 0 else "+"
    return f"{sign}{text}"


def _signed(text: str) -> str:
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text


def on_line(line: QuietLine, quiet: Iterable[Quiet]) -> list[str]:
    """What a reader of the quiet user's figures must know of the instants at which he waited."""
    found = []
    if line.missed:
        found.append(
            f"at {count(line.missed, 'instant')} the quiet user, who asks at fixed ones, still "
            "waited for an answer. Of slow times he has fewer samples than of fast ones, and his "
            "figures are too good by that."
        )
    if line.left_out:
        found.append(
            f"at {count(line.left_out, 'instant')} the quiet user still waited for an answer, "
            "until too little was left of that request's deadline to send it. They count as "
            "failed and are in no latency, so his are too good by that; a longer `probe_interval` "
            "has fewer of them."
        )
    sent = [each.loaded for each in quiet if each.loaded.from_start_ms is not None]
    total_ms = sum(each.ok * each.from_start_ms[0] for each in sent if each.from_start_ms)
    mean_ms = total_ms / max(sum(each.ok for each in sent), 1)
    if line.every_ms is not None and mean_ms > line.every_ms:
        found.append(
            f"answers to the quiet user took {digits(mean_ms, 3)} ms on average beside the load, "
            f"and he asks every {digits(line.every_ms, 3)} ms: his line grew all the time, and "
            "latencies from due say how long it was. Read those from start, or measure with a "
            "longer `probe_interval`."
        )
    return found
