"""An entry of a drill's `claims`: what somebody says that a system does, and where they say it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictStr

from wanlat.experiments.drill.phases import PhaseName
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.yaml_model import YamlModel


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
        found = [
            each.under(("availability",))
            for each in Availability.cross_checks(raw.get("availability"))
        ]
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
