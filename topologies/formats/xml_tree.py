"""An XML file as plain elements. A DTD is refused, for its entities may expand without end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from wanlat.topologies.errors import UserError
from wanlat.topologies.text_files import UnreadableFile, read_text
from wanlat.topologies.wording import printable

_DEEPEST = 50


@dataclass
class Element:
    """One element: its name without a namespace, its attributes, its text, what is in it."""

    name: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    inner: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """The elements of a name directly within."""
        return (element for element in self.inner if element.name == name)


def parse(path: Path, most_bytes: int) -> Element:
    """The outermost element of a file. Raises UserError."""
    file = str(path)
    root: list[Element] = []
    stack: list[Element] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        element = Element(name.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        if len(stack) > _DEEPEST:
            raise UnreadableFile("nested too deeply", element.line)
        (stack[-1].inner if stack else root).append(element)
        stack.append(element)

    def text(data: str) -> None:
        if stack:
            stack[-1].text += data

    def refuse(*_: object) -> None:
        raise UnreadableFile(
            "it has a document type (<!DOCTYPE …>), whose entities may expand without end; remove"
            " it",
            parser.CurrentLineNumber,
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(read_text(path, "an XML file", most_bytes), True)
    except UnreadableFile as problem:
        raise UserError(problem.at(file)) from None
    except expat.ExpatError as problem:
        what = printable(expat.ErrorString(problem.code) or "it cannot be read")
        raise UserError(f"{file}:{problem.lineno}: this is not XML: {what}") from None
    return root[0]
