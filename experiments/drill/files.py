"""Drills by the name of a shipped file or by path, and the shipped files of claims."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.experiments.config.files import Shipped
from wanlat.topologies.yaml_errors import YamlError

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill


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
    taken from where the file is. Names of nodes, and what faults are told, are checked on the
    topology, so that all mistakes are told at once. Raises DrillError, and what a topology that
    cannot be loaded raises.
    """
    path = find(name_or_path)

    # Imported here, so that a mistyped name is answered at once.
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.on_topology import findings
    from wanlat.topologies.yaml_lines import load_yaml_model

    def on_its_topology(raw: Any) -> Any:
        return findings(raw, topology or beside(path, raw))

    drill = load_yaml_model(path, Drill, on_its_topology, error=DrillError)
    return drill.model_copy(update={"topology": topology or beside(path, drill.to_dict())})


@cache
def scenario(name: str) -> Drill:
    """Return a shipped drill as its file has it, unchecked on its topology."""
    from wanlat.experiments.drill.model import Drill
    from wanlat.topologies.yaml_lines import load_yaml_model

    return load_yaml_model(find(name), Drill, error=DrillError)


def beside(path: Path, raw: Any) -> str | None:
    """Return the topology that a drill names, a path as seen from here; None: it names none."""
    given = raw.get("topology") if isinstance(raw, dict) else None
    if not isinstance(given, str):
        return None
    if given.endswith((".yaml", ".yml")):
        near = path.parent / given
        return str(near) if near.exists() else given
    return given
