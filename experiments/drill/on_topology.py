"""A drill on a topology: who plays which part, where clients stand, what exactly is broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.cast import draw
from wanlat.emulator.faults.fault import Fault
from wanlat.experiments.drill.fault_spec import FaultSpec
from wanlat.experiments.drill.model import Drill
from wanlat.systems import registry
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import did_you_mean, listing, show

Cast = Mapping[str, tuple[str, ...]]
Roles = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Place:
    """A vantage with its names resolved: clients stand on node `at`, and ask node `ask`."""

    name: str
    at: str
    site: str
    ask: str


def place(name: str, at: str, ask: str | None, plan: Plan, cast: Cast) -> Place:
    """Return where a vantage is. Raises UserError."""
    here = node_of(at, plan, cast)
    site = next(node.site for node in plan.nodes if node.name == here)
    return Place(name, here, site, here if ask is None else node_of(ask, plan, cast))


def node_of(wanted: str, plan: Plan, cast: Cast) -> str:
    """Return the node that a name means: of cast, of a node, or of a site; the first of several.

    Raises UserError.
    """
    if wanted in cast:
        return cast[wanted][0]
    if any(node.name == wanted for node in plan.nodes):
        return wanted
    for node in plan.nodes:
        if node.site == wanted:
            return node.name
    names = [*cast, *(node.name for node in plan.nodes), *(site.name for site in plan.sites)]
    raise UserError(
        f"{show(wanted)} is no name of the cast, and no node or site of topology {plan.name}"
        f"{did_you_mean(wanted, names)}; there are {listing(dict.fromkeys(names), at_most=20)}"
    )


def fault_of(spec: FaultSpec, plan: Plan, cast: Cast) -> Fault:
    """Return what an entry of `faults` means. Raises UserError."""
    fault = catalogue.parse(spec.kind, spec.target, spec.settings, plan, cast)
    if spec.lasts is not None and not fault.is_undone:
        raise UserError(
            f"a {spec.kind} is over when it has happened; leave out `for: {spec.lasts}`"
        )
    return fault


def findings(raw: Any, topology: str | None) -> list[Finding]:
    """Return what is wrong with the raw values of a drill's file on a topology.

    Names are drawn with one seed; another may pick nodes that do not fit, which is told before
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
        for finding in _of_names(drill, plan, _roles(drill, name, plan)):
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


def _roles(drill: Drill, name: str, plan: Plan) -> Roles:
    system = registry.SYSTEMS[name]
    try:
        return system.roles(plan, system.parse_options(drill.options.get(name)))
    except UserError:
        return {}


def _of_names(drill: Drill, plan: Plan, roles: Roles) -> Iterator[Finding]:
    try:
        cast = draw(drill.cast, plan, roles, drill.seed or 0)
    except UserError as error:
        yield Finding(_about(str(error), drill.cast), str(error))
        return
    for name, vantage in drill.vantages.items():
        for key, wanted in (("at", vantage.at), ("ask", vantage.ask)):
            try:
                node_of(wanted, plan, cast) if wanted is not None else None
            except UserError as error:
                yield Finding(("vantages", name, key), str(error))
    for index, spec in enumerate(drill.faults):
        try:
            fault_of(spec, plan, cast)
        except UserError as error:
            yield Finding(("faults", index), str(error))


def _about(text: str, cast: Mapping[str, object]) -> tuple[str, ...]:
    """Return the path to the name that an error of the cast is about."""
    name = text.removeprefix("cast: ").partition(" ")[0].strip("`")
    return ("cast", name) if name in cast else ("cast",)
