"""A topology as NetworkChaos objects of Chaos Mesh, one for each direction between two sites.

Source: the custom resource `networkchaos.chaos-mesh.org`, v1alpha1
(config/crd/bases/chaos-mesh.org_networkchaos.yaml of github.com/chaos-mesh/chaos-mesh, state of
2026-08-07), and what its daemon makes of it (pkg/chaosdaemon/tc_server.go).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import yaml

from wanlat.topologies.errors import UserError
from wanlat.topologies.export.exported import Exported, commented
from wanlat.topologies.export.mininet_plan import impairments
from wanlat.topologies.model import Topology
from wanlat.topologies.netem import rate_32, uniform_jitter_ns
from wanlat.topologies.resolve import Impairment, Plan, Site, resolve
from wanlat.topologies.wording import show

SITE_LABEL = "wanlat/site"

# The daemon sorts the traffic of a pod into the bands of one prio qdisc, which has 16; three of
# them are for what no rule matches.
_MOST_TARGETS = 13
_DEFAULT_LIMIT = 1000  # packets; NetworkChaos cannot set netem's limit
_PACKET_BITS = 1514 * 8


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
    objects = [made for a, b in _directions(plan) if (made := _chaos(plan, a, b)) is not None]
    notes = (
        tuple(_notes(plan)) if objects else ("Nothing is delayed: there is no object to apply.",)
    )
    head = (
        f"{topology.name}: {topology.description}\n"
        f"Written by `wanlat topology export {topology.name} --to chaos-mesh`.\n\n"
        f"Pods belong to the site that their label {SITE_LABEL} names:\n"
        f"    kubectl label pod POD {SITE_LABEL}={plan.sites[0].name}\n"
        "It comes on top of what the cluster's own network takes.\n\n"
        "What NetworkChaos cannot express, or does differently:\n"
    )
    text = commented(head + "".join(f"- {note}\n" for note in notes))
    text += "".join(
        "---\n" + yaml.safe_dump(each, sort_keys=False, default_flow_style=False)
        for each in objects
    )
    return Exported({f"{topology.name}.networkchaos.yaml": text}, notes)


def _directions(plan: Plan) -> Iterator[tuple[Site, Site]]:
    for site in plan.sites:
        if len(site.nodes) > 1:
            yield site, site
    yield from permutations(plan.sites, 2)


def _chaos(plan: Plan, a: Site, b: Site) -> dict[str, Any] | None:
    """The object for what goes from pods of site a to those of site b; None for nothing."""
    path = plan.path(a.nodes[0].name, b.nodes[-1].name)
    effect = _effect(path)
    if not effect:
        return None
    return {
        "apiVersion": "chaos-mesh.org/v1alpha1",
        "kind": "NetworkChaos",
        "metadata": {"name": f"{plan.name}-{a.name}-to-{b.name}"},
        "spec": {
            "action": "netem",
            "mode": "all",
            "selector": {"labelSelectors": {SITE_LABEL: a.name}},
            "direction": "to",
            "target": {"mode": "all", "selector": {"labelSelectors": {SITE_LABEL: b.name}}},
            **effect,
        },
    }


def _effect(path: tuple[Impairment, ...]) -> dict[str, Any]:
    effect: dict[str, Any] = {}
    delay_ns = sum(step.delay_ns for step in path)
    if delay_ns:
        effect["delay"] = {"latency": _time(delay_ns)}
        jitter_ns = uniform_jitter_ns(path)
        if jitter_ns:
            effect["delay"]["jitter"] = _time(jitter_ns)
        overtake = _any([step.overtake for step in path if step.delay_ns])
        if overtake:
            effect["delay"]["reorder"] = {"reorder": _percent(overtake), "gap": 1}
    for name, part in (
        ("loss", _any([step.loss_probability for step in path])),
        ("duplicate", _any([step.duplicate for step in path])),
        ("corrupt", _any([step.corrupt for step in path])),
    ):
        if part:
            effect[name] = {name: _percent(part)}
    rates = [bps for step in path if (bps := rate_32(step)) is not None]
    if rates:
        effect["rate"] = {"rate": f"{min(rates)}bit"}
    return effect


def _any(parts: list[float]) -> float:
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


def _notes(plan: Plan) -> Iterator[str]:
    every = list(impairments(plan))
    paths = [plan.path(a.nodes[0].name, b.nodes[-1].name) for a, b in _directions(plan)]
    jittered = [[step for step in path if step.jitter_ns] for path in paths]
    yield (
        "Impairments sit on the interface from which a pod sends, where TCP's small queues slow"
        " TCP down; in wanlat they are on the path."
    )
    if any(len(path) > 1 or path[0].distribution != "uniform" for path in jittered if path):
        yield (
            "NetworkChaos knows no distribution: delays spread evenly, with the standard deviation"
            " that the path of links is to have (and never below zero)."
        )
    if any(path for path in jittered) and any(
        not step.reorder and step.rate_bps is None for path in jittered for step in path
    ):
        yield "A rate of 32 Gbit/s stands where none was asked for: it keeps packets in order."
    if any(each.bursts for each in every):
        yield "Loss in bursts has become independent loss of the same probability."
    if any(each.rate_bps is not None for each in every):
        yield (
            "A rate holds for each pod towards each site, not for the link that the pods of a site"
            " share; `queue` is left out."
        )
    yield from _limit_note(paths)
    if len(plan.sites) - 1 + any(len(site.nodes) > 1 for site in plan.sites) > _MOST_TARGETS:
        yield (
            f"A pod can have at most {_MOST_TARGETS} targets (a prio qdisc has 16 bands); this"
            f" topology asks for more, and Chaos Mesh will refuse some of it."
        )


def _limit_note(paths: list[tuple[Impairment, ...]]) -> Iterator[str]:
    longest_ns = max((sum(step.range_ns[1] for step in path) for path in paths), default=0)
    if longest_ns:
        mbps = _DEFAULT_LIMIT * _PACKET_BITS * 10**3 / longest_ns
        yield (
            f"netem holds {_DEFAULT_LIMIT} packets and drops the rest, which NetworkChaos cannot"
            f" change: over the longest path that is from {mbps:.0f} Mbit/s on."
        )
