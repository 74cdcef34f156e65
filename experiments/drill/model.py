"""A drill: the YAML file with what runs, who sends requests, and what is broken when."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from wanlat.emulator.faults.catalogue import KINDS
from wanlat.experiments.config.study import not_a_path
from wanlat.experiments.drill.files import DrillError, find
from wanlat.systems import registry
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction, Size
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel, refused, unique, within

Way = Literal["read", "write", "list"]
"""What clients request; a part of writes are removes."""
PhaseName = Literal["before", "during", "after"]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)

MIN_INTERVAL = Duration(20 * 10**6)
"""Requests more often than this measure the machine that sends them."""
MIN_REQUESTS = 10
"""Due of each client in a phase: fewer show nothing."""
MOST_IN_FLIGHT = 1000
"""Each is a process, and they are started as they are needed."""


def _system(given: str) -> str:
    known = registry.names()
    if not_a_path(given) not in known:
        near = did_you_mean(given, known)
        raise ValueError(f"{show(given)} is no system{near}; there are {listing(known)}")
    return given


def _select(given: Any) -> Any:
    """Refuse what selects nodes on no topology; the rest is for who draws them."""
    if isinstance(given, bool) or not isinstance(given, str | int | list):
        raise ValueError(
            f"{show(given)} selects no nodes; give `one`, `minority`, `majority`, `rest`, "
            "`one site`, a number, a role of the system, a node, a site or a list of these"
        )
    return given


Positive = Annotated[Duration, within(Duration(1))]
SystemName = Annotated[StrictStr, AfterValidator(_system)]
Select = Annotated[int | str | list[Any], BeforeValidator(_select)]
ClientName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
_Text = Annotated[StrictStr, Field(pattern=r"\S")]
_TARGET = TypeAdapter[Any](
    _Text
    | Annotated[list[_Text | Annotated[list[_Text], Field(min_length=1)]], Field(min_length=1)]
)
"""What a fault hits: a text, or a list of texts or of groups of texts."""


class Role(YamlModel):
    """Nodes under a name of their own, which faults and clients use."""

    select: Select = Field(
        description="`one`, a number, `minority`, `majority`, `rest`, `one site`, a node, a site, "
        "a role of the system, or a list of these"
    )


class ClientSpec(YamlModel):
    """A client: its reads, writes and lists, each sent when due, up to `in_flight` on their way."""

    node: StrictStr = Field(description="where it runs: a role, a node or a site")
    target: StrictStr | None = Field(
        default=None, description="the node that its requests go to; default: its own"
    )


class Phases(YamlModel):
    """How long requests are measured before, during and after the faults."""

    before: Positive = Field(description="how long it is whole first, such as `20s`")
    during: Positive = Field(description="how long the faults have, such as `40s`")
    after: Positive = Field(description="how long it has to recover, such as `40s`")


class Timeouts(YamlModel):
    """The most that each wait may take. What was not read by then is unread."""

    ready: Positive = Field(
        default=Duration(120 * 10**9),
        description="until the new cluster is ready; 600 of the largest RTT are added",
    )
    serve_after_restart: Positive = Field(
        default=Duration(60 * 10**9),
        description="until nodes that were started again serve; likewise",
    )
    verify_after_heal: Positive = Field(
        default=Duration(60 * 10**9),
        description="to read every object from every node after the heal",
    )
    verify_after_restart: Positive = Field(
        default=Duration(60 * 10**9), description="the same after the restart of all nodes"
    )


class FaultSpec(YamlModel):
    """One entry of `faults`: one key is the kind, its value the target; others are settings.

    {kill: victim, at: 0s, for: 30s}
    """

    model_config = ConfigDict(extra="allow")

    at: Duration = Field(
        default=Duration(0), description="when it begins, from the beginning of `during`"
    )
    lasts: Positive | None = Field(
        default=None, alias="for", description="how long; default: to the end of `during`"
    )

    @property
    def kind(self) -> str:
        """The kind of fault, as `wanlat.emulator.faults.catalogue` names it."""
        return next(key for key in self._extra if key in KINDS)

    @property
    def target(self) -> Any:
        """What is hit, as it was written: a text, or a list of texts or of groups of texts."""
        return self._extra[self.kind]

    @property
    def settings(self) -> dict[str, Any]:
        """How it is hit: what the entry has besides its kind and its times."""
        return {key: value for key, value in self._extra.items() if key != self.kind}

    @property
    def _extra(self) -> dict[str, Any]:
        return self.model_extra or {}

    @model_validator(mode="after")
    def _is_one_fault(self) -> Self:
        """An entry has exactly one kind, and a target of the right type."""
        kinds = [key for key in self._extra if key in KINDS]
        if not kinds:
            raise refused([_no_kind(list(self._extra))])
        if len(kinds) > 1:
            text = (
                f"an entry is one fault, and this has {listing(map(show, kinds))}; write an entry "
                "for each"
            )
            raise refused([Finding((kinds[1],), text, at_key=True)])
        try:
            _TARGET.validate_python(self.target)
        except ValidationError:
            text = f"the value of `{self.kind}` says what is hit: a text or a list"
            if isinstance(self.target, dict):
                text += f"; settings stand beside it: {{{self.kind}: TARGET, SETTING: VALUE}}"
            raise refused([Finding((self.kind,), text)]) from None
        return self


def _no_kind(keys: list[str]) -> Finding:
    """The finding on an entry without a kind of fault."""
    known = list(KINDS)
    if not keys:
        return Finding((), f"no kind of fault is named; there are {listing(known)}")
    near = next((key for key in keys if did_you_mean(key, known)), keys[0])
    text = f"{show(near)} is no kind of fault{did_you_mean(near, known)}; there are"
    return Finding((near,), f"{text} {listing(known)}", at_key=True)


class Drill(YamlModel):
    """A real cluster, broken at a known instant while single requests are measured."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Names the bundle")
    description: str = Field(default="", description="One line for people")
    topology: str = Field(description="A shipped topology, or a path relative to this file")
    systems: Annotated[list[SystemName], unique("each has a run of its own")] = Field(
        default=["quorum"], min_length=1, description="Stores for which the drill is meant"
    )
    options: dict[str, dict[str, Any]] = Field(
        default={}, description="Options of each system, by its name"
    )
    roles: dict[str, Role] = Field(
        default={}, description="Names for nodes, drawn with the seed, in this order"
    )
    clients: dict[ClientName, ClientSpec] = Field(
        min_length=1, description="Who sends requests, by a name for it"
    )
    interval: Annotated[
        Duration, within(MIN_INTERVAL, why=": a request is work for this machine too")
    ] = Field(
        default=Duration(250 * 10**6),
        description="Between two reads of a client, and between two writes",
    )
    deadline: Positive = Field(
        default=Duration(10 * 10**9), description="Of a request, counted from its due time"
    )
    in_flight: int | None = Field(
        default=None,
        ge=1,
        le=MOST_IN_FLIGHT,
        description=(
            "Of a client's reads (writes) on their way at once, the most; default: as many as are "
            f"due within `deadline`, so that none waits for another, up to {MOST_IN_FLIGHT}. What "
            "waits until it is too late has expired, and counts against availability"
        ),
    )
    operations: Annotated[list[Way], unique("each is asked for all along")] = Field(
        default=["read", "write"],
        min_length=1,
        description="What clients ask for; a store without `list` is not asked for it",
    )
    objects: int = Field(
        default=200, ge=1, le=100_000, description="Written before anything is measured"
    )
    object_size: Annotated[
        Size, within(Size(1), why=": of an empty object nobody can tell whether it is there")
    ] = Field(default=Size(1024), description="Size of the objects")
    delete_ratio: Fraction = Field(
        default=Fraction(0.1),
        description="The part of a client's writes that delete an object that it wrote",
    )
    storage: Literal["memory", "disk"] = Field(
        default="memory", description="Where the stores' data lies"
    )
    max_network_error: Duration = Field(
        default=Duration(25 * 10**6),
        description="Largest accepted error of the network during a sample, and at calibration",
    )
    timeouts: Timeouts = Field(default=Timeouts(), description="The most that each wait may take")
    phases: Phases = Field(description="How long requests are measured: before, during, after")
    faults: list[FaultSpec] = Field(min_length=1, description="What is broken, in `during`")
    seed: int | None = Field(
        default=None, ge=0, lt=2**63, description="Of every random choice. Default: drawn"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "delays are the topology's",
        "system": "`systems` takes a list",
        "role": "`roles` takes a mapping, such as `{victim: {select: one}}`",
        "client": "`clients` takes a mapping, such as `{survivor: {node: survivor}}`",
        "samples": "how many requests there are follows from `phases` and `interval`",
        "fault": "`faults` takes a list",
        "ready_timeout": "it is `ready`, under `timeouts`",
        "claims": "claims are in files of their own; docs/reference/claims.md shows one",
    }

    @property
    def most_in_flight(self) -> int:
        """How many requests of a client and operation may be on their way."""
        due = -(-self.deadline.ns // self.interval.ns) + 1
        return self.in_flight or min(due, MOST_IN_FLIGHT)

    @property
    def waits_for_none(self) -> bool:
        """Whether no request ever has to wait for others to be done."""
        return self.most_in_flight * self.interval.ns > self.deadline.ns

    @property
    def selects(self) -> dict[str, Any]:
        """Which nodes each role selects, as it was written."""
        return {name: role.select for name, role in self.roles.items()}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Options are of its systems; phases are long enough for requests and faults."""
        if findings := list(self._invalid()):
            raise refused(findings)
        return self

    def _invalid(self) -> Iterator[Finding]:
        for name in self.options:
            if name not in self.systems:
                text = f"{show(name)} is not among `systems`{did_you_mean(name, self.systems)}: "
                yield Finding(("options", name), f"{text}{listing(self.systems)}", at_key=True)
        for phase in PHASES:
            length: Duration = getattr(self.phases, phase)
            if length.ns < MIN_REQUESTS * self.interval.ns:
                text = (
                    f"{length} is too short: with `interval: {self.interval}` fewer than "
                    f"{MIN_REQUESTS} requests of a client are due in it. Lengthen it, or shorten "
                    "`interval`"
                )
                yield Finding(("phases", phase), text)
        during = self.phases.during
        for index, fault in enumerate(self.faults):
            end = Duration(fault.at.ns + (fault.lasts.ns if fault.lasts else 0))
            if fault.at >= during:
                text = f"it would begin after `during`, which lasts {during}"
                yield Finding(("faults", index, "at"), text)
            elif end > during:
                text = (
                    f"it would end {end} after the beginning of `during`, which lasts {during}; "
                    "every fault is healed by its end"
                )
                yield Finding(("faults", index, "for"), text)


@cache
def scenario(name: str) -> Drill:
    """Return a shipped drill as its file has it, unchecked on its topology."""
    return load_yaml_model(find(name), Drill, error=DrillError)
