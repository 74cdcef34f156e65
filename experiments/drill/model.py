"""A drill: the YAML file that says what runs, who sends requests, and what is broken when."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from wanlat.experiments.drill.consistency import names_fit, systems_fit, times_fit
from wanlat.experiments.drill.fault_spec import FaultSpec
from wanlat.experiments.drill.phases import Phases, Positive
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction, Size
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import YamlModel

SHORTEST_INTERVAL = Duration(20 * 10**6)
"""Requests more often than this measure the machine that sends them."""


def _select(raw: Any) -> Any:
    if isinstance(raw, bool) or not isinstance(raw, str | int | list):
        raise ValueError(
            f"{show(raw)} selects no nodes; give `one`, `minority`, `majority`, `rest`, "
            "`one site`, a number, a role of the system, a node, a site or a list of these"
        )
    if isinstance(raw, int) and raw < 1:
        raise ValueError(f"{show(raw)} is no number of nodes; at least 1")
    if isinstance(raw, list):
        wrong = [each for each in raw if not isinstance(each, str)]
        if wrong or not raw:
            shown = show(wrong[0]) if wrong else "an empty list"
            raise ValueError(f"{shown} names no node; a list holds names of nodes")
    if raw == "":
        raise ValueError("it is empty; say which nodes have this role")
    return raw


Select = Annotated[StrictInt | StrictStr | list[StrictStr], BeforeValidator(_select)]


def _interval(interval: Duration) -> Duration:
    if interval < SHORTEST_INTERVAL:
        raise ValueError(
            f"{interval} is too short: a request is a process and a connection's work on this "
            f"machine too; at least {SHORTEST_INTERVAL}"
        )
    return interval


class Role(YamlModel):
    """Nodes under a name of their own, which faults and clients use."""

    select: Select = Field(
        description="`one`, a number, `minority`, `majority`, `rest`, `one site`, a node, a site, "
        "a role of the system, or a list of these"
    )

    key_hints: ClassVar[dict[str, str]] = dict.fromkeys(
        ("mode", "selector", "value", "nodes"), "which nodes have the role is `select`"
    )


class ClientSpec(YamlModel):
    """A client: one process that reads and one that writes, each one request at a time."""

    node: StrictStr = Field(description="where it runs: a role, a node or a site")
    target: StrictStr | None = Field(
        default=None, description="the node that its requests go to; default: its own"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "at": "where the client runs is `node`",
        "ask": "the node that its requests go to is `target`",
    }


class Timeouts(YamlModel):
    """The most that each wait may take. What was not read by then is unread."""

    ready: Positive = Field(
        default=Duration(120 * 10**9), description="until the new cluster is ready"
    )
    serve_after_restart: Positive = Field(
        default=Duration(60 * 10**9), description="until nodes that were started again serve"
    )
    verify_after_heal: Positive = Field(
        default=Duration(60 * 10**9),
        description="to read every object from every node after the heal",
    )
    verify_after_restart: Positive = Field(
        default=Duration(60 * 10**9), description="the same after the restart of all nodes"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "healed": "to read every object after the heal is `verify_after_heal`",
        "restarted": "to read every object after the restart is `verify_after_restart`",
        "serving": "until restarted nodes serve is `serve_after_restart`",
    }


class Drill(YamlModel):
    """A real cluster, broken at a known instant while single requests are measured."""

    checks_all_within: ClassVar[bool] = True

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Names the bundle")
    description: str = ""
    topology: str = Field(description="A shipped topology, or a path relative to this file")
    systems: list[StrictStr] = Field(
        default=["quorum"], min_length=1, description="Stores for which the drill is meant"
    )
    options: dict[str, dict[str, Any]] = Field(
        default={}, description="Options of each system, by its name"
    )
    roles: dict[str, Role] = Field(
        default={}, description="Names for nodes, drawn with the seed, in this order"
    )
    clients: dict[str, ClientSpec] = Field(
        min_length=1, description="Who sends requests, by a name for it"
    )
    interval: Annotated[Duration, AfterValidator(_interval)] = Field(
        default=Duration(250 * 10**6),
        description="Between two reads of a client, and between two writes",
    )
    deadline: Positive = Field(
        default=Duration(10 * 10**9), description="Of a request, counted from its due time"
    )
    objects: int = Field(
        default=200, ge=1, le=100_000, description="Written before anything is measured"
    )
    object_size: Size = Field(default=Size(1024), description="Size of the objects")
    delete_ratio: Fraction = Field(
        default=Fraction(0.1),
        description="The part of a client's writes that delete an object that it wrote",
    )
    storage: Literal["memory", "disk"] = Field(
        default="memory", description="Where the stores' data lies"
    )
    timeouts: Timeouts = Timeouts()
    phases: Phases
    faults: list[FaultSpec] = Field(min_length=1, description="What is broken, in `during`")
    seed: int | None = Field(
        default=None, ge=0, lt=2**63, description="Of every random choice. Default: drawn"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "delays are the topology's",
        "system": "`systems` takes a list",
        "role": "`roles` takes a mapping, such as `{victim: {select: one}}`",
        "cast": "names for nodes are `roles`, such as `{victim: {select: one}}`",
        "client": "`clients` takes a mapping, such as `{survivor: {node: survivor}}`",
        "vantages": "who sends requests is `clients`, such as `{survivor: {node: survivor}}`",
        "samples": "how many requests there are follows from `phases` and `interval`",
        "every": "the time between two requests is `interval`",
        "removes": "the part of the writes that delete is `delete_ratio`",
        "fault": "`faults` takes a list",
        "ready_timeout": "it is `ready`, under `timeouts`",
        "verification": "`timeouts` has `verify_after_heal` and `verify_after_restart`",
        "claims": "claims are in files of their own; docs/drills.md shows one",
    }

    @property
    def selects(self) -> dict[str, Any]:
        """Which nodes each role selects, as it was written."""
        return {name: role.select for name, role in self.roles.items()}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Return what does not fit together, of the parts and between them."""
        if not isinstance(raw, dict):
            return []
        faults = raw.get("faults")
        return [
            *(
                found.under(("faults", index))
                for index, each in enumerate(faults if isinstance(faults, list) else ())
                for found in FaultSpec.cross_checks(each)
            ),
            *systems_fit(raw),
            *names_fit(raw),
            *times_fit(raw),
        ]
