"""What the column names of a table mean: which are ends, figures, jitter, loss; in what units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wanlat.topologies.figures import SHARES, TIME, rate_factor, unit_word
from wanlat.topologies.wording import listing, show

Role = Literal["from", "to", "figure", "jitter", "deviation", "loss", "rate", "unit", "other"]

_FROM = {
    *("from", "source", "src", "origin", "sender", "sending", "client", "prober", "vantage"),
    "local",
}
_TO = {
    *("to", "destination", "dest", "dst", "target", "peer", "server", "receiver", "receiving"),
    *("remote", "sink", "anchor"),
}
_PLACE = {
    *("region", "site", "host", "hostname", "node", "city", "name", "datacenter", "datacentre"),
    *("dc", "zone", "az", "location", "place", "pop", "country", "router", "machine", "ip", "addr"),
    *("address", "id", "label", "vm", "instance", "rack", "as", "asn", "point", "endpoint"),
    *("data", "center", "centre", "cluster", "availability"),
}
_ROUND_TRIP = {
    *("rtt", "rtts", "ping", "pings", "roundtrip", "rtd", "srtt", "minrtt", "avgrtt", "maxrtt"),
}
_UNSAID = {"latency", "latencies", "lat"}  # round trips to some, one way to others
_DELAY = {"delay", "delays", "owd", "oneway"}
_JITTER = {"jitter", "ipdv", "pdv", "variation"}
_DEVIATION = {"mdev", "stddev", "stdev", "std", "sd", "dev", "deviation", "sigma"}
_LOSS = {"loss", "losses", "packetloss", "plr", "drop"}
_RATE = {"rate", "bandwidth", "bw", "throughput", "capacity"}
_STATISTIC = {
    *("min", "minimum", "avg", "average", "mean", "median", "med", "max", "maximum", "worst"),
    *("best", "percentile", "quantile", "p", "last"),
}
_LARGEST = {"max", "maximum", "worst"}
_USUAL = 50
"""The percentile that a round trip usually has, or less."""
_RATE_WORDS = {
    *(
        "bit",
        "bits",
        "data",
        "link",
        "line",
        "max",
        "min",
        "avg",
        "average",
        "mean",
        "limit",
        "net",
    ),
    *("network", "available", "total", "per", "s", "sec", "second", "b", "byte", "bytes"),
}
_NO_TIME = {"count", "samples", "n", "var", "variance"}  # a figure of round trips, and no time
# `half_rtt`, `rtt_x10`, `rtt (10^-6 s)`, `rtt [1/100 ms]`: a number in it is not the round trip.
_SCALED = re.compile(
    r"(?<![a-z])(?:half|log\d*|ln|sqrt|squared|inverse|delta|diff|relative|normali[sz]ed)(?![a-z])"
    r"|(?<![a-z])(?:tenth|hundredth|thousandth)s?(?![a-z])"
    r"|(?<![a-z])x ?\d+|[*/^×]\s*-?\d+|\d+\s*[*/^×]|(?<![p\d.])\d+(?:ns|[uµμ]s|ms|s)\b"
    r"|\d+e[+-]?\d+|(?:\d[.,]\d+|(?<=[(\[])\s*(?!1\s)\d+|(?<![p\d.])10+)\s*(?:ns|[uµμ]s|ms|s)",
    re.IGNORECASE,
)
_FILLER = {
    *("network", "packet", "packets", "measured", "value", "values", "time", "times", "of", "the"),
    *("in", "between", "icmp", "tcp", "udp", "http", "trip", "round", "one", "way", "and", "base"),
    *("matrix", "unit", "units", "per", "by", "link", "end", "wan", "mtr", "fping", "standard"),
}
_ROLES: Sequence[tuple[Role, set[str]]] = (  # the first that is named: `rtt_jitter` is jitter
    ("loss", _LOSS),
    ("deviation", _DEVIATION),
    ("jitter", _JITTER),
    ("figure", _ROUND_TRIP | _UNSAID | _DELAY),
    ("rate", _RATE),
)
_TWO = {("a", "b"), ("1", "2"), ("a", "z"), ("i", "j"), ("u", "v")}
_ENDS: Sequence[tuple[Role, set[str]]] = (("from", _FROM), ("to", _TO))
_KNOWN = _ROUND_TRIP | _UNSAID | _DELAY | _JITTER | _DEVIATION | _STATISTIC | _FILLER
_KNOWN |= _FROM | _TO | _PLACE | set(TIME)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[%‰]")
_GLUED = re.compile(  # `rttms`
    "(" + "|".join(_ROUND_TRIP | _UNSAID | _DELAY | _JITTER | _DEVIATION - {"sd", "dev"}) + ")"
    "(" + "|".join(sorted(set(TIME) - {"s"}, key=len, reverse=True)) + ")"
)


# `rttmSec`, `uS`: a prefix and its unit, which are no two words. `milli-seconds` are none either.
_SMALL = re.compile(
    r"(?:(?<![A-Za-z])|(?<=rtt)|(?<=ping)|(?<=latency)|(?<=delay)|(?<=time))"
    r"([mun]S(?:ec(?:ond)?s?)?)(?![a-z])"
)
_PREFIXED = re.compile(r"\b(deci|centi|milli|micro|nano|pico|kilo) (s|secs?|seconds?)\b")
_TOGETHER = {
    **dict.fromkeys(("round trip", "two way", "2 way"), "roundtrip"),
    **dict.fromkeys(("one way", "1 way"), "oneway"),
    "std dev": "stddev",
}


def words(name: str) -> list[str]:
    """The words of a column's name, in lower case: `rttAvg(µs)` has rtt, avg and us."""
    plain = name.replace("µ", "u").replace("μ", "u")
    plain = re.sub("(?<=[a-z])RTTs?|(?<![A-Za-z])RTTs?(?![A-Z])(?=[a-z]|\\b)", " rtt ", plain)
    plain = _SMALL.sub(lambda unit: f" {unit[1].lower()} ", plain)
    result: list[str] = []
    for word in _WORD.findall(plain):
        glued = _GLUED.fullmatch(word.lower())
        result += glued.groups() if glued else [word.lower()]
    text = " ".join(result)
    text = _PREFIXED.sub(r"\1\2", text)
    for several, one in _TOGETHER.items():
        text = re.sub(rf"\b{several}\b", one, text)
    return text.split()


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, and what it means."""

    name: str
    role: Role = "other"
    factor: int | None = None  # nanoseconds, or bits a second, of a number in it
    per: float | None = None  # what a loss is out of: 100 of percent
    unknown: tuple[str, ...] = ()  # words of a figure's name that nothing here knows
    words: tuple[str, ...] = field(default=())

    @property
    def is_delay(self) -> bool:
        """Whether it is named for delays in one direction."""
        return bool(_DELAY & set(self.words)) and not _ROUND_TRIP & set(self.words)

    @property
    def is_round_trip(self) -> bool:
        """Whether it is named for round trips."""
        return bool(_ROUND_TRIP & set(self.words))

    @property
    def is_certain(self) -> bool:
        """Whether its name states round trip, or one way, in so many words."""
        return bool({*_ROUND_TRIP, "owd", "oneway"} & set(self.words))

    @property
    def is_contradictory(self) -> bool:
        """Whether its name states both, round trip and one way."""
        return self.is_round_trip and bool({"owd", "oneway"} & set(self.words))

    @property
    def scale(self) -> str:
        """What in the name makes its figures something else than a time; or nothing."""
        match = _SCALED.search(self.name.replace("_", " "))
        return match[0].strip() if match and self.role == "figure" else ""

    @property
    def is_unsaid(self) -> bool:
        """Whether it may be of a round trip or of one direction: `latency`, and `p50_ms`."""
        return not self.is_certain and not self.is_delay

    @property
    def is_tail(self) -> bool:
        """Whether it has the largest of several figures, or a high percentile of them."""
        own = set(self.words)
        numbers = [int(word) for word in own if word.isdecimal()]
        is_percentile = bool(own & {"p", "percentile", "quantile"})
        return bool(own & _LARGEST) or (is_percentile and max(numbers, default=0) > _USUAL)

    @property
    def is_latency(self) -> bool:
        """Whether it is named `latency`."""
        return bool(_UNSAID & set(self.words))

    @property
    def is_time(self) -> bool:
        """Whether it is named for a time, and not for which: `avg_ms`, `milliseconds`."""
        own = {word for word in self.words if not word.isdecimal()}
        units = own & set(TIME)
        is_clock = units <= {"s", "sec", "secs", "second", "seconds"} and not own & _STATISTIC
        return (
            self.role == "other"
            and bool(units)
            and not is_clock
            and own <= _STATISTIC | _FILLER | set(TIME)
        )

    @property
    def unknown_in_brackets(self) -> str:
        """What may be a unit in brackets, and is none; or nothing."""
        inner = re.findall(r"[(\[]([^)\]]*)[)\]]", self.name)
        return next((text for text in inner if set(words(text)) - _KNOWN), "")

    @property
    def is_statistic(self) -> bool:
        """Whether its name can be that of a figure, and hardly that of a place."""
        return self.role not in ("other", "from", "to") or bool(
            self.words and set(self.words) <= _STATISTIC | _NO_TIME | _FILLER | set(TIME)
        )


def column(name: str, *, is_figure: bool = False) -> Column:
    """What a column's name means. `is_figure`: it has the figures, whatever its name is."""
    own = words(name)
    role: Role = "figure" if is_figure else _role(own)
    if role == "loss":
        shares = [SHARES[word] for word in (*own, *re.findall("[%‰]", name)) if word in SHARES]
        return Column(name, role, per=shares[0] if shares else None, words=tuple(own))
    if role == "rate":
        parts = re.split(r"[\s_()\[\],:]+|(?<=[a-z])(?=[A-Z])", name.replace("_per_", "/"))
        factors = [factor for part in parts if (factor := rate_factor(part)) is not None]
        return Column(name, role, factor=factors[0] if factors else None, words=tuple(own))
    if role not in ("figure", "jitter", "deviation"):
        return Column(name, role, words=tuple(own))
    units = {TIME[word] for word in own if word in TIME}
    unknown = [word for word in own if word not in _KNOWN and not word.isdecimal()]
    if len(units) == 1 and not (unknown and re.search(r"(?<![A-Za-z])US(?![A-Za-z])", name)):
        unknown = []  # `US` beside another word may be a country
    elif units:
        unknown = [word for word in own if word in TIME]
    factor = units.pop() if len(units) == 1 else None
    return Column(name, role, factor, unknown=tuple(dict.fromkeys(unknown)), words=tuple(own))


def _role(own: Sequence[str]) -> Role:
    known = set(own)
    if "lat" in known and not known & ({*TIME} | _STATISTIC):
        known = known - {"lat"}  # that is a latitude
    if known & {"unit", "units"} and not known & {*TIME}:
        return "unit"
    for role, named in _ROLES:
        is_other = role == "rate" and any(
            word not in _RATE | _RATE_WORDS and rate_factor(word) is None for word in known
        )  # as `success_rate` and `upload_rate` are
        if known & named and not known & _NO_TIME and not is_other:
            return role
    for end, named in _ENDS:
        if known & named and not known - named - _PLACE:
            return end
    return "other"


def quantity(name: str) -> str:
    """What figures of this name are, if they are no times: rates, losses, distances; or nothing."""
    if (role := _role(own := words(name))) == "figure":
        return ""
    parts = [part for part in re.split(r"[\s()\[\],:=_]+", name) if len(part) > 2]
    if role == "rate" or any(rate_factor(part) is not None for part in parts):
        return "rates"
    if role == "loss" or set(own) & {"percent", "pct", "%"}:
        return "shares"
    if role in ("jitter", "deviation"):
        return "deviations"
    if set(own) & {"km", "kilometers", "kilometres", "miles"}:
        return "distances"
    return "hops" if set(own) & {"hop", "hops"} else ""


def common_unit(places: Sequence[str]) -> tuple[int, list[str]] | None:
    """The unit that all places have behind them, `oslo (us)`, in ns, and their names without it."""
    matches = [re.fullmatch(r"(.*\S)\s*[(\[]\s*([a-zµμ]+)\s*[)\]]", name, re.I) for name in places]
    pairs = [(match[1], TIME.get(unit_word(match[2]))) for match in matches if match]
    factors = {factor for _, factor in pairs}
    if len(pairs) < len(places) or len(factors) != 1 or (factor := factors.pop()) is None:
        return None
    return factor, [name for name, _ in pairs]


def ends(columns: Sequence[Column]) -> tuple[Column, Column] | None:
    """The columns of where from and where to, or None where a table has no such two.

    Of `source` and `source_region`, the shorter name is meant. `site_a,site_b` are two as well.
    """
    both = [
        min((own for own in columns if own.role == role), key=lambda own: len(own.words))
        for role in ("from", "to")
        if any(own.role == role for own in columns)
    ]
    if len(both) == 2:
        return both[0], both[1]
    if len(columns) > 2 and any(own.role == "figure" or own.is_time for own in columns[2:]):
        a, b = columns[:2]
        alike = a.words[:-1] == b.words[:-1] and a.words and b.words
        if alike and (a.words[-1], b.words[-1]) in _TWO:
            return a, b
    return None


def names(columns: Iterable[Column]) -> str:
    """Columns in a sentence."""
    return listing((show(own.name) for own in columns), at_most=12) or "none"
