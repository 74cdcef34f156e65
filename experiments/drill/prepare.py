"""Everything that can be wrong with a drill, checked before anything starts.

And who is who in it on a topology: the nodes of its roles, its clients, what faults hit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.write import default_directory
from wanlat.emulator.binaries import binary
from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.roles import draw
from wanlat.emulator.faults.timeline import Step
from wanlat.emulator.lab import BackendName
from wanlat.experiments.config.endpoints import objects_of
from wanlat.experiments.config.study import node_of, set_values, validated
from wanlat.experiments.drill.claims import Claim, claims_on
from wanlat.experiments.drill.files import DrillError, find
from wanlat.experiments.drill.model import Drill, FaultSpec
from wanlat.experiments.drill.timeline import Stated, least_s, scaled, stated
from wanlat.experiments.session import CaptureWanted, Setup
from wanlat.probes.objects import HOW_OBJECTS, ObjectApi
from wanlat.systems import registry
from wanlat.systems.base import Api, Binary
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.system import System
from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import Finding, path_text
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_lines import load_yaml_model

LEADER = "leader"
"""What a role selects that is the node which leads."""

Roles = Mapping[str, tuple[str, ...]]
"""The nodes of each role of a drill."""


def needs_a_leader(drill: Drill, system: str) -> bool:
    """Whether a drill is about the leader, and the system as it is set up has none."""
    if not any(map(selects_leader, drill.selects.values())):
        return False
    subject, plan = registry.get(system), resolve(load_topology(drill.topology))
    return LEADER not in _roles_of(subject, plan, subject.parse_options(drill.options.get(system)))


def _roles_of(
    subject: System, plan: Plan, options: Options, leader: str | None = None
) -> dict[str, tuple[str, ...]]:
    theirs = dict(subject.roles(plan, options))
    if subject.definition.leader is not None:
        theirs[LEADER] = (leader,) if leader else theirs.get(LEADER, (plan.nodes[0].name,))
    return theirs


class Misfit(UserError):
    """A drill that cannot be on this topology with this system; ``findings`` state where."""

    def __init__(self, drill: str, findings: Sequence[Finding]) -> None:
        text = "; ".join(f"{path_text(finding.path)}: {finding.text}" for finding in findings)
        super().__init__(f"drill {drill}, {text}")
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


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A drill on one system and topology."""

    options: Options
    api: Api
    objects: ObjectApi
    roles: Roles
    places: tuple[Place, ...]
    """Of the clients, in their order."""
    steps: tuple[Step, ...]
    """The faults, with their times after the beginning of `during`."""
    volumes: Mapping[str, int]
    """Nodes that have their directory on a file system of so many bytes."""


def assign(
    drill: Drill, system: str, plan: Plan, seed: int, leader: str | None = None
) -> Assignment:
    """Draw the roles with a seed, and find the nodes that everything in the drill means.

    ``leader``: the node that leads; None: it is not known yet, and any is taken for it. Raises
    Misfit.
    """
    mistakes: list[Finding] = []

    @contextmanager
    def at(*path: str | int) -> Iterator[None]:
        """Keep what is wrong in the block, and where in the drill it is."""
        try:
            yield
        except UserError as error:
            mistakes.append(Finding(path, str(error)))

    def end() -> None:
        if mistakes:
            raise Misfit(drill.name, mistakes)

    subject = registry.get(system)
    with at("options", system):
        chosen = subject.parse_options(drill.options.get(system))
    end()
    objects = objects_of(subject, chosen)
    with at("systems"):
        if objects is None:
            raise UserError(
                f"a drill writes, reads and removes objects, and the definition of {show(system)} "
                f"does not say how: {HOW_OBJECTS}"
            )
        objects.check_size(system, drill.object_size)
        subject.check_topology(plan, chosen)
    end()
    assert objects is not None
    theirs = _roles_of(subject, plan, chosen, leader)
    for name, select in drill.selects.items():  # each alone, to see whose mistake it is
        with at("roles", name):
            if selects_leader(select) and LEADER not in theirs:
                raise UserError(
                    f"{show(system)} has no leader as it is set up here, so that no fault can hit "
                    "it; choose a system whose definition has a `leader`, such as etcd"
                )
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
    return Assignment(
        options=chosen,
        api=subject.api(chosen),
        objects=objects,
        roles=roles,
        places=tuple(places),
        steps=tuple(steps),
        volumes=volumes,
    )


def selects_leader(select: Any) -> bool:
    """Whether a role is the system's leader."""
    return LEADER in (select if isinstance(select, list) else [select])


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
    reported = set[Finding]()
    for system in drill.systems:
        try:
            assign(drill, system, plan, drill.seed or 0)
        except Misfit as misfit:
            yield from (finding for finding in misfit.findings if finding not in reported)
            reported.update(misfit.findings)


def load(
    name_or_path: str,
    *,
    topology: str | None = None,
    systems: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Drill:
    """Return the drill of that name, or in the file at that path, as it is to be run.

    ``topology`` takes the place of the file's own, and ``systems`` that of its systems: the
    options of others are left out; then parameters are set by ``settings``, dotted for inner keys.
    A topology that the file names by a path is taken from where the file is. The file by itself is
    checked first; if all of that is right, names of nodes and faults' settings are checked for what
    is to be run, and for nothing else. Raises DrillError with every mistake, and UserError where it
    is one of ``settings``.
    """
    path, own_systems = find(name_or_path), (settings or {}).get("systems")
    systems = systems or (own_systems if isinstance(own_systems, list) else ())

    def chosen(drill: Drill) -> Drill:
        near, own = path.parent / drill.topology, drill.topology
        own = str(near) if own.endswith((".yaml", ".yml")) and near.exists() else own
        drill = drill.model_copy(update={"topology": topology or own})
        return drill if not systems else on_systems(drill, systems)

    def wrong(_: object, read: Drill) -> Iterator[Finding]:
        made = chosen(read)
        return findings(made, made.topology)

    if not settings:
        return chosen(load_yaml_model(path, Drill, also=wrong, error=DrillError))
    raw = set_values(chosen(load_yaml_model(path, Drill, error=DrillError)).to_dict(), settings)
    return validated(f"Drill {raw['name']}", raw, Drill, lambda made: findings(made, made.topology))


def on_systems(drill: Drill, systems: Sequence[str]) -> Drill:
    """Return a drill for these systems alone, with its options of those."""
    options = {name: own for name, own in drill.options.items() if name in systems}
    return drill.model_copy(update={"systems": [*systems], "options": options})


@dataclass(frozen=True, kw_only=True)
class PreparedDrill(Setup, Assignment):
    """One run of a drill on one system, with everything that could be wrong about it checked."""

    drill: Drill
    """Scaled, as it is going to run."""
    scale: float
    topology: Topology
    claims: tuple[Claim, ...]
    """Of this system about this drill, scaled with it."""
    directory: Path
    capture: CaptureWanted | None

    @property
    def subjects(self) -> tuple[Setup]:
        """Its one system: itself."""
        return (self,)

    @property
    def stated(self) -> Stated:
        """How long it takes at most."""
        return stated(self.drill, self.plan)

    @property
    def least_s(self) -> float:
        """How long it takes at least, in seconds."""
        return least_s(self.drill)

    @property
    def led(self) -> str | None:
        """The role that is the leader's, where the running cluster reports who that is."""
        roles = self.drill.selects.items() if self.system.definition.leader else ()
        return next((name for name, select in roles if selects_leader(select)), None)

    def led_by(self, node: str) -> PreparedDrill:
        """Return the drill on a cluster that this node leads. Raises UserError."""
        assigned = assign(self.drill, self.name, self.plan, self.seed, node)
        if assigned.volumes != self.volumes:
            raise UserError(
                f"{node} leads, and the disk that a fault fills was made on "
                f"{listing(self.volumes)} before anybody led. Have the leader chosen beforehand "
                "(an option of the system), or name the node."
            )
        targets = tuple(place.target for place in assigned.places)
        return replace(self, targets=targets, **vars(assigned))


def prepare(
    drill: Drill,
    *,
    system: str,
    scale: float = 1.0,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    claims: Sequence[Path] = (),
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    directory: Path | None = None,
    topologies: Mapping[str, Topology] | None = None,
    binaries: MutableMapping[str, Binary] | None = None,
) -> PreparedDrill:
    """Check everything that the user could have got wrong, and that the machine must have.

    ``options`` are the system's; they take precedence over the drill's. ``claims`` are files of
    claims besides the shipped ones; ``topologies``, by name, are used in place of files, and
    ``binaries`` in place of looking for them again. Raises UserError or MachineError; nothing has
    been started or written then.
    """
    subject = registry.get(system)
    of_system = {**drill.options.get(system, {}), **(options or {})}
    changes = {"seed": drill.seed if seed is None else seed, "options": {system: of_system}}
    drill = on_systems(drill, [system]).model_copy(update=changes)
    wanted = scaled(drill, scale)
    made = (topologies or {}).get(wanted.topology) or load_topology(wanted.topology)
    plan = resolve(made)
    drawn = secrets.randbits(32) if wanted.seed is None else wanted.seed
    assigned = assign(wanted, system, plan, drawn)
    known, program = {} if binaries is None else binaries, f"{system} {assigned.options!r}"
    if program not in known:
        known[program] = subject.binary_for(assigned.options)
    prepared = PreparedDrill(
        name=system,
        plan=plan,
        system=subject,
        binary=known[program],
        targets=tuple(place.target for place in assigned.places),
        client=assigned.places[0].node,
        seed=drawn,
        backend=backend,
        storage=wanted.storage,
        splice="all",  # every link can be changed
        drill=wanted,
        scale=scale,
        topology=made,
        claims=tuple(claim.scaled(scale) for claim in claims_on(drill, system, claims)),
        directory=directory or default_directory(f"{wanted.name}-{system}"),
        capture=capture,
        **vars(assigned),
    )
    _check_machine(prepared)
    return prepared


def _check_machine(prepared: PreparedDrill) -> None:
    """Raise MachineError for what the machine lacks, UserError for a record that cannot be."""
    prepared.system.check_machine(prepared.plan, prepared.storage)
    binary("oneshot")
    lab = prepared.make_lab()
    for step in prepared.steps:
        step.fault.check(lab)
    if prepared.capture is not None:
        prepared.capture.check(prepared.plan, prepared.backend)
