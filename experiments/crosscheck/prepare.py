"""What a cross-check is to do, with everything that could be wrong about it looked at first."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wanlat.emulator.binaries import binary
from wanlat.emulator.lab import BackendName
from wanlat.experiments.crosscheck.lanes import ONESHOT
from wanlat.experiments.endpoints import BOB, S3, has
from wanlat.probes.independent.catalogue import PROGRAMS, Program, named, speaking
from wanlat.systems import registry
from wanlat.systems.base import Api, Binary, System
from wanlat.systems.options import Options
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.wording import did_you_mean, listing

_NEAREST_MS = 10.0
"""Below this RTT a round trip is too like the time a client takes to be told from it."""


@dataclass(frozen=True)
class Prepared:
    """A cross-check with everything that could be wrong about it looked at."""

    plan: Plan
    system: System[Any]
    options: Options
    binary: Binary
    api: Api
    endpoints: tuple[str, ...]
    programs: tuple[Program, ...]
    samples: int
    seed: int
    backend: BackendName | None
    asked: str
    distant: str
    """Where the clients stand when they stand at a distance."""


def prepare(
    topology: Topology,
    system_name: str,
    *,
    endpoints: Sequence[str] = (),
    clients: Sequence[str | Program] = (),
    samples: int = 20,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    backend: BackendName | None = None,
) -> Prepared:
    """Check everything that the user could have got wrong, and that the machine must have.

    No endpoints mean all that the system's API has, no clients all that are installed. Raises
    UserError or MachineError; nothing has been started then.
    """
    resolved = resolve(topology)
    system = registry.get(system_name)
    parsed = system.parse_options(options)
    system.check_topology(resolved, parsed)
    system.check_machine(resolved, "memory")
    api = system.api(parsed)
    asked = resolved.nodes[0].name
    distant = _distant(resolved, asked)
    binary("oneshot")
    return Prepared(
        plan=resolved,
        system=system,
        options=parsed,
        binary=system.find(),
        api=api,
        endpoints=_endpoints(api, endpoints, system_name),
        programs=_programs(api, clients, system_name),
        samples=samples,
        seed=secrets.randbits(32) if seed is None else seed,
        backend=backend,
        asked=asked,
        distant=distant,
    )


def _distant(resolved: Plan, asked: str) -> str:
    here = resolved.node(asked).site
    others = [node.name for node in resolved.nodes if node.site != here]
    if not others:
        raise UserError(
            f"Topology {resolved.name} has one site, and a cross-check asks a node of one site "
            "from another: choose a topology with two."
        )
    rtt_ms = resolved.rtt_ms(others[0], asked)
    if rtt_ms < _NEAREST_MS:
        raise UserError(
            f"{others[0]} and {asked} of topology {resolved.name} are {rtt_ms:g} ms apart; a round "
            f"trip is told from a client's own time from {_NEAREST_MS:g} ms on. `--rtt` sets it."
        )
    return others[0]


def _endpoints(api: Api, wanted: Sequence[str], system: str) -> tuple[str, ...]:
    known: dict[Api, tuple[str, ...]] = {"s3": S3, "bob": BOB, "grpc": ()}
    if not known[api]:
        raise UserError(
            f"System {system} serves methods of its own, which no independent client here knows."
        )
    for name in wanted:
        if name not in known[api]:
            raise UserError(
                f"System {system} has no endpoint {name!r}{did_you_mean(name, known[api])}; "
                f"it has {has(api)}."
            )
    return tuple(dict.fromkeys(wanted)) or known[api]


def _programs(api: Api, wanted: Sequence[str | Program], system: str) -> tuple[Program, ...]:
    found = [each if isinstance(each, Program) else named(each) for each in wanted]
    for program in found:
        if program.speaks not in (None, api):
            raise UserError(
                f"The client {program.name} does not speak what system {system} is asked in; "
                f"{listing(each.name for each in PROGRAMS if each.speaks == api)} do."
            )
        program.check()
    found = found or speaking(api)
    if not found:
        first = next(each for each in PROGRAMS if each.speaks == api)
        first.check()  # says what is missing, and what installs it
        raise MachineError(f"No client of system {system} is installed.")
    names = [program.name for program in found]
    if len(set(names)) < len(names) or ONESHOT in names:
        raise UserError(f"Two clients cannot have the same name: {listing(names)}.")
    return tuple(found)
