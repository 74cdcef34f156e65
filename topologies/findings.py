"""One mistake in a document: what is wrong, and the way to it."""

from dataclasses import dataclass

from wanlat.topologies.wording import short

# Of a file with more, nobody asks for the rest.
MAX_FINDINGS = 10_000

# The way to a value from the top of the document: keys and list positions.
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at one place, before it has a line number.

    `path` leads to the value that is wrong (or, with `at_key`, to the key that is); `see` to an
    earlier place that it contradicts; `line` overrides the line of the path.
    """

    path: Path
    text: str
    see: Path | None = None
    at_key: bool = False
    line: int | None = None

    def under(self, parent: Path) -> "Finding":
        """The same finding in a document that holds the checked part at `parent`."""
        see = None if self.see is None else parent + self.see
        return Finding(parent + self.path, self.text, see, self.at_key, self.line)


def path_text(path: Path) -> str:
    """`sites[1].lan.rtt`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{short(step)}" if text else short(step)
    return text
