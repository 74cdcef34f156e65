"""YAML text as plain values, with the line that each of them stands on.

Built on PyYAML's node graph, because its constructor forgets the lines, lets the later of two
equal keys win, and follows aliases without end. What YAML 1.1 reads in a way that surprises
(`0100` is 64, `1:30` is 90) is a finding here and stays the text that was written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import Reader

from wanlat.topologies.findings import MAX_FINDINGS, Finding, Path
from wanlat.topologies.wording import printable, show

# Deeper or larger is no document of ours: an alias that multiplies, or not meant for us.
MAX_DEPTH = 50
MAX_VALUES = 500_000

# Ten times as fast where PyYAML comes with libyaml, as its wheels do.
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

_ALIAS = re.compile(r"\*[0-9A-Za-z_-]+")
_TAG = "tag:yaml.org,2002:"
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_PLAIN_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,299})")
_PLAIN_FLOAT = re.compile(r"[-+]?([0-9]{1,300}\.[0-9]{0,300}|\.[0-9]{1,300})([eE][-+]?[0-9]{1,3})?")
_TRUE, _FALSE = {"yes", "true", "on"}, {"no", "false", "off"}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value stands: its line, the line of its key, its text if it is a scalar."""

    line: int
    key_line: int | None
    text: str | None


@dataclass(slots=True)
class Document:
    """Plain values, where they stand, and what is wrong with them as YAML."""

    raw: Any = None
    spots: dict[Path, Spot] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def line(self, path: Path, at_key: bool = False) -> int:
        """The line to look at for a mistake at this path: counted from 1.

        A mapping or list that has a key is where its key is. What does not exist is where the
        nearest thing around it is.
        """
        while path not in self.spots and path:
            path = path[:-1]
            at_key = False
        spot = self.spots.get(path)
        if spot is None:
            return 1
        if spot.key_line is not None and (at_key or spot.text is None):
            return spot.key_line
        return spot.line

    def text(self, path: Path) -> str | None:
        """The scalar at this path as it was written, without quotes."""
        spot = self.spots.get(path)
        return spot.text if spot is not None else None


class NotYamlError(Exception):
    """The text is no YAML at all: no values can be had."""

    def __init__(self, text: str, line: int | None = None, column: int | None = None) -> None:
        """Line and column count from 1."""
        super().__init__(text)
        self.text, self.line, self.column = text, line, column


def parse(text: str) -> Document:
    """The document in a YAML text, or NotYamlError. `raw` is None when the text is empty."""
    document = Document()
    root = _compose(text)
    if root is not None:
        if "*" in text:  # without aliases, no node is used twice
            _weigh(root)
        try:
            document.raw = _Builder(document).value(root, (), None, ())
        except _TooMuchError as error:
            raise NotYamlError(str(error), error.line) from None
    return document


def _compose(text: str) -> Node | None:
    # libyaml tells only the byte, and takes a lone surrogate for a broken one.
    control = Reader.NON_PRINTABLE.search(text)
    if control is not None:
        line, column = _place(text, control.start())
        code = f"U+{ord(control[0]):04X}"
        raise NotYamlError(f"not valid YAML: a control character ({code}); remove it", line, column)
    try:
        _measure(text)
        return yaml.compose(text, _LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Without libyaml, PyYAML computes before it checks: the escape "\UFFFFFFFF".
        raise NotYamlError(f"not valid YAML: {printable(str(error))}") from None


def _measure(text: str) -> None:
    """Refuse a text too deep or too large before it is made into nodes, which recurses."""
    depth = values = 0
    for event in yaml.parse(text, _LOADER):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        wrong = None
        if depth > MAX_DEPTH:
            wrong = f"nested too deeply; at most {MAX_DEPTH} levels"
        elif values > 2 * MAX_VALUES:  # keys count here, and not in the document
            wrong = f"more than {MAX_VALUES} values; this is another file"
        if wrong is not None:
            mark = event.start_mark
            raise NotYamlError(wrong, mark.line + 1 if mark is not None else None)


def _weigh(root: Node) -> None:
    """Refuse a document that its aliases make too large, before anything is made of them."""
    weights: dict[int, int] = {}
    waiting = [(root, False)]
    while waiting:  # children first; not by recursion, for aliases may make a long chain
        node, children_weighed = waiting.pop()
        if children_weighed:
            weights[id(node)] = 1 + sum(weights[id(child)] for child in _children(node))
        elif id(node) not in weights:
            weights[id(node)] = 1  # of a node inside itself, which the builder tells
            waiting.append((node, True))
            waiting.extend((child, False) for child in _children(node))
    if weights[id(root)] <= MAX_VALUES:
        return
    node, left = root, MAX_VALUES
    while (children := _children(node)) and left > 0:
        left -= 1
        for child in children:
            node = child
            if weights[id(child)] > left:
                break
            left -= weights[id(child)]
    raise NotYamlError(f"with its aliases this is more than {MAX_VALUES} values", _line(node))


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [value for _, value in node.value]
    return node.value if isinstance(node, SequenceNode) else []


def _place(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")


def _syntax(error: yaml.MarkedYAMLError, text: str) -> NotYamlError:
    if error.problem == "but found another document":
        error.problem, error.context = "more than one document; remove the `---` between them", None
    mark = error.problem_mark or error.context_mark
    here = _rest_of_line(text, mark) if mark is not None else ""
    problem = printable(error.problem or "it cannot be read")
    if problem == "found character that cannot start any token" and here:
        problem = f"no value starts with {show(here[0]) if here[0] != chr(9) else 'a tab'}"
    if error.context and error.context_mark is not None:
        context = printable(error.context)
        problem += f" ({context} that starts in line {error.context_mark.line + 1})"
    elif error.context:
        problem += f" ({printable(error.context)})"
    if here.startswith("\t"):
        problem += "; indent with spaces, not tabs"
    elif here.startswith(("@", "`", "%")):
        problem += "; put it in quotes"
    elif "mapping values are not allowed" in problem:
        problem += "; check the indentation, and put text that holds `: ` in quotes"
    elif "undefined alias" in problem:
        problem += f" {show(name[0])}" if (name := _ALIAS.match(here)) else ""
        problem += "; an alias `*name` needs an anchor `&name` before it"
    if mark is None:
        return NotYamlError(f"not valid YAML: {problem}")
    return NotYamlError(f"not valid YAML: {problem}", mark.line + 1, mark.column + 1)


def _rest_of_line(text: str, mark: yaml.Mark) -> str:
    lines = _LINE_BREAK.split(text, maxsplit=mark.line + 1)
    return lines[mark.line][mark.column :] if mark.line < len(lines) else ""


class _TooMuchError(Exception):
    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.line = _line(node)


class _Builder:
    """Walks the node graph once for every place that a node is used in."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._values = 0

    def value(self, node: Node, path: Path, key_line: int | None, above: tuple[int, ...]) -> Any:
        """The plain value of a node; `above` are the nodes that hold it, by identity."""
        self._count(node, above)
        text = node.value if isinstance(node, ScalarNode) else None
        self._document.spots[path] = Spot(_line(node), key_line, text)
        above = (*above, id(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, SequenceNode):
            if node.tag != f"{_TAG}seq":
                self._foreign_tag(node, path)
            return [
                self.value(item, (*path, index), None, above)
                for index, item in enumerate(node.value)
            ]
        assert isinstance(node, MappingNode)
        if node.tag != f"{_TAG}map":
            self._foreign_tag(node, path)
        return {
            key: self.value(value, (*path, key), line, above)
            for key, (value, line) in self._entries(node, path, above).items()
        }

    def _entries(
        self, node: MappingNode, path: Path, above: tuple[int, ...]
    ) -> dict[str, tuple[Node, int]]:
        """Key to value and key line: the node's own, then what it merges with `<<`."""
        own: dict[str, tuple[Node, int]] = {}
        merged: dict[str, tuple[Node, int]] = {}
        for key_node, value in node.value:
            if key_node.tag == f"{_TAG}merge":
                for source in self._merge_sources(value, path):
                    self._count(source, above)
                    inherited = self._entries(source, path, (*above, id(source)))
                    merged = {**inherited, **merged}
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in own:
                first = own[key][1]
                text = f"key {show(key)} is given twice, first in line {first}; give it once"
                self._find((*path, key), text, key_node, at_key=True)
            else:
                own[key] = (value, _line(key_node))
        return {**merged, **own}

    def _merge_sources(self, value: Node, path: Path) -> Iterator[MappingNode]:
        sources = value.value if isinstance(value, SequenceNode) else [value]
        for source in sources:
            if isinstance(source, MappingNode):
                yield source
            else:
                text = "`<<` merges mappings; write an alias of one, or a list of aliases"
                self._find(path, text, source, at_key=True)

    def _key(self, node: Node, path: Path) -> str | None:
        if not isinstance(node, ScalarNode):
            self._find(path, "a key is a word, not a list or a mapping", node, at_key=True)
            return None
        if node.tag not in (f"{_TAG}str", f"{_TAG}value"):
            written = show(node.value) if node.value else "an empty key"
            self._find(
                path, f"{written} is not text to YAML, and a key is a word", node, at_key=True
            )
            return None
        return str(node.value)

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text: str = node.value
        match node.tag.removeprefix(_TAG):
            case "str" | "value":
                return text
            case "null" if text in ("", "~", "null", "Null", "NULL"):
                return None
            case "bool" if text.lower() in _TRUE | _FALSE:
                return text.lower() in _TRUE
            case "int" if _PLAIN_INT.fullmatch(text):
                return int(text)
            case "float" if _PLAIN_FLOAT.fullmatch(text):
                return float(text)
            case "int" | "float" if not node.style:  # None, or "" from libyaml
                kind = _notation(text)
                self._find(
                    path,
                    f"{show(text)} is {kind} to YAML; write plain decimals, or quotes around text",
                    node,
                )
            case "timestamp":
                self._find(path, f"{show(text)} is a date to YAML; put it in quotes", node)
            case "merge":
                self._find(path, f"{show(text)} stands for a key; put it in quotes", node)
            case _:
                self._foreign_tag(node, path)
        return text

    def _foreign_tag(self, node: Node, path: Path) -> None:
        tag = show(node.tag.replace(_TAG, "!!"))
        self._find(path, f"the tag {tag} is not used here; remove it", node)

    def _find(self, path: Path, text: str, node: Node, at_key: bool = False) -> None:
        if len(self._document.findings) < MAX_FINDINGS:
            self._document.findings.append(Finding(path, text, at_key=at_key, line=_line(node)))

    def _count(self, node: Node, above: tuple[int, ...]) -> None:
        if id(node) in above:
            raise _TooMuchError("an alias stands inside the value that it stands for", node)
        if len(above) >= MAX_DEPTH:
            raise _TooMuchError(f"nested too deeply; at most {MAX_DEPTH} levels", node)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooMuchError(f"more than {MAX_VALUES} values; this is another file", node)


def _notation(text: str) -> str:
    digits = text.lstrip("+-").lower()
    prefixes = {
        ".": "no finite number",
        "0x": "a hexadecimal number",
        "0b": "a binary number",
        "0": "an octal number",
    }
    if not any(char.isdigit() for char in digits) and not digits.startswith("."):
        return "no number"
    if ":" in digits:
        return "a number in base 60"
    if "_" in digits:
        return "a number with `_`"
    if "." in digits[1:]:
        return "a number too long"
    return next(
        (kind for prefix, kind in prefixes.items() if digits.startswith(prefix)),
        "a number too long",
    )


def _line(node: Node) -> int:
    mark = node.start_mark
    return int(mark.line) + 1 if mark is not None else 1
