"""What plans of tests are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wanlat.probes.plan import Plan, Wanted
from wanlat.probes.protocols import PLANNERS

USUAL = {"samples": 20, "warmup": 3, "object_bytes": 5000, "seed": 7}


def plan_of(api: str, endpoints: Sequence[Any], **changes: Any) -> Plan:
    """The requests of one step over a protocol, from n1, which holds nothing that is known."""
    nowhere = {"target": "n1", "replicas": lambda _: None, "bucket": "b"}
    return PLANNERS[api].plan(Wanted(endpoints, **{**nowhere, **USUAL, **changes})).as_one()
