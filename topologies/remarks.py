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


def stated_unit(lines: Iterable[str]) -> str | None:
    """A unit other than ms that a line gives for the figures."""
    for line in lines:
        for match in _UNIT.finditer(line):
            word = (match[1] or match[2]).replace("-", "")
            factor = TIME.get(unit_word(word))
            if factor not in (None, TIME["ms"]) and word != "US":
                return UNITS[factor or 1]
    return None


def stated_one_way(lines: Iterable[str]) -> str | None:
    """The line by which the figures are of one direction."""
    return next((line for line in lines if {"oneway", "owd"} & set(words(line))), None)
