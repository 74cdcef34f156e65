"""A drill: the YAML file that says what is run, what is broken when, and what is claimed of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from wanlat.experiments.drill.claim import Claim
from wanlat.experiments.drill.consistency import claims_fit, names_fit, systems_fit, times_fit
from wanlat.experiments.drill.fault_spec import FaultSpec
from wanlat.experiments.drill.phases import Phases, Positive
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction, Size
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import YamlModel

SHORTEST_EVERY = Duration(20 * 10**6)
"""Requests more often than this measure the machine that sends them."""


def _cast(raw: Any) -> Any:
    if isinstance(raw, bool) or not isinstance(raw, str | int | list):
        raise ValueError(
            f"{show(raw)} picks no nodes; a cast is `one`, `minority`, `majority`, `rest`, "
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
        raise ValueError("it is empty; name who plays this part")
    return raw


CastSpec = Annotated[StrictInt | StrictStr | list[StrictStr], BeforeValidator(_cast)]


def _every(every: Duration) -> Duration:
    if every < SHORTEST_EVERY:
        raise ValueError(
            f"every {every} is too often: a request is a process and a connection's work on this "
            f"machine too; at least {SHORTEST_EVERY}"
        )
    return every


class Vantage(YamlModel):
    """A place from which a drill probes: two clients, one that reads and one that writes."""

    at: StrictStr = Field(description="where the clients stand: a node, a site, or a name of cast")
    ask: StrictStr | None = Field(
        default=None, description="the node that is asked; default: the one they stand on"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "target": "the node that is asked is `ask`",
        "client": "where the clients stand is `at`",
    }


class Verification(YamlModel):
    """How much time each step after the phases may take. What was not read by then is unread."""

    healed: Positive = Field(
        default=Duration(60 * 10**9),
        description="to read every object from every node after the heal",
    )
    restarted: Positive = Field(
        default=Duration(60 * 10**9), description="the same after the restart of all nodes"
    )
    serving: Positive = Field(
        default=Duration(60 * 10**9),
        description="until nodes that were started again serve requests",
    )


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
    cast: dict[str, CastSpec] = Field(
        default={}, description="Names for nodes that are drawn with the seed, in this order"
    )
    vantages: dict[str, Vantage] = Field(
        min_length=1, description="Where clients stand, by a name for it"
    )
    every: Annotated[Duration, AfterValidator(_every)] = Field(
        default=Duration(250 * 10**6), description="One request of each client is due so often"
    )
    deadline: Positive = Field(
        default=Duration(10 * 10**9), description="Of a request, counted from its due time"
    )
    objects: int = Field(
        default=200, ge=1, le=100_000, description="Written before anything is measured"
    )
    object_size: Size = Field(default=Size(1024), description="Size of the objects")
    removes: Fraction = Field(
        default=Fraction(0.1),
        description="The part of the writing clients' requests that remove an object of theirs",
    )
    storage: Literal["memory", "disk"] = Field(
        default="memory", description="Where the stores' data lies"
    )
    ready_timeout: Positive = Field(
        default=Duration(120 * 10**9), description="How long a cluster may take to be ready"
    )
    verification: Verification = Verification()
    phases: Phases
    faults: list[FaultSpec] = Field(min_length=1, description="What is broken, in `during`")
    claims: list[Claim] = Field(default=[], description="What is said of it, and where")
    seed: int | None = Field(
        default=None, ge=0, lt=2**63, description="Of every random choice. Default: drawn"
    )

    key_hints: ClassVar[dict[str, str]] = {
        "rtt": "delays are the topology's",
        "system": "`systems` takes a list",
        "client": "clients stand at `vantages`",
        "samples": "how many requests there are follows from `phases` and `every`",
        "fault": "`faults` takes a list",
        "claim": "`claims` takes a list",
    }

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Tell what does not fit together, of the parts and between them."""
        if not isinstance(raw, dict):
            return []
        found: list[Finding] = []
        found += _each(FaultSpec, raw, "faults")
        found += _each(Claim, raw, "claims")
        found += systems_fit(raw)
        found += names_fit(raw)
        found += times_fit(raw)
        found += claims_fit(raw)
        return found


def _each(model: type[YamlModel], raw: Mapping[str, Any], key: str) -> Iterator[Finding]:
    """Call the checks of the models at a key: one, or a list of them."""
    value = raw.get(key)
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from (found.under((key, index)) for found in model.cross_checks(each))
    elif value is not None:
        yield from (found.under((key,)) for found in model.cross_checks(value))
