"""Everything that can be wrong with a drill, checked before anything starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.write import default_directory
from wanlat.emulator.binaries import binary
from wanlat.emulator.capture import Capture
from wanlat.emulator.faults.roles import draw
from wanlat.emulator.faults.timeline import Step
from wanlat.emulator.lab import BackendName
from wanlat.experiments.drill.claim import Claim, claims_on
from wanlat.experiments.drill.files import load
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.on_topology import Roles, fault_of, place
from wanlat.experiments.drill.rows import Place
from wanlat.experiments.drill.scale import scaled, scaled_claims
from wanlat.experiments.drill.timing import Stated, stated
from wanlat.experiments.session import CaptureWanted, Setup
from wanlat.systems import registry
from wanlat.systems.base import Api, Binary, System
from wanlat.systems.options import Options
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import did_you_mean, listing, show


@dataclass(frozen=True)
class PreparedDrill:
    """One run of a drill on one system, with everything that could be wrong about it checked."""

    drill: Drill
    """Scaled, as it is going to run."""
    scale: float
    topology: Topology
    plan: Plan
    system: System[Any]
    options: Options
    binary: Binary
    api: Api
    roles: Roles
    places: tuple[Place, ...]
    claims: tuple[Claim, ...]
    """Of this system about this drill, scaled with it."""
    steps: tuple[Step, ...]
    volumes: Mapping[str, int]
    """Nodes whose directory is a file system of so many bytes."""
    seed: int
    backend: BackendName | None
    directory: Path
    capture: CaptureWanted | None
    stated: Stated

    @property
    def setup(self) -> Setup:
        """The store and its network; every link can be changed."""
        return Setup(
            name=self.system.name,
            plan=self.plan,
            system=self.system,
            options=self.options,
            binary=self.binary,
            targets=tuple(place.target for place in self.places),
            client=self.places[0].node,
            seed=self.seed,
            backend=self.backend,
            storage=self.drill.storage,
            splice="all",
            volumes=self.volumes,
        )


def prepare(
    drill: Drill | str,
    *,
    system: str,
    topology: str | None = None,
    scale: float = 1.0,
    seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    storage: str | None = None,
    claims: Sequence[Path] = (),
    backend: BackendName | None = None,
    capture: CaptureWanted | None = None,
    directory: Path | None = None,
) -> PreparedDrill:
    """Check everything that the user could have got wrong, and that the machine must have.

    ``drill`` is one, or the name of a shipped one or the path of its file. ``options`` are the
    system's; they take precedence over the drill's. ``claims`` are files of claims besides the
    shipped ones. Raises UserError or MachineError; nothing has
    been started or written then.
    """
    read = load(drill, topology=topology) if isinstance(drill, str) else drill
    changes: dict[str, Any] = {"topology": topology, "storage": storage, "seed": seed}
    read = read.model_copy(update={key: each for key, each in changes.items() if each is not None})
    wanted = scaled(read, scale)
    subject = _system(wanted, system)
    chosen = subject.parse_options({**wanted.options.get(system, {}), **(options or {})})
    wanted = wanted.model_copy(
        update={"options": {system: {**wanted.options.get(system, {}), **(options or {})}}}
    )
    api = subject.api(chosen)
    if api not in ("s3", "bob"):
        raise UserError(
            f"System {system} has an API of its own here, and a drill reads and writes objects. "
            "Choose a system that speaks S3 or Bob's API."
        )
    if wanted.object_size.bytes == 0:
        raise UserError("object_size 0: of an empty object nobody can tell whether it is there.")
    made = load_topology(wanted.topology)
    plan = resolve(made)
    subject.check_topology(plan, chosen)
    drawn = secrets.randbits(32) if wanted.seed is None else wanted.seed
    roles = draw(wanted.selects, plan, subject.roles(plan, chosen), drawn)
    timed = _steps(wanted, plan, roles)
    prepared = PreparedDrill(
        drill=wanted,
        scale=scale,
        topology=made,
        plan=plan,
        system=subject,
        options=chosen,
        binary=subject.binary_for(chosen),
        api=api,
        roles=roles,
        places=_places(wanted, plan, roles),
        claims=scaled_claims(claims_on(read, system, claims), scale),
        steps=timed,
        volumes=_volumes(timed),
        seed=drawn,
        backend=backend,
        directory=directory or default_directory(f"{wanted.name}-{system}"),
        capture=capture,
        stated=stated(wanted),
    )
    _check_machine(prepared)
    return prepared


def _system(drill: Drill, name: str) -> System[Any]:
    system = registry.get(name)
    if name not in drill.systems:
        raise UserError(
            f"Drill {drill.name} is not meant for system {name}{did_you_mean(name, drill.systems)}:"
            f" its `systems` are {listing(drill.systems)}. Add it there, with the options it needs."
        )
    return system


def _places(drill: Drill, plan: Plan, roles: Roles) -> tuple[Place, ...]:
    found = []
    for name, client in drill.clients.items():
        try:
            found.append(place(name, client, plan, roles))
        except UserError as error:
            raise UserError(f"client {show(name)}: {error}") from None
    return tuple(found)


def _steps(drill: Drill, plan: Plan, roles: Roles) -> tuple[Step, ...]:
    """Return the faults with their times after the beginning of `during`. Raises UserError."""
    timed = []
    for number, spec in enumerate(drill.faults, start=1):
        try:
            fault = fault_of(spec, plan, roles)
        except UserError as error:
            raise UserError(f"drill {drill.name}, fault {number}: {error}") from None
        until_ns = None
        if fault.is_undone:
            until_ns = drill.phases.during.ns if spec.lasts is None else spec.at.ns + spec.lasts.ns
        timed.append(Step(number, fault, spec.at.ns, until_ns))
    return tuple(timed)


def _volumes(timed: Sequence[Step]) -> dict[str, int]:
    """Return the size of the file system that each node with one gets. Raises UserError."""
    sizes: dict[str, int] = {}
    for step in timed:
        for node, size in step.fault.volumes.items():
            if sizes.setdefault(node, size) != size:
                raise UserError(
                    f"Two faults want the disk of {node} to be of {sizes[node]} and of {size} "
                    "bytes; it has one size. Give both the same."
                )
    return sizes


def _check_machine(prepared: PreparedDrill) -> None:
    """Raise MachineError for what the machine lacks, UserError for a bundle that cannot be."""
    prepared.system.check_machine(prepared.plan, prepared.drill.storage)
    binary("oneshot")
    lab = prepared.setup.make_lab()
    for step in prepared.steps:
        step.fault.check(lab)
    wanted = prepared.capture
    if wanted is not None:
        Capture(Path(), wanted.limit_bytes, wanted.snap_bytes)  # its figures, now and not later
        if not prepared.plan.wan_links:
            raise UserError(
                f"{prepared.plan.name} has no WAN link, so --capture has nothing to record."
            )
    directory = prepared.directory
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(
            f"The output directory {directory} is not empty, and a bundle never overwrites "
            "another. Name a new one with --out."
        )
