"""Everything that can be wrong with a drill, checked before anything starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.bundle.write import default_directory
from wanlat.emulator.binaries import binary
from wanlat.emulator.faults.timeline import Step
from wanlat.emulator.lab import BackendName
from wanlat.experiments.drill.claims import Claim, claims_on
from wanlat.experiments.drill.files import load
from wanlat.experiments.drill.model import Drill
from wanlat.experiments.drill.roles import Place, Roles, assign
from wanlat.experiments.drill.timeline import Stated, scaled, stated
from wanlat.experiments.session import CaptureWanted, Setup
from wanlat.systems import registry
from wanlat.systems.base import Api
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.wording import did_you_mean, listing


@dataclass(frozen=True, kw_only=True)
class PreparedDrill(Setup):
    """One run of a drill on one system, with everything that could be wrong about it checked."""

    drill: Drill
    """Scaled, as it is going to run."""
    scale: float
    topology: Topology
    api: Api
    roles: Roles
    """The nodes of each role."""
    places: tuple[Place, ...]
    claims: tuple[Claim, ...]
    """Of this system about this drill, scaled with it."""
    steps: tuple[Step, ...]
    directory: Path
    capture: CaptureWanted | None

    @property
    def stated(self) -> Stated:
        """How long it takes at most."""
        return stated(self.drill)


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
    shipped ones. Raises UserError or MachineError; nothing has been started or written then.
    """
    read = load(drill, topology=topology) if isinstance(drill, str) else drill
    subject = registry.get(system)
    if system not in read.systems:
        raise UserError(
            f"Drill {read.name} is not meant for system {system}"
            f"{did_you_mean(system, read.systems)}: its `systems` are {listing(read.systems)}. "
            "Add it there, with the options it needs."
        )
    changes: dict[str, Any] = {"topology": topology, "storage": storage, "seed": seed}
    changes = {key: value for key, value in changes.items() if value is not None}
    of_system = {**read.options.get(system, {}), **(options or {})}
    read = read.model_copy(update={**changes, "options": {system: of_system}})
    wanted = scaled(read, scale)
    made = load_topology(wanted.topology)
    plan = resolve(made)
    drawn = secrets.randbits(32) if wanted.seed is None else wanted.seed
    assigned = assign(wanted, system, plan, drawn)
    prepared = PreparedDrill(
        name=system,
        plan=plan,
        system=subject,
        options=assigned.options,
        binary=subject.binary_for(assigned.options),
        targets=tuple(place.target for place in assigned.places),
        client=assigned.places[0].node,
        seed=drawn,
        backend=backend,
        storage=wanted.storage,
        splice="all",  # every link can be changed
        volumes=assigned.volumes,
        drill=wanted,
        scale=scale,
        topology=made,
        api=assigned.api,
        roles=assigned.roles,
        places=assigned.places,
        claims=tuple(claim.scaled(scale) for claim in claims_on(read, system, claims)),
        steps=assigned.steps,
        directory=directory or default_directory(f"{wanted.name}-{system}"),
        capture=capture,
    )
    _check_machine(prepared)
    return prepared


def _check_machine(prepared: PreparedDrill) -> None:
    """Raise MachineError for what the machine lacks, UserError for a bundle that cannot be."""
    prepared.system.check_machine(prepared.plan, prepared.storage)
    binary("oneshot")
    lab = prepared.make_lab()
    for step in prepared.steps:
        step.fault.check(lab)
    if prepared.capture is not None:
        prepared.capture.check(prepared.plan, prepared.backend)
    directory = prepared.directory
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(
            f"The output directory {directory} is not empty, and a bundle never overwrites "
            "another. Name a new one with --out."
        )
