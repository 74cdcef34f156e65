"""The `resources` of a study: how often what nodes use is looked at."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_model import YamlModel

SHORTEST = Duration(50 * 10**6)
LONGEST = Duration(60 * 10**9)
LONGEST_REST = Duration(3600 * 10**9)


def _every(every: Duration) -> Duration:
    if not SHORTEST <= every <= LONGEST:
        raise ValueError(f"{every} is not from {SHORTEST} to {LONGEST}")
    return every


def _rest(rest: Duration) -> Duration:
    if rest > LONGEST_REST:
        raise ValueError(f"{rest} is more than {LONGEST_REST}")
    return rest


class ResourcesSpec(YamlModel):
    """How often resources are sampled, and how long a cluster rests before it is asked."""

    every: Annotated[Duration, AfterValidator(_every)] = Field(
        default=Duration(10**9),
        description="Between two samples; longer where looking would cost 1 % of a core",
    )
    rest: Annotated[Duration, AfterValidator(_rest)] = Field(
        default=Duration(0),
        description="How long the cluster is left alone before it is asked for anything: what it "
        "uses then is what it uses at rest, and is taken off what a request is said to cost",
    )
