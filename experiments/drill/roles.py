"""Who is who in a drill on a topology: the nodes of its roles, its clients, what faults hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.roles import draw
from wanlat.emulator.faults.timeline import Step
from wanlat.experiments.drill.model import Drill, FaultSpec
from wanlat.systems import registry
from wanlat.systems.base import Api
from wanlat.systems.engine.options import Options
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import did_you_mean, listing, show

Roles = Mapping[str, tuple[str, ...]]
"""The nodes of each role of a drill."""


class Misfit(UserError):
    """A drill that cannot be on this topology with this system; ``findings`` say where in it."""

    def __init__(self, drill: str, findings: Sequence[Finding]) -> None:
        told = "; ".join(f"{path_text(each.path)}: {each.text}" for each in findings)
        super().__init__(f"drill {drill}, {told}")
        self.findings = findings


@dataclass(frozen=True)
class Place:
    """Where a client of the drill, its reader and its writer, runs and which node it targets."""

    name: str
    """Of the client."""
    node: str
    target: str
    site: str = ""
    """Of its own node."""


@dataclass(frozen=True)
class Assignment:
    """A drill on one system and topology."""

    options: Options
    api: Api
    roles: Roles
    places: tuple[Place, ...]
    """Of the clients, in their order."""
    steps: tuple[Step, ...]
    """The faults, with their times after the beginning of `during`."""
    volumes: Mapping[str, int]
    """Nodes whose directory is a file system of so many bytes."""


def assign(drill: Drill, system: str, plan: Plan, seed: int) -> Assignment:
    """Draw the roles with a seed, and find the nodes that everything in the drill means.

    Raises Misfit.
    """
    found: list[Finding] = []

    @contextmanager
    def at(*path: str | int) -> Iterator[None]:
        """Keep what is wrong in the block, and where the drill says it."""
        try:
            yield
        except UserError as error:
            found.append(Finding(path, str(error)))

    def end() -> None:
        if found:
            raise Misfit(drill.name, found)

    subject, index = registry.get(system), ("systems", drill.systems.index(system))
    with at("options", system):
        chosen = subject.parse_options(drill.options.get(system))
    end()
    api = subject.api(chosen)
    with at(*index):
        if api not in ("s3", "bob"):
            raise UserError(
                f"{show(system)} has an API of its own, and a drill reads and writes objects"
            )
        subject.check_topology(plan, chosen)
    end()
    theirs = subject.roles(plan, chosen)
    for name, select in drill.selects.items():  # each alone, to see whose mistake it is
        with at("roles", name):
            draw({name: select}, plan, theirs, seed)
    end()
    with at("roles"):
        roles: Roles = draw(drill.selects, plan, theirs, seed)
    end()
    places, steps, volumes = [], [], dict[str, int]()
    for name, client in drill.clients.items():
        node = target = ""
        with at("clients", name, "node"):
            target = node = node_of(client.node, plan, roles)
        with at("clients", name, "target"):
            target = node_of(client.target, plan, roles) if client.target else node
        if node and target:
            places.append(Place(name, node, target, plan.node(node).site))
    for number, spec in enumerate(drill.faults):
        with at("faults", number):
            steps.append(_step(number + 1, spec, drill.phases.during.ns, plan, roles))
            for node, size in steps[-1].fault.volumes.items():
                if volumes.setdefault(node, size) != size:
                    raise UserError(
                        f"another fault wants the disk of {node} to be of {volumes[node]} bytes, "
                        f"and this of {size}; it has one size. Give both the same"
                    )
    end()
    return Assignment(chosen, api, roles, tuple(places), tuple(steps), volumes)


def node_of(wanted: str, plan: Plan, roles: Roles) -> str:
    """Return the node that a name means: a role, a node or a site; of several nodes the first.

    Raises UserError.
    """
    if wanted in roles:
        return roles[wanted][0]
    for key in ("name", "site"):
        for node in plan.nodes:
            if getattr(node, key) == wanted:
                return node.name
    names = [*roles, *(node.name for node in plan.nodes), *(site.name for site in plan.sites)]
    raise UserError(
        f"{show(wanted)} is no role of the drill, and no node or site of topology {plan.name}"
        f"{did_you_mean(wanted, names)}; there are {listing(dict.fromkeys(names), at_most=20)}"
    )


def _step(number: int, spec: FaultSpec, during_ns: int, plan: Plan, roles: Roles) -> Step:
    fault = catalogue.parse(spec.kind, spec.target, spec.settings, plan, roles)
    if spec.lasts is not None and not fault.is_undone:
        raise UserError(
            f"a {spec.kind} is over when it has happened; leave out `for: {spec.lasts}`"
        )
    until_ns = during_ns if spec.lasts is None else spec.at.ns + spec.lasts.ns
    return Step(number, fault, spec.at.ns, until_ns if fault.is_undone else None)


def findings(drill: Drill, topology: str) -> Iterator[Finding]:
    """Return what is wrong with a drill on a topology, with any of its systems.

    Roles are drawn with one seed; another may pick nodes that do not fit, which is reported before
    anything starts.
    """
    try:
        plan = resolve(load_topology(topology))
    except UserError as error:
        yield Finding(("topology",), str(error))
        return
    told = set[Finding]()
    for system in drill.systems:
        try:
            assign(drill, system, plan, drill.seed or 0)
        except Misfit as misfit:
            yield from (each for each in misfit.findings if each not in told)
            told.update(misfit.findings)
