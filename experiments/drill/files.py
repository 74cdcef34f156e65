"""Drills by the name of a shipped file or by path, and the shipped files of claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.experiments.config.files import Shipped
from wanlat.topologies.findings import YamlError

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
    from wanlat.topologies.findings import Finding
    from wanlat.topologies.yaml_tree import Document


class DrillError(YamlError):
    """A drill that cannot be used. The message lists every mistake, with file and line."""


class ClaimsError(YamlError):
    """Claims that cannot be used. The message lists every mistake, with file and line."""


_SHIPPED = Shipped(Path(__file__).parent.parent / "drills", "drill", DrillError)
shipped, find = _SHIPPED.names, _SHIPPED.find
CLAIMS = Shipped(Path(__file__).parent.parent / "claims", "file of claims", ClaimsError)


def load(name_or_path: str, *, topology: str | None = None) -> Drill:
    """Return the drill of that name, or in the file at that path.

    ``topology`` takes the place of the file's own. A topology that the file names by a path is
    taken from where the file is. What the file says by itself is checked first; if all of that is
    right, names of nodes and faults' settings are checked on the topology. Raises DrillError with
    every mistake.
    """
    path = find(name_or_path)

    # Imported here, so that a mistyped name is answered at once.
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.roles import findings
    from wanlat.topologies.yaml_lines import load_yaml_model

    def on_its_topology(_: Document, drill: Drill) -> Iterable[Finding]:
        return findings(drill, topology or _beside(path, drill.topology))

    drill = load_yaml_model(path, Drill, also=on_its_topology, error=DrillError)
    return drill.model_copy(update={"topology": topology or _beside(path, drill.topology)})


def changed(drill: Drill, settings: Mapping[str, Any]) -> Drill:
    """Return a drill with parameters set to values; dotted for inner keys.

    Raises UserError, which tells every mistake.
    """
    if not settings:
        return drill
    from wanlat.experiments.config.overrides import set_values, validated
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.roles import findings

    raw = set_values(drill.to_dict(), settings)
    return validated(f"Drill {drill.name}", raw, Drill, lambda made: findings(made, made.topology))


@cache
def scenario(name: str) -> Drill:
    """Return a shipped drill as its file has it, unchecked on its topology."""
    from wanlat.experiments.drill.model import Drill
    from wanlat.topologies.yaml_lines import load_yaml_model

    return load_yaml_model(find(name), Drill, error=DrillError)


def _beside(path: Path, topology: str) -> str:
    """Return a drill's topology; one that is a path, as seen from here."""
    near = path.parent / topology
    return str(near) if topology.endswith((".yaml", ".yml")) and near.exists() else topology
