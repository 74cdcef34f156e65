"""What the lines around a table state of its figures: a unit, or that they are of one direction."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wanlat.topologies.figures import TIME, UNITS, unit_word
from wanlat.topologies.headers import words

# Where a unit stands in a sentence: `in µs`, `(seconds)`, `RTT, us`, `rtt_us`, alone; or spelled
# out, `microseconds`. `us-east` and `US` are none, `every 200 msec` says nothing of the figures.
_BEFORE = (
    r"^|\bin |\bunits?\b[:= ]*|[(\[,/:=_]\s*"
    r"|\b(?:rtts?|latency|latencies|delays?|pings?|times?|values?)(?: are)? "
)
_UNIT = re.compile(
    rf"(?:{_BEFORE})((?:[munµμ]?s(?:ec(?:ond)?s?)?|milli\w+|micro\w+|nano\w+))(?![\w-])"
    r"|(?<!\d)(?<!\d )\b([uµμn]secs?|micro-?sec\w*|nano-?sec\w*)\b",
    re.IGNORECASE,
)
_ONE_WAY = {"oneway", "owd", "half"}


def stated_unit(lines: Iterable[str]) -> str | None:
    """The unit that the lines give for the figures, if it is another than ms; of several none."""
    units = [
        (match[1] or match[2]).replace("-", "") for text in lines for match in _UNIT.finditer(text)
    ]
    factors = {TIME.get(unit_word(unit)) for unit in units if unit != "US"} - {None}
    (factor,) = factors if len(factors) == 1 else (None,)
    return None if factor in (None, TIME["ms"]) else UNITS[factor or 1]


def stated_round_trip(lines: Iterable[str]) -> str | None:
    """The line by which the figures are round trips, and nothing of one direction."""
    round_trips = {"rtt", "rtts", "roundtrip"}
    own = ((line, set(words(line))) for line in lines)
    return next((line for line, has in own if has & round_trips and not has & _ONE_WAY), None)


def stated_one_way(lines: Iterable[str]) -> str | None:
    """The line by which the figures are of one direction."""
    return next((line for line in lines if _ONE_WAY & set(words(line))), None)
