"""A topology as NetworkChaos objects of Chaos Mesh, one for each direction between two sites.

Source: the custom resource `networkchaos.chaos-mesh.org`, v1alpha1
(config/crd/bases/chaos-mesh.org_networkchaos.yaml of github.com/chaos-mesh/chaos-mesh, state of
2026-08-07), and what its daemon makes of it (pkg/chaosdaemon/tc_server.go).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any

import yaml

from wanlat.topologies.errors import UserError
from wanlat.topologies.export.exported import Exported, full_from_mbps, head, notes
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import rate_32, uniform_jitter_ns
from wanlat.topologies.resolve import Impairment, Plan, Site, resolve
from wanlat.topologies.wording import show

SITE_LABEL = "wanlat/site"

# The daemon sorts the traffic of a pod into the bands of one prio qdisc, which has 16; three of
# them are for what no rule matches.
_MOST_TARGETS = 13
_LIMIT = 1000  # packets; NetworkChaos cannot set netem's limit


def chaos_mesh(topology: Topology) -> Exported:
    """Return the one file `NAME.networkchaos.yaml`.

    UserError for a name that Kubernetes does not take.
    """
    plan = resolve(topology)
    for name in (topology.name, *(site.name for site in plan.sites)):
        if name.endswith("-"):
            raise UserError(
                f"Kubernetes takes no name that ends with `-`, such as {show(name)}; rename it"
            )
    effects = {(a.name, b.name): _effect(path) for a, b, path in _paths(plan)}
    objects = [_chaos(plan, *ends, effect) for ends, effect in effects.items() if effect]
    lost = _notes(plan) if objects else ("Nothing is delayed: there is no object to apply.",)
    usage = (
        f"Pods belong to the site that their label {SITE_LABEL} names:\n"
        f"    kubectl label pod POD {SITE_LABEL}={plan.sites[0].name}\n"
        "It comes on top of what the cluster's own network takes.\n"
    )
    text = head(topology, "chaos-mesh", usage, "NetworkChaos", lost)
    for resource in objects:
        text += "---\n" + yaml.safe_dump(resource, sort_keys=False, default_flow_style=False)
    return Exported({f"{topology.name}.networkchaos.yaml": text}, lost)


def _paths(plan: Plan) -> Iterator[tuple[Site, Site, tuple[Impairment, ...]]]:
    """What lies between the pods of a site, and of every two sites."""
    inside = ((site, site) for site in plan.sites if len(site.nodes) > 1)
    for a, b in (*inside, *permutations(plan.sites, 2)):
        yield a, b, plan.path(a.nodes[0].name, b.nodes[-1].name)


def _chaos(plan: Plan, a: str, b: str, effect: dict[str, Any]) -> dict[str, Any]:
    """The object for what goes from pods of site a to those of site b."""
    return {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "NetworkChaos",
        "metadata": {"name": f"{plan.name}-{a}-to-{b}"},
        "spec": {
            "action": "netem",
            "mode": "all",
            "selector": {"labelSelectors": {SITE_LABEL: a}},
            "direction": "to",
            "target": {"mode": "all", "selector": {"labelSelectors": {SITE_LABEL: b}}},
            **effect,
        },
    }


def _effect(path: tuple[Impairment, ...]) -> dict[str, Any]:
    effect: dict[str, Any] = {}
    delay_ns = sum(step.delay_ns for step in path)
    if delay_ns:
        effect["delay"] = {"latency": _time(delay_ns)}
        if jitter_ns := uniform_jitter_ns(path):
            effect["delay"]["jitter"] = _time(jitter_ns)
        if overtake := _any(step.overtake for step in path if step.delay_ns):
            effect["delay"]["reorder"] = {"reorder": _percent(overtake), "gap": 1}
    for name, key in (("loss", "loss_probability"), ("duplicate",) * 2, ("corrupt",) * 2):
        if part := _any(getattr(step, key) for step in path):
            effect[name] = {name: _percent(part)}
    if rates := [bps for step in path if (bps := rate_32(step)) is not None]:
        effect["rate"] = {"rate": f"{min(rates)}bit"}
    return effect


def _any(parts: Iterable[float]) -> float:
    """The probability of any of several things that do not depend on each other."""
    return 1 - math.prod(1 - part for part in parts)


def _time(ns: int) -> str:
    """A whole number and a unit: the daemon compares texts, to which "0.5ms" is less than "0ms".

    (tc_server.go, convertNetemToArgs: `netem.Time > "0ms"`.)
    """
    for factor, unit in ((10**6, "ms"), (10**3, "us")):
        if ns % factor == 0:
            return f"{ns // factor}{unit}"
    return f"{ns}ns"


def _percent(part: float) -> str:
    return f"{part * 100:.6f}".rstrip("0").rstrip(".")


def _notes(plan: Plan) -> tuple[str, ...]:
    paths = [path for _, _, path in _paths(plan)]
    jittered = [[step for step in path if step.jitter_ns] for path in paths]
    longest_ns = max((sum(step.range_ns[1] for step in path) for path in paths), default=0)
    wanted = len(plan.sites) - 1 + any(len(site.nodes) > 1 for site in plan.sites)
    return notes(
        "chaos-mesh",
        plan,
        paths=paths,
        mixed=any(len(path) > 1 or path[0].distribution != "uniform" for path in jittered if path),
        limit=_LIMIT,
        mbps=full_from_mbps(_LIMIT, longest_ns),
        most_targets=_MOST_TARGETS,
        too_many_targets=wanted > _MOST_TARGETS,
    )
