"""Claims: what somebody says that a system does, where they say it, and the bound that decides.

A file has those of one system (`experiments/claims/garage.yaml`). Each names the drills that put
it to the test, and a figure with its bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, StrictStr

from wanlat.experiments.drill.consistency import mappings, quantity
from wanlat.experiments.drill.files import CLAIMS, ClaimsError, scenario, shipped
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.phases import PHASES, PhaseName
from wanlat.systems import registry
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel


class Availability(YamlModel):
    """A bound on ok / attempted of the requests that were due in a window."""

    of: Literal["reads", "writes"]
    client: StrictStr | None = Field(default=None, description="whose; default: of all clients")
    phase: PhaseName = "during"
    since: Duration = Field(
        default=Duration(0),
        alias="from",
        description="from when on in the phase",
        json_schema_extra={"default": "0ms"},
    )
    to: Duration | None = Field(default=None, description="until when; default: the phase's end")
    at_least: Fraction | None = None
    at_most: Fraction | None = None

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """Exactly one bound."""
        if not isinstance(raw, dict):
            return []
        if len([key for key in ("at_least", "at_most") if raw.get(key) is not None]) == 1:
            return []
        return [Finding((), "give one bound: `at_least: 90%` or `at_most: 10%`")]


class Claim(YamlModel):
    """One claim: a figure of a drill, and the bound that it must keep."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$", description="unique")
    claim: StrictStr = Field(min_length=1, description="what is said, in a sentence")
    source: StrictStr = Field(min_length=1, description="where: document, section, URL")
    drill: StrictStr | list[StrictStr] = Field(
        min_length=1, description="the drills that put it to the test, by name"
    )
    availability: Availability | None = None
    durability: Literal["intact", "broken"] | None = None

    key_hints: ClassVar[dict[str, str]] = {
        "drills": "`drill` takes a name or a list of names",
        "systems": "a file has the claims of one system: `system`, at its top",
        **dict.fromkeys(("of", "client", "phase", "from", "to"), "it stands in `availability`"),
    }

    @property
    def drills(self) -> list[str]:
        """The names of the drills that it is about."""
        return [self.drill] if isinstance(self.drill, str) else self.drill

    def applied(self) -> dict[str, Any]:
        """The claim as a drill's bundle has it."""
        return {key: value for key, value in self.to_dict().items() if key != "drill"}

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """A claim has exactly one figure."""
        if not isinstance(raw, dict):
            return []
        if len([key for key in ("availability", "durability") if raw.get(key) is not None]) != 1:
            return [Finding((), "a claim has one figure: either `availability` or `durability`")]
        found = Availability.cross_checks(raw.get("availability"))
        return [each.under(("availability",)) for each in found]


class Claims(YamlModel):
    """A file of claims about one system."""

    checks_all_within: ClassVar[bool] = True

    system: StrictStr = Field(description="of which system")
    claims: list[Claim] = Field(min_length=1)

    @classmethod
    def cross_checks(cls, raw: Any) -> list[Finding]:
        """The system exists, and each claim holds together and has an id of its own."""
        if not isinstance(raw, dict):
            return []
        found, known, system = [], list(registry.SYSTEMS), raw.get("system")
        if isinstance(system, str) and system not in known:
            text = f"{show(system)} is no system{did_you_mean(system, known)}; there are"
            found.append(Finding(("system",), f"{text} {listing(known)}"))
        first: dict[object, int] = {}
        for index, claim in enumerate(mappings(raw, "claims")):
            found += [each.under(("claims", index)) for each in Claim.cross_checks(claim)]
            name = claim.get("id")
            if isinstance(name, str) and first.setdefault(name, index) != index:
                see = ("claims", first[name], "id")
                text = f"{show(name)} is the id of another claim"
                found.append(Finding(("claims", index, "id"), text, see=see))
        return found


def claims_on(drill: Drill, system: str, files: Iterable[Path] = ()) -> tuple[Claim, ...]:
    """Return the claims about a system that name a drill: the shipped ones, then those of files.

    Raises ClaimsError for every mistake in a file, also in claims about other drills.
    """
    paths = [CLAIMS.find(system)] if system in CLAIMS.names() else []
    ids: dict[str, Path] = {}
    found: list[Claim] = []
    for path in [*paths, *files]:
        checks = partial(_findings, drill=drill, ids=dict(ids))
        read = load_yaml_model(path, Claims, checks, error=ClaimsError)
        ids |= {claim.id: path for claim in read.claims}
        if read.system == system:
            found += [claim for claim in read.claims if drill.name in claim.drills]
    return tuple(found)


def _findings(raw: Any, drill: Drill, ids: Mapping[str, Path]) -> Iterator[Finding]:
    """What is wrong between claims and the drills that they name: the shipped ones, and one."""
    names = list(dict.fromkeys([drill.name, *shipped()]))
    for index, claim in enumerate(mappings(raw, "claims") if isinstance(raw, dict) else ()):
        name = claim.get("id")
        if isinstance(name, str) and name in ids:
            text = f"{show(name)} is the id of a claim in {ids[name]}"
            yield Finding(("claims", index, "id"), text)
        given = claim.get("drill")
        for place, name in enumerate(given if isinstance(given, list) else [given]):
            path = ("claims", index, "drill", *((place,) if isinstance(given, list) else ()))
            if not isinstance(name, str):
                continue
            if name not in names:
                text = f"there is no drill {show(name)}{did_you_mean(name, names)}; there are"
                yield Finding(path, f"{text} {listing(names)}")
            elif isinstance(figure := claim.get("availability"), dict):
                about = drill if name == drill.name else scenario(name)
                for found in _on_a_drill(figure, about):
                    yield found.under(("claims", index, "availability"))


def _on_a_drill(figure: Mapping[str, Any], drill: Drill) -> Iterator[Finding]:
    """Its client is there, and its window is a part of the phase."""
    client, clients = figure.get("client"), list(drill.clients)
    if isinstance(client, str) and client not in clients:
        text = f"drill {drill.name} has no client {show(client)}{did_you_mean(client, clients)}"
        yield Finding(("client",), f"{text}; there are {listing(clients)}")
    phase = figure.get("phase", "during")
    length = getattr(drill.phases, phase) if phase in PHASES else None
    since = quantity(Duration, figure.get("from"), Duration(0))
    to = quantity(Duration, figure.get("to"), length)
    if length is None or since is None or to is None:
        return
    if to > length:
        yield Finding(("to",), f"phase `{phase}` of drill {drill.name} is over after {length}")
    elif since >= to:
        text = f"nothing is left of phase `{phase}` of drill {drill.name} between {since} and {to}"
        yield Finding(("from" if "from" in figure else "to",), text)
