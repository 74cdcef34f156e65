"""The `resources` of a study: how often resource usage is sampled."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from wanlat.topologies.units import Duration
from wanlat.topologies.yaml_model import YamlModel

SHORTEST = Duration(50 * 10**6)
LONGEST = Duration(60 * 10**9)
LONGEST_IDLE = Duration(3600 * 10**9)


def _interval(interval: Duration) -> Duration:
    if not SHORTEST <= interval <= LONGEST:
        raise ValueError(f"{interval} is not from {SHORTEST} to {LONGEST}")
    return interval


def _idle(idle: Duration) -> Duration:
    if idle > LONGEST_IDLE:
        raise ValueError(f"{idle} is more than {LONGEST_IDLE}")
    return idle


class ResourcesSpec(YamlModel):
    """How often resources are sampled, and how long a cluster is idle before it is loaded."""

    interval: Annotated[Duration, AfterValidator(_interval)] = Field(
        default=Duration(10**9),
        description="Time between two samples; longer where sampling would cost 1 % of a core",
    )
    idle: Annotated[Duration, AfterValidator(_idle)] = Field(
        default=Duration(0),
        description="How long the cluster is left idle before the first request: its usage then is "
        "subtracted from usage per request",
    )
