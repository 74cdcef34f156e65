"""A drill: the YAML file that says what is run, what is broken when, and what is claimed of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr

from emulator.faults.catalogue import KINDS
from systems import registry
from topologies.findings import Finding
from topologies.units import Duration, Fraction, Quantity, QuantityError, Size
from topologies.wording import did_you_mean, listing, show
from topologies.yaml_model import YamlModel

PhaseName = Literal["before", "during", "after"]
PHASES: tuple[PhaseName, ...] = ("before", "during", "after")

SHORTEST_EVERY = Duration(20 * 10**6)
"""Requests more often than this measure the machine that sends them."""
LEAST_REQUESTS = 10
"""Due of each client in a phase: of fewer nothing can be said."""

_VANTAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


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


def _not_zero(given: Duration) -> Duration:
    if given.ns == 0:
        raise ValueError("0 leaves no time; more than that")
    return given


Positive = Annotated[Duration, AfterValidator(_not_zero)]


class Phases(YamlModel):
    """How long requests are measured before, during and after the faults."""

    before: Positive = Field(description="how long it is whole first, such as `20s`")
    during: Positive = Field(description="how long the faults have, such as `40s`")
    after: Positive = Field(description="how long it has to recover, such as `40s`")


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


class FaultSpec(YamlModel):
    """One entry of `faults`: one key is the kind, whose value is the target; others are settings.

    {kill: victim, at: 0s, for: 30s}
    """

    model_config = ConfigDict(extra="allow")

    at: Duration = Field(
        default=Duration(0),
        description="when it begins, from the beginning of `during`",
        json_schema_extra={"default": "0ms"},
    )
    lasts: Positive | None = Field(
        default=None, alias="for", description="how long; default: to the end of `during`"
    )

    @property
    def kind(self) -> str:
        """The kind of fault, as `emulator.faults.catalogue` names it."""
        return next(key for key in self._extra if key in KINDS)

    @property
    def target(self) -> Any:
        """What is hit, as it was written: a text, or a list of texts or of groups of texts."""
        return self._extra[self.kind]

    @property
    def settings(self) -> dict[str, Any]:
        """How it is hit: what the entry has besides its kind and its times."""
        kind = self.kind
        return {key: value for key, value in self._extra.items() if key != kind}

    @property
    def _extra(self) -> dict[str, Any]:
        return self.model_extra or {}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Tell of an entry that has not exactly one kind, or a target of the wrong type."""
        if not isinstance(raw, dict):
            return []
        kinds = list(KINDS)
        given = [key for key in raw if key in KINDS]
        others = [str(key) for key in raw if key not in KINDS and key not in ("at", "for")]
        if not given:
            near = next(
                (each for each in others if did_you_mean(each, kinds)), others[0] if others else ""
            )
            said = f"{show(near)} is no kind of fault{did_you_mean(near, kinds)}" if near else ""
            text = f"{said or 'no kind of fault is named'}; there are {listing(KINDS)}"
            path = (near,) if near in raw else ()
            return [Finding(path, text, at_key=bool(path))]
        if len(given) > 1:
            text = (
                f"an entry is one fault, and this has {listing(map(show, given))}; write an entry "
                "for each"
            )
            return [Finding((given[1],), text, at_key=True)]
        return list(_target(given[0], raw[given[0]]))


def _target(kind: str, target: Any) -> Iterator[Finding]:
    if not _is_text(target) and not (
        isinstance(target, list)
        and target
        and all(_is_text(each) or (isinstance(each, list) and each) for each in target)
        and all(_is_text(word) for each in target if isinstance(each, list) for word in each)
    ):
        text = f"the value of `{kind}` says what is hit: a text or a list"
        if isinstance(target, dict):
            text += f"; settings stand beside it: {{{kind}: TARGET, SETTING: VALUE}}"
        yield Finding((kind,), text)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


class Availability(YamlModel):
    """A bound on ok / attempted; exactly one of the two."""

    at_least: Fraction | None = None
    at_most: Fraction | None = None

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Exactly one bound."""
        if not isinstance(raw, dict):
            return []
        if len([key for key in ("at_least", "at_most") if raw.get(key) is not None]) == 1:
            return []
        return [Finding((), "give one bound: `{at_least: 90%}` or `{at_most: 10%}`")]


class Claim(YamlModel):
    """What somebody says that a system does when it is broken so."""

    claim: StrictStr = Field(min_length=1, description="what is said, in a sentence")
    source: StrictStr = Field(min_length=1, description="where: document, section, URL")
    systems: list[StrictStr] | None = Field(
        default=None, min_length=1, description="of which systems; default: all of the drill"
    )
    of: Literal["reads", "writes"] | None = Field(default=None, description="of which requests")
    vantage: StrictStr | None = Field(default=None, description="from where; default: all")
    phase: PhaseName = "during"
    since: Duration = Field(
        default=Duration(0),
        alias="from",
        description="from when on in the phase",
        json_schema_extra={"default": "0ms"},
    )
    to: Duration | None = Field(default=None, description="until when; default: the phase's end")
    availability: Availability | None = None
    durability: Literal["intact", "broken"] | None = None

    def is_of(self, system: str) -> bool:
        """Whether it is said of this system."""
        return self.systems is None or system in self.systems

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """A claim is of availability, with what that is of, or of durability, with nothing."""
        if not isinstance(raw, dict):
            return []
        of_requests = raw.get("availability") is not None
        of_objects = raw.get("durability") is not None
        if of_requests == of_objects:
            return [Finding((), "a claim is either of `availability` or of `durability`")]
        found = list(_each(Availability, raw, "availability"))
        if of_requests and raw.get("of") is None:
            text = "say `of: reads` or `of: writes`: their availability is claimed"
            found.append(Finding(("availability",), text))
        if of_objects:
            for key in ("of", "vantage", "phase", "from", "to"):
                # A model made in code is checked as its dump, where defaults are filled in.
                if raw.get(key) in (None, "during", Duration(0)):
                    continue
                text = "durability is of every object, whenever and from wherever it was written"
                found.append(Finding((key,), f"{text}; leave `{key}` out", at_key=True))
        return found


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
        found += _systems(raw)
        found += _names(raw)
        found += _times(raw)
        found += _claims(raw)
        return found


def _each(model: type[YamlModel], raw: Mapping[str, Any], key: str) -> Iterator[Finding]:
    """Call the checks of the models at a key: one, or a list of them."""
    value = raw.get(key)
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from (found.under((key, index)) for found in model.cross_checks(each))
    elif value is not None:
        yield from (found.under((key,)) for found in model.cross_checks(value))


def _systems(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Every system exists and is named once; options and claims are of those that are named."""
    given = raw.get("systems", ["quorum"])
    known = list(registry.SYSTEMS)
    names = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    for index, name in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(name, str):
            continue
        if name not in known:
            text = f"{show(name)} is no system{did_you_mean(name, known)}; there are"
            yield Finding(("systems", index), f"{text} {listing(known)}")
        elif name in given[:index]:
            yield Finding(("systems", index), f"{show(name)} is given twice")
    if not names:
        return
    options = raw.get("options")
    for name in options if isinstance(options, dict) else ():
        if name not in names:
            text = f"{show(name)} is not among `systems`{did_you_mean(str(name), names)}: "
            yield Finding(("options", name), f"{text}{listing(names)}", at_key=True)
    for index, claim in enumerate(_mappings(raw, "claims")):
        of = claim.get("systems")
        for place, name in enumerate(of if isinstance(of, list) else ()):
            if isinstance(name, str) and name not in names:
                text = f"{show(name)} is not among the drill's `systems`"
                yield Finding(
                    ("claims", index, "systems", place),
                    f"{text}{did_you_mean(name, names)}: {listing(names)}",
                )


def _names(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Names of vantages are words; those of cast are checked where they are drawn."""
    given = raw.get("vantages")
    for name in given if isinstance(given, dict) else ():
        if not isinstance(name, str) or _VANTAGE_NAME.fullmatch(name) is None:
            text = (
                f"{show(name)} cannot be a name here; one begins with a letter and has up to 32 "
                "letters, digits, `-` and `_`"
            )
            yield Finding(("vantages", name), text, at_key=True)


def _times(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Each phase is long enough to tell something, and holds the faults that are due in it."""
    every = _quantity(Duration, raw.get("every"), Duration(250 * 10**6))
    phases = raw.get("phases")
    lengths = {
        name: _quantity(Duration, phases.get(name)) if isinstance(phases, dict) else None
        for name in PHASES
    }
    for name, length in lengths.items():
        if length and every and length.ns and length.ns < LEAST_REQUESTS * every.ns:
            text = (
                f"{length} is too short: with `every: {every}` fewer than {LEAST_REQUESTS} "
                "requests of a client are due in it. Lengthen it, or shorten `every`"
            )
            yield Finding(("phases", name), text)
    during = lengths["during"]
    for index, fault in enumerate(_mappings(raw, "faults")):
        begin = _quantity(Duration, fault.get("at"), Duration(0))
        lasts = _quantity(Duration, fault.get("for"), Duration(0))
        if begin is None or lasts is None or not during:
            continue
        if begin >= during:
            text = f"it would begin after `during`, which lasts {during}"
            yield Finding(("faults", index, "at" if "at" in fault else "for"), text)
        elif begin.ns + lasts.ns > during.ns:
            text = (
                f"it would end {Duration(begin.ns + lasts.ns)} after the beginning of `during`, "
                f"which lasts {during}; every fault is healed by its end"
            )
            yield Finding(("faults", index, "for"), text)


def _claims(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """What a claim is about is there: its vantage, and its part of the phase."""
    phases = raw.get("phases")
    vantages = raw.get("vantages")
    places = [str(name) for name in vantages] if isinstance(vantages, dict) else []
    for index, claim in enumerate(_mappings(raw, "claims")):
        at = claim.get("vantage")
        if isinstance(at, str) and places and at not in places:
            text = f"there is no vantage {show(at)}{did_you_mean(at, places)}; there are"
            yield Finding(("claims", index, "vantage"), f"{text} {listing(places)}")
        name = claim.get("phase", "during")
        length = None
        if isinstance(phases, dict) and name in PHASES:
            length = _quantity(Duration, phases.get(name))
        since = _quantity(Duration, claim.get("from"), Duration(0))
        to = _quantity(Duration, claim.get("to"), length)
        if length is None or since is None or to is None:
            continue
        if to > length:
            text = f"phase `{name}` is over after {length}"
            yield Finding(("claims", index, "to"), text)
        elif since >= to:
            text = f"nothing is left of the phase between {since} and {to}"
            yield Finding(("claims", index, "from" if "from" in claim else "to"), text)


def _mappings(raw: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The entries of a list; an empty mapping for what is none, so that places stay right."""
    value = raw.get(key)
    for each in value if isinstance(value, list) else ():
        yield each if isinstance(each, dict) else {}


def _quantity(kind: type[Quantity], raw: Any, default: Any = None) -> Any:
    """What a scalar means; None when it is no such quantity, which is told elsewhere."""
    if raw is None:
        return default
    try:
        return kind.parse(raw)
    except QuantityError:
        return None
