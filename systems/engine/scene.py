"""A cluster's nodes, options and values on one topology: the names that expressions know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.definition import Definition
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.text import Scene, evaluate

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.topologies.resolve import Plan


@dataclass
class Node:
    """A node as expressions see it; as a text it is its name."""

    name: str
    site: str
    address: str
    directory: str = ""
    """All that is this system's on the node, as the lab names it."""
    home: Path = Path()
    """The same as we see it from outside."""
    facts: SimpleNamespace = field(default_factory=SimpleNamespace)
    """What steps have learnt of it."""

    @property
    def data(self) -> str:
        """Where it keeps its data, by custom."""
        return f"{self.directory}/data"

    def __str__(self) -> str:
        return self.name


def of_lab(lab: Lab, system: str) -> list[Node]:
    """Return a lab's nodes, each with a directory for this system."""
    return [
        Node(
            node.name,
            node.site,
            node.address,
            directory=str(node.directory / system),
            home=node.host_directory / system,
        )
        for node in lab.nodes
    ]


def scene_of(
    definition: Definition,
    hooks: object,
    plan: Plan,
    given: Options,
    nodes: Iterable[Node] | None = None,
) -> dict[str, Any]:
    """Return what is known before a start; options have their values in effect. UserError."""
    every = list(nodes or (Node(known.name, known.site, known.address) for known in plan.nodes))
    options = SimpleNamespace(**dict(given))
    scene: dict[str, Any] = {
        "plan": plan,
        "topology": plan.name,
        "nodes": every,
        "ports": SimpleNamespace(**definition.ports),
        "hooks": hooks,
        "given": given,
        "options": options,
    }
    for name, option in definition.options.items():
        if option.derived is not None and getattr(options, name) is None:
            setattr(options, name, evaluate(option.derived, scene))
    for name, expression in definition.values.items():
        scene[name] = evaluate(expression, scene)
    return scene


def at(scene: Scene, node: Node) -> dict[str, Any]:
    """Return a scene as one of its nodes sees it."""
    nodes = scene["nodes"]
    place = next(index for index, other in enumerate(nodes) if other.name == node.name)
    return {
        **scene,
        "node": node,
        "peers": [other for other in nodes if other is not node],
        "later": nodes[place + 1 :],
    }


def recorded(definition: Definition, given: Options, scene: Scene) -> dict[str, Any]:
    """Return the options in effect as JSON values, for a bundle."""
    names = given.model_fields_set | set(type(given).model_fields)
    ours: Mapping[str, Any] = scene["options"].__dict__
    in_effect = type(given).model_construct(**{name: ours[name] for name in names})
    values = in_effect.model_dump(mode="json")
    values |= {name: evaluate(text, scene) for name, text in definition.recorded.items()}
    return {name: value for name, value in values.items() if value is not None}
