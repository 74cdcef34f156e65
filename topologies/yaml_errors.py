"""What is wrong in a YAML file, and the error that tells it. Needs nothing that reads YAML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.topologies.errors import UserError
from wanlat.topologies.findings import MAX_FINDINGS

# A terminal holds no more; `YamlError.mistakes` has the rest.
MAX_PRINTED = 200
# A file with more has one mistake everywhere, or is no file of ours.
MAX_TOLD = MAX_FINDINGS


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
    def of(cls, mistakes: Iterable[Mistake]) -> YamlError:
        """The error that lists these mistakes, one a line, in the order of the file."""
        every = tuple(mistakes)
        lines = [str(mistake) for mistake in every[:MAX_PRINTED]]
        if len(every) > MAX_PRINTED:
            lines.append(f"and {len(every) - MAX_PRINTED} more mistakes")
        if len(every) > 1:
            more = "or more " if len(every) == MAX_TOLD else ""
            lines.insert(0, f"{every[0].file} has {len(every)} {more}mistakes:")
        return cls("\n".join(lines), every)
