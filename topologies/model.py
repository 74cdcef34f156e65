"""The topology file as typed, frozen models: what one may write, before anything is resolved.

`docs/reference/topology.md` shows the format by example. The models check the types of their
fields; what must hold between fields is in `checks.py`.
"""

import re
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from wanlat.topologies import checks
from wanlat.topologies.findings import Finding
from wanlat.topologies.limits import MAX_NODES_PER_SITE, MAX_SITES, NAME_PATTERN
from wanlat.topologies.shapes import Distribution
from wanlat.topologies.tables import Table
from wanlat.topologies.units import Duration, Fraction, QuantityError, Rate, Size
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import YamlModel

_NAME_RULE = "1 to 32 of a-z, 0-9 and -, not starting with -"


def _wrong(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("topology", "{text}", {"text": sentence})


def _name(text: str) -> str:
    # fullmatch: `$` alone would let a line break at the end pass.
    if re.fullmatch(NAME_PATTERN, text) is None:
        raise _wrong(f"{show(text)} cannot be a host name here; allowed: {_NAME_RULE}")
    return text


# Names of sites and nodes become host names.
Name = Annotated[
    StrictStr,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN, "description": _NAME_RULE}),
]

# In a link, where a name that no site has is told as that.
SiteName = Annotated[StrictStr, WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})]


class _RoundTrip(YamlModel):
    rtt: Duration = Field(description="round-trip time that the link adds, such as `100ms`")
    jitter: Duration = Field(
        default=Duration(0),
        description="how far the round trip varies around rtt, half of it in each direction:"
        " either way at most, or the standard deviation, as `distribution` says",
        json_schema_extra={"default": "0ms"},
    )


class Bursts(YamlModel):
    """Loss in bursts after Gilbert and Elliott: a good and a bad state, one step a packet."""

    p: Fraction = Field(description="probability of the step from the good state to the bad one")
    r: Fraction = Field(description="probability of the step from the bad state to the good one")
    h: Fraction = Field(
        default=Fraction(0),
        description="probability that a packet is delivered in the bad state",
        json_schema_extra={"default": "0%"},
    )
    k: Fraction = Field(
        default=Fraction(1),
        description="probability that a packet is delivered in the good state",
        json_schema_extra={"default": "100%"},
    )

    def invalid(self) -> list[Finding]:
        """Both states are entered, and the bad one is the worse."""
        return checks.bursts(dict(self))


def _fraction_or_bursts(raw: Any) -> Any:
    if isinstance(raw, dict | Bursts):
        return raw
    try:
        return Fraction.parse(raw)
    except QuantityError as error:
        raise _wrong(f"{error}; `{{p: 1%, r: 30%}}` is loss in bursts") from None


Loss = Annotated[
    Annotated[Fraction, Tag("(fraction)")] | Annotated[Bursts, Tag("(bursts)")],
    Discriminator(lambda raw: "(bursts)" if isinstance(raw, dict | Bursts) else "(fraction)"),
    BeforeValidator(_fraction_or_bursts),
]


def _whether_or_part(raw: Any) -> Any:
    if isinstance(raw, bool):
        return raw
    allowed = "`true` or `false` (whether jitter may reorder), or the part that overtakes: `1%`"
    try:
        part = Fraction.parse(raw)
    except QuantityError:
        raise _wrong(f"{show(raw)} is not allowed here; allowed: {allowed}") from None
    if part.value == 1:
        raise _wrong(f"when all packets leave at once, none overtakes; allowed: {allowed}")
    return part if part.value else False


Reorder = Annotated[
    Annotated[StrictBool, Tag("(whether)")] | Annotated[Fraction, Tag("(part)")],
    Discriminator(lambda raw: "(whether)" if isinstance(raw, bool) else "(part)"),
    BeforeValidator(_whether_or_part),
]


class _Quality(YamlModel):
    distribution: Distribution | None = Field(
        default=None,
        description="how delays spread: `uniform` within the jitter (the default); `normal`,"
        " `pareto` or `table` with the jitter as their standard deviation",
    )
    table: Table | None = Field(
        default=None, description="samples of the delay, for `distribution: table`"
    )
    reorder: Reorder = Field(
        default=False,
        description="whether jitter may let a packet overtake an earlier one of its flow; or the"
        " part of the packets that leaves at once, ahead of those on their way",
    )
    loss: Loss | None = Field(
        default=None,
        description="part of the packets that is lost, each by its own draw; or in bursts",
    )
    duplicate: Fraction | None = Field(
        default=None, description="part of the packets that arrives twice"
    )
    corrupt: Fraction | None = Field(
        default=None, description="part of the packets in which one bit is flipped (netem only)"
    )
    rate: Rate | None = Field(default=None, description="bits a second; default: unlimited")
    queue: Size | None = Field(
        default=None,
        description="bytes that may wait for the rate, before what comes is dropped;"
        " needs `rate`; default: what it sends in 100 ms, at least 64 KiB",
    )

    def invalid(self) -> list[Finding]:
        """Jitter and its shape against rtt or delay, queue against rate."""
        return checks.link(dict(self))


# Bases are named last to first: pydantic collects fields from the end of the list.
class Link(_Quality, _RoundTrip):
    """Both directions of a link: each is delayed by half of rtt, give or take half of jitter."""

    key_hints: ClassVar[dict[str, str]] = {
        "delay": "both directions together have an `rtt`; `delay` goes with `from` and `to`",
    }


class _Between(YamlModel):
    between: tuple[SiteName, ...] = Field(
        min_length=2,
        max_length=2,
        description="two different sites",
        json_schema_extra={"uniqueItems": True},
    )


class Both(Link, _Between):
    """A pair of sites with two directions that are alike."""

    key_hints: ClassVar[dict[str, str]] = Link.key_hints | dict.fromkeys(
        ("from", "to"), "a pair has either `between`, or `from` and `to` for one direction"
    )


class _OneWay(YamlModel):
    delay: Duration = Field(
        default=Duration(0),
        description="one-way delay that the direction adds, such as `5ms`",
        json_schema_extra={"default": "0ms"},
    )
    jitter: Duration = Field(
        default=Duration(0),
        description="how far a packet's delay varies around `delay`: either way at most,"
        " or the standard deviation, as `distribution` says",
        json_schema_extra={"default": "0ms"},
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "one direction has a `delay` (one way); `rtt` goes with `between`, or with `lan`",
    }


class _Ends(YamlModel):
    from_: SiteName = Field(alias="from", description="the site that sends")
    to: SiteName = Field(description="the site that receives")


class OneWay(_Quality, _OneWay, _Ends):
    """One direction of a pair of sites: delayed by `delay`, give or take `jitter`."""

    delay: Duration = Field(description="one-way delay that the direction adds, such as `50ms`")


def _pair_kind(raw: Any) -> str | None:
    if isinstance(raw, BaseModel):
        return "(between)" if isinstance(raw, Both) else "(one way)"
    keys = raw if isinstance(raw, dict) else {}
    if "between" in keys:
        return "(between)"
    return "(one way)" if "from" in keys or "to" in keys else None


Pair = Annotated[
    Annotated[Both, Tag("(between)")] | Annotated[OneWay, Tag("(one way)")],
    Discriminator(
        _pair_kind,
        custom_error_type="pair",
        custom_error_message="a pair is `between: [a, b]`, or `from: a` and `to: b`",
    ),
]


def _count_or_names(raw: Any) -> Any:
    if isinstance(raw, bool) or not isinstance(raw, int | list | tuple):
        raise _wrong(
            f"{show(raw)} is neither a count nor a list; write a count such as `2`,"
            " or names such as `[n1, n2]`"
        )
    return raw


Nodes = Annotated[
    Annotated[StrictInt, Field(ge=1, le=MAX_NODES_PER_SITE), Tag("(count)")]
    | Annotated[
        tuple[Name, ...],
        Field(min_length=1, max_length=MAX_NODES_PER_SITE, json_schema_extra={"uniqueItems": True}),
        Tag("(names)"),
    ],
    Discriminator(lambda raw: "(count)" if isinstance(raw, int) else "(names)"),
    BeforeValidator(_count_or_names),
]


class Way(_Quality, _OneWay):
    """One direction of a node's access line."""


class Access(YamlModel):
    """A node's own line to its site's router: what it sends and what it receives differ."""

    up: Way = Field(default=Way(), description="from the node to its router")
    down: Way = Field(default=Way(), description="from the router to the node")


class Site(YamlModel):
    """One datacenter: its nodes and the network between them."""

    name: Name = Field(description="the name of the site, unique")
    nodes: Nodes = Field(
        description="names of the nodes, unique across all sites; or a count, which makes names:"
        " `2` in site `dc1` makes `dc1-1` and `dc1-2`"
    )
    lan: Link | None = Field(
        default=None, description="what lies between two nodes of the site; default: no impairment"
    )
    access: Access | None = Field(
        default=None,
        description="in place of `lan`: each node's own line, whose two directions differ",
    )

    def invalid(self) -> list[Finding]:
        """One of `lan` and `access`."""
        if self.lan is None or self.access is None:
            return []
        text = "`access` stands in the place of `lan`: both say what the nodes' links do"
        return [Finding(("access",), f"{text}; remove one", at_key=True)]

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes in order, given or made from the count."""
        if isinstance(self.nodes, int):
            return tuple(f"{self.name}-{number}" for number in range(1, self.nodes + 1))
        return self.nodes


class Links(YamlModel):
    """The network between the sites."""

    default: Link | None = Field(
        default=None,
        description="every direction between two sites that `pairs` does not give;"
        " may be absent when `pairs` gives all",
    )
    pairs: tuple[Pair, ...] = Field(default=(), description="what differs from the default")


class Topology(YamlModel):
    """Sites, their nodes and the links between them, as in the YAML file."""

    name: Name = Field(description="the name of the topology")
    description: StrictStr = Field(default="", description="one line for people")
    sites: Annotated[tuple[Site, ...], Field(min_length=1, max_length=MAX_SITES)] = Field(
        description="the datacenters"
    )
    links: Links = Field(
        default=Links(),
        description="what lies between the sites; may be absent when there is one site",
    )

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Everything that must hold across the file."""
        return checks.topology(raw)
