"""A store before it is started: its definition, its program, and what its options come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from wanlat.emulator.interpreter import which
from wanlat.systems.engine import options as checked
from wanlat.systems.engine import program, timeouts
from wanlat.systems.engine.definition import Definition, LowerBound, Program
from wanlat.systems.engine.identity import identity_of
from wanlat.systems.engine.install import Recipe
from wanlat.systems.engine.kinds import KINDS
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.program import Binary, Companion
from wanlat.systems.engine.protocols import PROTOCOLS, Api, Objects
from wanlat.systems.engine.scene import recorded, scene_of
from wanlat.systems.engine.steps import Step
from wanlat.systems.engine.text import evaluate, fill, filled
from wanlat.systems.errors import SystemMissing
from wanlat.systems.placement import Least, least_of, meanings_of, near, nearest
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import did_you_mean

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan


class Messages(Protocol):
    """Labels the messages between a store's nodes, from the first bytes of a packet's payload.

    Packets come in the order of time; ``connection`` is the same in both directions, and a request
    is what goes to the lower port. None: it is nothing that is known.
    """

    def label(self, payload: bytes, connection: int, *, is_request: bool) -> str | None:
        """Return what to call a message."""


Replicas = Callable[[bytes], tuple[str, ...] | None]
"""Takes a key; returns the nodes that hold it, the first one first; None when that is not known."""

Distance = Callable[[str, str], Any]
"""Takes two nodes; returns how far apart they are, or an array with that of many networks."""


class _CountedError(Exception):
    """What a store promises goes by how many replicas are in a site, and not by distances."""


def _counted(_held: object) -> NoReturn:
    raise _CountedError


class DefinedSystem:
    """A store as its definition has it: its program, its options, what it promises."""

    def __init__(self, definition: Definition, directory: Path, hooks: ModuleType | None) -> None:
        self.definition = definition
        self.directory = directory
        self.hooks = hooks
        self.name = definition.name
        self.title = definition.title or definition.name
        self.origin = definition.origin
        self.min_nodes = definition.nodes.get("min", 1)
        self.max_nodes = definition.nodes.get("max", 256)
        self.messages: type[Messages] | None = getattr(hooks, "Messages", None)
        """What labels its nodes' messages in traces, where they are of no standard protocol."""
        self._program_of = definition.extends or definition.name

    @cached_property
    def options_model(self) -> type[Options]:
        """What a study may set."""
        return checked.model_of(self.name, self.definition.options)

    @property
    def recipe(self) -> Recipe | None:
        """How `wanlat system install` brings its program; None when it does not."""
        return recipe_of(self.definition, self._program_of)

    @property
    def front_recipe(self) -> Recipe | None:
        """How it brings what stands before its nodes; None when it does not."""
        front = self.definition.front
        return recipe_of(front.program, front.program.name) if front else None

    def hook(self, name: str) -> Callable[..., Any]:
        """Return a function of its hooks.py."""
        function: Callable[..., Any] = getattr(self.hooks, name)
        return function

    def _hooked(self, name: str, *arguments: Any) -> Any:
        """Call a function of its hooks.py; None when there is none of that name."""
        function = getattr(self.hooks, name, None)
        return None if function is None else function(*arguments)

    # -- its program -------------------------------------------------------------------------

    def find(self) -> Binary:
        """Return the binary on this machine. SystemMissing has the way to get it."""
        front = self.definition.front
        wanted = [(self.definition, self._program_of), *([(front.program, None)] if front else [])]
        binaries, missing = list[Binary](), list[str]()
        for wanted_program, name in wanted:
            try:
                binaries.append(program.find(wanted_program, self.directory, name))
            except SystemMissing as absent:
                missing.append(str(absent))
        if missing:
            raise SystemMissing(" ".join(missing))
        if front is None:
            return binaries[0]
        store, its = binaries
        facts = its.path, its.version, its.sha256, its.environment, its.receipt
        beside = Companion(front.program.name, *facts)
        return replace(
            store, label=f"{store.label}, {beside.name} {beside.version}", beside=(beside,)
        )

    def binary_for(self, options: Options) -> Binary:
        """Return the binary to run with these options, which for most does not depend on them."""
        chosen: Binary | None = self._hooked("binary_for", self, options)
        return chosen or self.find()

    def recorded(self, options: Options, binary: Binary) -> dict[str, Any]:
        """Return all that decides what runs, for a bundle's manifest: by it two are the same."""
        entry = binary.as_recorded(self.name) | {"title": self.title}
        identity = identity_of(self.definition, self.directory, options, binary.path)
        entry["packages"] = {**entry.get("packages", {}), **identity.packages}
        entry |= {"files": dict(identity.files), "definition": dict(identity.definition)}
        if binary.beside:
            entry["beside"] = [companion.as_recorded() for companion in binary.beside]
        return entry

    @property
    def how_to_get(self) -> str:
        """The command, or what else to do, that brings the binary to this machine."""
        return program.how_to_get(self.definition, self.directory)

    # -- what is known before a start --------------------------------------------------------

    def parse_options(self, given: Mapping[str, object] | None = None) -> Options:
        """Check options as a study gives them. UserError lists every mistake."""
        return checked.parse(self.name, self.options_model, given or {})

    def scene(self, plan: Plan, options: Options) -> dict[str, Any]:
        """Return the names that expressions know, on a topology."""
        return scene_of(self.definition, self.hooks, plan, options)

    def api(self, options: Options) -> Api:
        """Return what is measured of the system with these options."""
        api: Api = fill(self.definition.protocol, {"options": options, "given": options})
        return api

    def objects(self, options: Options) -> Objects:
        """Return which endpoints do what to objects: its protocol's, and its own."""
        usual, own = PROTOCOLS[self.api(options)].objects, self.definition.objects
        changed = {operation: getattr(own, operation) for operation in own.model_fields_set}
        return usual.model_copy(update=changed)

    def roles(self, plan: Plan, options: Options) -> dict[str, tuple[str, ...]]:
        """Return nodes with a part of their own, by its name: ``{"leader": ("n1",)}``."""
        if not self.definition.roles:
            return {}
        scene = self.scene(plan, options)
        roles = {role: evaluate(text, scene) for role, text in self.definition.roles.items()}
        return {role: tuple(nodes) for role, nodes in roles.items() if nodes}

    def replicas(self, plan: Plan, options: Options) -> Replicas:
        """Return the function from a key to the nodes that hold it."""
        if not hasattr(self.hooks, "replicas"):
            return lambda _: None
        return partial(self.hook("replicas"), self.scene(plan, options))

    def least_round_trips(
        self, plan: Plan, options: Options, target: str, endpoint: str, placement: str
    ) -> Least | None:
        """Return the least round trips over WAN links that a request to a node can cost.

        That of the place of the replicas: what no store can beat that has as many, at these places,
        and keeps the promise this one makes of what was acknowledged. Not what this store costs.
        ``target`` is the target node, by a client in the same site (another one:
        `Least.from_client`); ``placement`` is whether it holds the key, as in samples (local,
        remote, unknown). None where nothing is known.
        """
        scene = self._scene_of_request(plan, options, target, endpoint, placement)
        bound = self._bound_of(endpoint, options, scene)
        if bound is None:
            return None
        if bound.needed is None:
            return Least(0, bound.why)
        needed, replicas = evaluate(bound.needed, scene), evaluate(bound.of, scene)
        return least_of(needed, replicas, evaluate(bound.near, scene), bound.what)

    def _bound_of(
        self, endpoint: str, options: Options, scene: Mapping[str, Any]
    ) -> LowerBound | None:
        """Return the lower bound of an endpoint's requests; None where nothing is known."""
        meanings = meanings_of(endpoint, self.objects(options).does(endpoint))
        for bound in self.definition.lower_bounds:
            fits = bool(meanings & set(bound.to))
            if fits and (bound.when is None or evaluate(bound.when, scene)):
                return bound
        return None

    def indispensable_sites(self, plan: Plan, options: Options) -> list[str]:
        """Return remarks on sites without which no write is acknowledged, in one of several.

        They have so many of the replicas that the others are fewer than a write needs: by its
        lower bound, where a key's replicas lie worst.
        """
        write = self.objects(options).write
        if len(plan.sites) < 2 or write is None:
            return []
        remarks = []
        for site in plan.sites:
            scene = self._scene_of_request(plan, options, site.nodes[0].name, write, "unknown")
            bound = self._bound_of(write, options, scene)
            if bound is None or bound.needed is None:
                continue
            needed, replicas = evaluate(bound.needed, scene), evaluate(bound.of, scene)
            held = max(evaluate(bound.near, scene), default=0)
            if replicas - held < needed:
                remarks.append(
                    f"{self.title}: a write needs {needed} of {replicas} {bound.what}s, and site "
                    f"{site.name} has {held}: while it is lost no write is acknowledged"
                )
        return remarks

    def promised_round_trips(
        self, plan: Plan, options: Options, target: str, endpoint: str, placement: str
    ) -> float | None:
        """Return the round trips over WAN links that this store's own protocol takes.

        Arguments are those of `least_round_trips`. None where that is not known by construction.
        """

        def apart(a: str, b: str) -> int:
            return int(plan.node(a).site != plan.node(b).site)

        scene = self._scene_of_request(plan, options, target, endpoint, placement, apart)
        known = self._promised(endpoint, options, scene)
        return None if known is None else float(known)

    def promised_distance(
        self, plan: Plan, options: Options, target: str, endpoint: str, distance: Distance
    ) -> Any | None:
        """Return how far this store's own protocol goes for a request, in what ``distance`` is of.

        With round-trip times that is its latency on the network alone. None where it is not known
        by construction, or depends on more than distances.
        """
        scene = self._scene_of_request(plan, options, target, endpoint, "unknown", distance)
        try:
            return self._promised(endpoint, options, {**scene, "near": _counted})
        except _CountedError:
            return None

    def leader_option(self, plan: Plan, options: Options) -> str | None:
        """Return the option with the node by which its promises go; None where there is none."""
        in_effect = self.scene(plan, options)["options"]
        expressions = " ".join(self.definition.promised.values())
        for name, option in self.definition.options.items():
            is_named = re.search(rf"\boptions\.{name}\b", expressions)
            if option.type == "node" and is_named and getattr(in_effect, name) is not None:
                return name
        return None

    def _promised(self, endpoint: str, options: Options, scene: Mapping[str, Any]) -> Any | None:
        meanings = meanings_of(endpoint, self.objects(options).does(endpoint))
        for name, expression in self.definition.promised.items():
            if name in meanings:
                return evaluate(expression, scene)
        return None

    def _scene_of_request(
        self,
        plan: Plan,
        options: Options,
        target: str,
        endpoint: str,
        placement: str,
        distance: Distance = lambda _a, _b: 0,
    ) -> dict[str, Any]:
        """Return the names that expressions about one kind of requests know besides."""
        names = [node.name for node in plan.nodes]

        def to_node(name: str) -> Any:
            return distance(target, name)

        def to_nearest(count: int, name: str = target, among: Iterable[object] = names) -> Any:
            return nearest(count, [distance(name, str(e)) for e in among if str(e) != name])

        def to_majority(name: str = target, among: Sequence[object] = names) -> Any:
            return to_nearest(len(among) // 2, name, among)

        return {
            **self.scene(plan, options),
            **{"target": target, "endpoint": endpoint, "placement": placement},
            **{"near": partial(near, plan, target), "to_node": to_node},
            **{"to_nearest": to_nearest, "to_majority": to_majority},
        }

    def effective(self, plan: Plan, options: Options) -> dict[str, Any]:
        """Return the options as they are in effect on a topology, defaults filled in."""
        return recorded(self.definition, options, self.scene(plan, options))

    def timeouts(self, options: Options) -> list[dict[str, Any]]:
        """Return the store's timeouts with these options, as a manifest has them; in ms."""
        return timeouts.entries(self.definition, options)

    def check_machine(self, plan: Plan, storage: str) -> None:
        """Raise MachineError when this machine cannot run the store on a lab of that storage."""
        for need in self.definition.needs:
            if which(need.program) is None:
                raise MachineError(need.error)
        self._hooked("check_machine", plan, storage)

    def check_topology(self, plan: Plan, options: Options) -> None:
        """Raise UserError when the store cannot run on these nodes with these options."""
        count, names = len(plan.nodes), [node.name for node in plan.nodes]
        if not self.min_nodes <= count <= self.max_nodes:
            wanted = f"{self.min_nodes} to {self.max_nodes} nodes"
            if self.min_nodes == self.max_nodes:
                wanted = f"{self.min_nodes} node{'s' * (self.min_nodes > 1)} and no others"
            raise UserError(
                f"{self.title} runs on {wanted} here, and topology {plan.name} has {count}. Choose "
                "another topology (`wanlat topology list` has how many nodes each has) or another "
                "system."
            )
        for name, option in self.definition.options.items():
            node = getattr(options, name)
            if option.type == "node" and node is not None and node not in names:
                raise UserError(
                    f"{self.title}'s {name} `{node}` is not a node of topology "
                    f"{plan.name}{did_you_mean(node, names)}. Correct the option, or leave it out."
                )
        scene = self.scene(plan, options)
        for wrong in timeouts.invalid(self.definition, options):
            raise UserError(f"{self.title}'s {wrong}. Correct its options.")
        for requirement in self.definition.require:
            if not evaluate(requirement.that, scene):
                raise UserError(filled(requirement.error, scene))

    def ready(self, options: Options) -> Sequence[Step]:
        """Return what is requested until a node serves; by default what its protocol has."""
        protocol = PROTOCOLS[self.api(options)]
        section = self.definition.section(protocol)
        return self.definition.ready or ([] if section is None else protocol.ready(section))


def recipe_of(owner: Program, name: str) -> Recipe | None:
    """Return how a program is brought into the cache under that name; None when it is not."""
    if owner.install is None or owner.install.kind not in KINDS:
        return None

    install = owner.install

    def version(path: Path, environment: dict[str, str]) -> str:
        record = program.go_version(path, install.go) if install.go else None
        return record or program.read_version(owner, path, environment)

    return Recipe(name, install, version, KINDS[install.kind])
