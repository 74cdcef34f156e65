"""What is wrong in a document: one mistake at one place, and the error that lists them all.

Needs nothing that reads YAML.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import short

# Of a file with more, nobody wants the rest; a terminal holds even less.
MAX_FINDINGS = 10_000
MAX_PRINTED = 200

# The way to a value from the top of the document: keys and list positions.
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at one place, before it has a line number.

    `path` leads to the value that is wrong (or, with `at_key`, to the key that is); `see` to an
    earlier place that it contradicts.
    """

    path: Path
    text: str
    see: Path | None = None
    at_key: bool = False

    def under(self, parent: Path) -> Finding:
        """The same finding in a document that holds the checked part at `parent`."""
        see = None if self.see is None else parent + self.see
        return Finding(parent + self.path, self.text, see, self.at_key)


def path_text(path: Path) -> str:
    """`sites[1].lan.rtt`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if text else short(step)
    return text


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file. `line` and `column` count from 1; `where` is as `sites[1].name`."""

    file: str
    line: int | None
    column: int | None
    where: str
    text: str

    def __str__(self) -> str:
        """`FILE:LINE: where: what is wrong; what is allowed`."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (place, self.where, self.text) if part)


class YamlError(UserError):
    """A YAML file that cannot be used. `mistakes` has all, or the first 10,000; the text 200."""

    def __init__(self, message: str, mistakes: Iterable[Mistake] = ()) -> None:
        """Without mistakes when there is no file to have them."""
        super().__init__(message)
        self.mistakes = tuple(mistakes)

    @classmethod
    def of_mistakes(cls, mistakes: Iterable[Mistake]) -> YamlError:
        """The error that lists these mistakes, one a line, in the order of the file."""
        every = tuple(mistakes)
        lines = [str(mistake) for mistake in every[:MAX_PRINTED]]
        if len(every) > MAX_PRINTED:
            lines.append(f"and {len(every) - MAX_PRINTED} more mistakes")
        if len(every) > 1:
            more = "or more " if len(every) == MAX_FINDINGS else ""
            lines.insert(0, f"{every[0].file} has {len(every)} {more}mistakes:")
        return cls("\n".join(lines), every)
