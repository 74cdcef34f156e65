"""How figures are written in tables and charts: so many digits, with their intervals, in units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wanlat.analysis.figures.result import Row
from wanlat.analysis.names import EN_DASH

_MINUS = "\N{MINUS SIGN}"
_DECIMAL = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


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
    """Bytes in the largest unit that writes them exactly, decimal ones first: 512kB, 1KiB."""
    if value is None:
        return EN_DASH
    units = (*_DECIMAL, *_BINARY, (1, "B"))
    scale, unit = next(each for each in units if value % each[0] == 0 and (value or each[0] == 1))
    return f"{value // scale}{unit}"


def cell(write: Callable[..., str], *keys: str) -> Callable[[Row], str]:
    """A cell: what `write` makes of the figures under these keys ("client.cpu_share": nested)."""
    return lambda row: write(*(below(row, key) for key in keys))


def estimate(key: str, figures: int = 3) -> Callable[[Row], str]:
    """A cell: the figure under `key` with its interval, which stands under that and "_ci95"."""
    return lambda row: with_interval(below(row, key), below(row, f"{key}_ci95"), figures)


def below(row: Row, key: str) -> Any:
    """The figure under a key with dots; None where there is none."""
    found: Any = row
    for part in key.split("."):
        found = None if found is None else found.get(part)
    return found


def _signed(value: float) -> str:
    text = f"{100 * abs(value):.1f}" if abs(value) < 0.1 else f"{100 * abs(value):.0f}"
    return f"{'' if float(text) == 0 else _MINUS if value < 0 else '+'}{text}"
