"""What the attributes of a graph's nodes and edges mean: names and units as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wanlat.topologies.figures import TIME, Parser, rate_factor
from wanlat.topologies.formats.network import Options, Way
from wanlat.topologies.headers import column
from wanlat.topologies.units import QuantityError
from wanlat.topologies.wording import listing, show

# Light in fibre: 5 us a km, as its index of refraction is 1.5.
NS_PER_KM = 5000
_EARTH_KM = 6371.0
# `8496 Mibit`, `1 gigabit`, `10 megabytes`: as Shadow writes rates, besides `Mbps` and its like.
_BINARY = re.compile(r"([kmgt])i(bit|bits|b|byte|bytes)(?:ps|/s)?", re.IGNORECASE)
_LONG = re.compile(r"(kilo|mega|giga|tera|kibi|mebi|gibi|tebi)(bit|byte)s?", re.IGNORECASE)
_NODES_RATE = {
    "up": re.compile(r"(?:host_?)?bandwidth_?up"),
    "down": re.compile(r"(?:host_?)?bandwidth_?down"),
}
_HALF = 0.5  # of all packets: hardly meant, unless a percentage is


def rate_bps(text: str) -> float | None:
    """Bits a second of `100 Mbit`, `8496 Mibit`, `10Mbps`; None without a unit.

    Raises QuantityError.
    """
    value, unit = Parser().number(text)
    if not unit:
        return None
    factor = rate_factor(unit)
    if match := _LONG.fullmatch(unit):
        unit = f"{match[1][0]}{'i' * match[1].lower().endswith('bi')}{match[2].lower()}"
        factor = rate_factor(unit)
    if match := _BINARY.fullmatch(unit):
        power = "kmgt".index(match[1].lower()) + 1
        is_bytes = match[2] == "B" or match[2].lower().startswith("byte")
        factor = 2 ** (10 * power) * (8 if is_bytes else 1)
    if factor is None:
        raise QuantityError(f"{show(unit)} in {show(text)} is not a unit of rates, such as `Mbit`")
    if not value:
        raise QuantityError(f"{show(text)} lets nothing through")
    return float(value) * factor


def great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The distance of two places, each latitude and longitude in degrees, on the Earth's surface.

    By the haversine formula, on a sphere.
    """
    (lat_a, lon_a), (lat_b, lon_b) = (tuple(map(math.radians, place)) for place in (a, b))
    h = math.sin((lat_b - lat_a) / 2) ** 2
    h += math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(h)))


@dataclass
class Attributes:
    """Reads the attributes of one file, and keeps what is to be noted of them."""

    options: Options
    bare: int = 0
    lossy: int = 0
    left_out: dict[str, None] = field(default_factory=dict)
    has_round_trips: bool = False
    has_kibibytes: bool = False

    def edge(self, attributes: Mapping[str, str]) -> tuple[Way, bool]:
        """What an edge does in each direction, and whether it has a delay of its own.

        Raises QuantityError for an attribute that cannot be read.
        """
        delay_ns, jitter_ns, loss, rate = math.nan, 0.0, 0.0, math.inf
        for name, text in attributes.items():
            own = column(name)
            if name.lower() == "linkspeedraw":  # of the Topology Zoo: bits a second
                rate = min(rate, float(text) or math.inf)
            elif own.role == "figure" and not own.is_statistic:
                self.left_out[name] = None
            elif own.role == "figure" and math.isnan(delay_ns):
                if own.unknown or own.scale:
                    raise QuantityError(
                        f"the unit of {show(name)} is not clear; name it `latency_ms`, or write the"
                        " unit behind the figure: `8 ms`"
                    )
                self.has_round_trips |= own.is_round_trip
                delay_ns = self._ns(text, own.factor) / (2 if own.is_round_trip else 1)
            elif own.role == "jitter":
                jitter_ns = self._ns(text, own.factor)
            elif own.role == "loss":
                loss = Parser().loss(text, own.per or 1).value
                self.lossy += own.per is None and "%" not in text and loss >= _HALF
            elif own.role == "rate":
                number, unit = Parser().number(text)
                bps = rate_bps(text) if unit else float(number) * (own.factor or 0)
                rate = min(rate, bps or math.inf)
                if not bps and number:
                    self.left_out[name] = None
            elif own.role in ("deviation", "figure"):
                self.left_out[name] = None
        has_delay = not math.isnan(delay_ns)
        known_ns = delay_ns if has_delay else 0.0
        jitter_ns = min(jitter_ns, known_ns)  # a packet is never early
        return Way(known_ns, jitter_ns, loss, rate), has_delay

    def line(self, attributes: Mapping[str, str], way: str) -> float:
        """What the line of each host at a node carries `up` or `down`, in bits a second."""
        for name, text in attributes.items():
            if _NODES_RATE[way].fullmatch(name.lower()):
                bps = rate_bps(text)
                if bps is None:  # Shadow 1: KiB/s
                    self.has_kibibytes = True
                    bps = float(Parser().number(text)[0]) * 8 * 1024
                return bps or math.inf
        return math.inf

    def notes(self) -> list[str]:
        """What was assumed."""
        unit = self.options.unit or "ms"
        rows = [
            (self.bare, f"{self.bare} times without a unit are read as {unit} (--unit)"),
            (
                self.lossy,
                f"{self.lossy} edges lose half of the packets or more: a loss without a sign is a"
                " fraction, and percent are written `0.5%`",
            ),
            (self.has_round_trips, "round trips of edges are halved: a direction has one half"),
            (self.has_kibibytes, "bandwidths of nodes without a unit are read as KiB/s"),
            (
                self.left_out,
                f"left out, for want of a unit or a meaning: {listing(self.left_out, at_most=8)}",
            ),
        ]
        return [text for is_so, text in rows if is_so]

    def _ns(self, text: str, factor: int | None) -> float:
        value, unit = Parser().number(text)
        self.bare += bool(value and not unit and factor is None)
        return Parser().time_ns(text, factor or TIME[self.options.unit or "ms"])


def position(attributes: Mapping[str, str]) -> tuple[float, float] | None:
    """Latitude and longitude of a node, in degrees; None where it has not both."""
    known = {name.lower(): text for name, text in attributes.items()}
    for keys in (("latitude", "longitude"), ("lat", "lon"), ("lat", "long"), ("lat", "lng")):
        try:
            latitude, longitude = (float(known[key]) for key in keys)
        except (KeyError, ValueError):
            continue
        if abs(latitude) <= 90 and abs(longitude) <= 360:
            return latitude, longitude
    return None
