"""The three phases of a drill: when requests are measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_model import YamlModel

PhaseName = Literal["before", "during", "after"]
PHASES: tuple[PhaseName, ...] = ("before", "during", "after")


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
