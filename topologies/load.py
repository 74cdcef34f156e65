"""Topologies by the name of a shipped file, or by path."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.topologies.findings import YamlError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.topologies.model import Topology

_SHIPPED = Path(__file__).parent


class TopologyError(YamlError):
    """A topology that cannot be used. The message lists every mistake, with file and line."""


def shipped() -> list[str]:
    """The names of the topologies that come with wanlat, sorted."""
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


def load(name_or_path: str | Path) -> Topology:
    """The topology of that name, or in the file at that path.

    A shipped name wins over a file of the same name; `./NAME` is always a path. The samples of a
    `table` are read from the file that it names, beside the topology's. Raises TopologyError
    with every mistake.
    """
    path = find(name_or_path)

    # Imported here, so that a mistyped name is answered at once.
    from wanlat.topologies.model import Topology
    from wanlat.topologies.yaml_lines import load_yaml_model

    return load_yaml_model(path, Topology, error=TopologyError)


def find(name_or_path: str | Path) -> Path:
    """Return the file of that name, or the path itself. Raises TopologyError."""
    if isinstance(name_or_path, str) and name_or_path in shipped():
        return _SHIPPED / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    with suppress(OSError, ValueError):  # too long, or with a NUL character: no file's name
        try:
            if name_or_path != "" and path.exists():
                return path
        except PermissionError:
            return path  # who reads it reports that
    near = did_you_mean(path.stem, shipped())
    raise TopologyError(
        f"there is no topology named {show(str(name_or_path))}, and no file at that path{near};"
        f" shipped are {listing(shipped())}, any other is given as the path of its YAML file"
    )
