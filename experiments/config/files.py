"""Files that come with wanlat, by name, and others by path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wanlat.topologies.findings import YamlError
from wanlat.topologies.wording import did_you_mean, listing, show


@dataclass(frozen=True)
class Shipped:
    """The YAML files of a directory. ``what`` they are, and the error for what is none."""

    directory: Path
    what: str
    error: type[YamlError]

    def names(self) -> list[str]:
        """Return their names, sorted."""
        return sorted(path.stem for path in self.directory.glob("*.yaml"))

    def find(self, name_or_path: str) -> Path:
        """Return the file of that name, or the path itself. Raises ``error``."""
        names = self.names()
        if name_or_path in names:
            return self.directory / f"{name_or_path}.yaml"
        path = Path(name_or_path)
        try:
            if name_or_path and path.exists():
                return path
        except PermissionError:
            return path  # who reads it reports that
        except OSError:
            pass
        raise self.error(
            f"there is no {self.what} named {show(name_or_path)}, and no file at that path"
            f"{did_you_mean(path.stem, names)}; shipped are {listing(names)}, "
            "any other is given as the path of its YAML file"
        )


class StudyError(YamlError):
    """A study that cannot be used. The message lists every mistake, with file and line."""


_SHIPPED = Shipped(Path(__file__).parents[1] / "studies", "study", StudyError)
shipped, find = _SHIPPED.names, _SHIPPED.find
