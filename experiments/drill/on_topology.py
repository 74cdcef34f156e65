"""A drill on a topology: the nodes of each role, where clients run, what exactly is broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.fault import Fault
from wanlat.emulator.faults.roles import draw
from wanlat.experiments.drill.fault_spec import FaultSpec
from wanlat.experiments.drill.model import ClientSpec, Drill
from wanlat.experiments.drill.rows import Place
from wanlat.systems import registry
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import did_you_mean, listing, show

Roles = Mapping[str, tuple[str, ...]]
"""The nodes of each role of a drill."""


def place(name: str, client: ClientSpec, plan: Plan, roles: Roles) -> Place:
    """Return where a client runs, and which node it targets. Raises UserError."""
    node = node_of(client.node, plan, roles)
    site = next(each.site for each in plan.nodes if each.name == node)
    target = node if client.target is None else node_of(client.target, plan, roles)
    return Place(name, node, target, site)


def node_of(wanted: str, plan: Plan, roles: Roles) -> str:
    """Return the node that a name means: a role, a node or a site; of several nodes the first.

    Raises UserError.
    """
    if wanted in roles:
        return roles[wanted][0]
    if any(node.name == wanted for node in plan.nodes):
        return wanted
    for node in plan.nodes:
        if node.site == wanted:
            return node.name
    names = [*roles, *(node.name for node in plan.nodes), *(site.name for site in plan.sites)]
    raise UserError(
        f"{show(wanted)} is no role of the drill, and no node or site of topology {plan.name}"
        f"{did_you_mean(wanted, names)}; there are {listing(dict.fromkeys(names), at_most=20)}"
    )


def fault_of(spec: FaultSpec, plan: Plan, roles: Roles) -> Fault:
    """Return what an entry of `faults` means. Raises UserError."""
    fault = catalogue.parse(spec.kind, spec.target, spec.settings, plan, roles)
    if spec.lasts is not None and not fault.is_undone:
        raise UserError(
            f"a {spec.kind} is over when it has happened; leave out `for: {spec.lasts}`"
        )
    return fault


def findings(raw: Any, topology: str | None) -> list[Finding]:
    """Return what is wrong with the raw values of a drill's file on a topology.

    Roles are drawn with one seed; another may pick nodes that do not fit, which is reported before
    anything starts.
    """
    if not isinstance(raw, dict) or topology is None:
        return []
    try:
        plan = resolve(load_topology(topology))
    except UserError as error:
        return [Finding(("topology",), str(error))]
    found = list(_of_systems(raw, plan))
    try:
        drill = Drill.model_validate(raw)
    except ValueError:
        return found  # told already, and what follows from it is no help
    told: set[tuple[object, str]] = set()
    for name in drill.systems:
        for finding in _of_names(drill, plan, _system_roles(drill, name, plan)):
            if (finding.path, finding.text) not in told:
                told.add((finding.path, finding.text))
                found.append(finding)
    return found


def _of_systems(raw: Mapping[str, Any], plan: Plan) -> Iterator[Finding]:
    """Each system takes its options, and runs on the topology with them."""
    names, options = raw.get("systems", ["quorum"]), raw.get("options", {})
    if not isinstance(names, list) or not isinstance(options, dict):
        return
    for index, name in enumerate(names):
        system = registry.SYSTEMS.get(name) if isinstance(name, str) else None
        given = options.get(name, {})
        if system is None or not isinstance(given, dict):
            continue
        try:
            parsed = system.parse_options(given)
        except UserError as error:
            yield Finding(("options", name), str(error))
            continue
        if system.api(parsed) not in ("s3", "bob"):
            text = f"{show(name)} has an API of its own, and a drill reads and writes objects"
            yield Finding(("systems", index), text)
            continue
        try:
            system.check_topology(plan, parsed)
        except UserError as error:
            yield Finding(("systems", index), str(error))


def _system_roles(drill: Drill, name: str, plan: Plan) -> Mapping[str, Sequence[str]]:
    system = registry.SYSTEMS[name]
    try:
        return system.roles(plan, system.parse_options(drill.options.get(name)))
    except UserError:
        return {}


def _of_names(
    drill: Drill, plan: Plan, system_roles: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    try:
        roles = draw(drill.selects, plan, system_roles, drill.seed or 0)
    except UserError as error:
        yield Finding(_about(str(error), drill.roles), str(error))
        return
    for name, client in drill.clients.items():
        for key, wanted in (("node", client.node), ("target", client.target)):
            try:
                node_of(wanted, plan, roles) if wanted is not None else None
            except UserError as error:
                yield Finding(("clients", name, key), str(error))
    for index, spec in enumerate(drill.faults):
        try:
            fault_of(spec, plan, roles)
        except UserError as error:
            yield Finding(("faults", index), str(error))


def _about(text: str, roles: Mapping[str, object]) -> tuple[str, ...]:
    """Return the path to the role that an error of the draw is about."""
    name = text.removeprefix("roles: ").partition(" ")[0].strip("`")
    return ("roles", name) if name in roles else ("roles",)
