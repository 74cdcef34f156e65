"""Drills by the name of a shipped file, or by path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.drill.model import Drill
from topologies.wording import did_you_mean, listing, show
from topologies.yaml_lines import YamlError, load_yaml_model

_SHIPPED = Path(__file__).parent.parent / "drills"


class DrillError(YamlError):
    """A drill that cannot be used. The message lists every mistake, with file and line."""


def shipped() -> list[str]:
    """Return the names of the drills that come with wanlat, sorted."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


def find(name_or_path: str) -> Path:
    """Return the file of a shipped drill, or the path itself. Raises DrillError."""
    if name_or_path in shipped():
        return _SHIPPED / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    try:
        if name_or_path and path.exists():
            return path
    except OSError:
        pass
    raise DrillError(
        f"there is no drill named {show(name_or_path)}, and no file at that path"
        f"{did_you_mean(path.stem, shipped())}; shipped are {listing(shipped())}, "
        "any other is given as the path of its YAML file"
    )


def load(name_or_path: str, *, topology: str | None = None) -> Drill:
    """Return the drill of that name, or in the file at that path.

    ``topology`` takes the place of the file's own. A topology that the file names by a path is
    taken from where the file is. Names of nodes, and what faults are told, are checked on the
    topology, so that all mistakes are told at once. Raises DrillError, and what a topology that
    cannot be loaded raises.
    """
    # Imported here: the model alone is enough for who wants to read a drill.
    from experiments.drill.on_topology import findings

    path = find(name_or_path)

    def on_its_topology(raw: Any) -> Any:
        return findings(raw, topology or beside(path, raw))

    drill = load_yaml_model(path, Drill, on_its_topology, error=DrillError)
    return drill.model_copy(update={"topology": topology or beside(path, drill.to_dict())})


def beside(path: Path, raw: Any) -> str | None:
    """Return the topology that a drill names, a path as seen from here; None: it names none."""
    given = raw.get("topology") if isinstance(raw, dict) else None
    if not isinstance(given, str):
        return None
    if given.endswith((".yaml", ".yml")):
        near = path.parent / given
        return str(near) if near.exists() else given
    return given
