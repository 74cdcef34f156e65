"""Claims: what a publication states that a system does, its source, and the bound that decides.

A file has those of one system (`experiments/claims/garage.yaml`). Each names the drills that put
it to the test, and a figure with its bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictStr, model_validator

from wanlat.experiments.drill.files import CLAIMS, ClaimsError, shipped
from wanlat.experiments.drill.model import Drill, PhaseName, SystemName, scenario
from wanlat.experiments.drill.timeline import scale_times
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import load_yaml_model
from wanlat.topologies.yaml_model import YamlModel, unique


class Availability(YamlModel):
    """A bound on ok / attempted of the requests that were due in a window."""

    operations: Literal["reads", "writes", "lists"] = Field(alias="of")
    client: StrictStr | None = Field(default=None, description="whose; default: of all clients")
    phase: PhaseName = "during"
    since: Duration = Field(
        default=Duration(0), alias="from", description="from when on in the phase"
    )
    to: Duration | None = Field(default=None, description="until when; default: the phase's end")
    at_least: Fraction | None = None
    at_most: Fraction | None = None

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if (self.at_least is None) is (self.at_most is None):
            raise ValueError("give one bound: `at_least: 90%` or `at_most: 10%`")
        return self


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

    def scaled(self, factor: float) -> Claim:
        """Return it with its window that much longer, as the drill's phases are."""
        values = self.to_dict()
        scale_times(values.get("availability", {}), ("from", "to"), factor)
        return Claim.model_validate(values)

    @model_validator(mode="after")
    def _has_one_figure(self) -> Self:
        if (self.availability is None) is (self.durability is None):
            raise ValueError("a claim has one figure: either `availability` or `durability`")
        return self


class Claims(YamlModel):
    """A file of claims about one system."""

    system: SystemName = Field(description="of which system")
    claims: Annotated[list[Claim], unique("give it another `id`", attrgetter("id"))] = Field(
        min_length=1
    )


def claims_on(drill: Drill, system: str, files: Iterable[Path] = ()) -> tuple[Claim, ...]:
    """Return the claims about a system that name a drill: the shipped ones, then those of files.

    Raises ClaimsError for every mistake in a file, also in claims about other drills.
    """
    paths = [CLAIMS.find(system)] if system in CLAIMS.names() else []
    ids: dict[str, Path] = {}
    claims: list[Claim] = []
    for path in [*paths, *files]:

        def fits(_: object, read: Claims) -> Iterator[Finding]:
            return _findings(read, drill, ids)  # noqa: B023

        read = _shipped(path) if path in paths else None
        if read is None or any(fits(None, read)):
            read = load_yaml_model(path, Claims, also=fits, error=ClaimsError)
        ids |= {claim.id: path for claim in read.claims}
        if read.system == system:
            claims += [claim for claim in read.claims if drill.name in claim.drills]
    return tuple(claims)


@cache
def _shipped(path: Path) -> Claims:
    """Return a shipped file; each of all drills needs it."""
    return load_yaml_model(path, Claims, error=ClaimsError)


def _findings(read: Claims, drill: Drill, ids: Mapping[str, Path]) -> Iterator[Finding]:
    """What is wrong between claims, and with the drills that they name: shipped ones, and one."""
    names = list(dict.fromkeys([drill.name, *shipped()]))
    for index, claim in enumerate(read.claims):
        path = ("claims", index)
        if claim.id in ids:
            text = f"{show(claim.id)} is the id of a claim in {ids[claim.id]}"
            yield Finding((*path, "id"), text)
        for place, name in enumerate(claim.drills):
            if name not in names:
                where = (*path, "drill") if claim.drill == name else (*path, "drill", place)
                text = f"there is no drill {show(name)}{did_you_mean(name, names)}; there are"
                yield Finding(where, f"{text} {listing(names)}")
            elif claim.availability is not None:
                about = drill if name == drill.name else scenario(name)
                for finding in _on_a_drill(claim.availability, about):
                    yield finding.under((*path, "availability"))


def _on_a_drill(figure: Availability, drill: Drill) -> Iterator[Finding]:
    """Its client is there, and its window is a part of the phase."""
    clients = list(drill.clients)
    if figure.client is not None and figure.client not in clients:
        text = f"drill {drill.name} has no client {show(figure.client)}"
        near = did_you_mean(figure.client, clients)
        yield Finding(("client",), f"{text}{near}; there are {listing(clients)}")
    phase = f"phase `{figure.phase}` of drill {drill.name}"
    length: Duration = getattr(drill.phases, figure.phase)
    until = figure.to or length
    if until > length:
        yield Finding(("to",), f"{phase} is over after {length}")
    elif figure.since >= until:
        yield Finding(("from",), f"nothing is left of {phase} between {figure.since} and {until}")
