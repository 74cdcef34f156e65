"""YAML text as plain values, with the line that each of them stands on.

Built on PyYAML's node graph, because its constructor forgets the lines, lets the later of two
equal keys win, and follows aliases without end. Scalars are read as in YAML 1.2: `no`, `1:30`,
`010` and `2026-01-31` are text.
"""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import Reader

from wanlat.topologies.findings import MAX_FINDINGS, Finding, Path
from wanlat.topologies.wording import printable, show

# Deeper or larger is no document of ours: an alias that multiplies, or not meant for us.
MAX_DEPTH = 50
MAX_VALUES = 500_000

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
# Plain scalars that are no text: the pattern, by what they begin with, and what is made of them.
_SCALARS: dict[str, tuple[str, str, Any]] = {
    f"{_TAG}null": (r"(?:~|null|)", "~n", lambda _: None),
    f"{_TAG}bool": (r"(?:true|false)", "tf", lambda text: text == "true"),
    f"{_TAG}int": (r"[-+]?(?:0|[1-9][0-9]{0,299})", "-+0123456789", int),
    f"{_TAG}float": (
        # An exponent alone has a sign, as JSON writes it: 1e3 may be a host's name.
        r"[-+]?(?:[0-9]{1,300}\.[0-9]{0,300}|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,3})?"
        r"|-?[0-9]{1,300}[eE][-+][0-9]{1,3}",
        "-+.0123456789",
        float,
    ),
    _MERGE: (r"<<", "<", str),
}


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """The quickest parser there is, with tags as in YAML 1.2."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, (_pattern, _first, _) in _SCALARS.items():
    _firsts = [*_first, *([""] if _tag.endswith("null") else [])]
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})$"), _firsts)


# Before what cannot be read: YAML ends a mapping at the brace, whatever follows.
_IN_BRACES = re.compile(r"\{[^{}]*\}+[^\s,\]}]$")


@dataclass(slots=True)
class Document:
    """Plain values, the line of each, and what is wrong with them as YAML."""

    raw: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of the value at this path, or of its key, counted from 1.

        What does not exist is where the nearest thing around it is.
        """
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


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
        builder = _Builder(document, text)
        document.raw = builder.value(root, (), _line(root), 0)
    return document


def _compose(text: str) -> Node | None:
    # libyaml reports only the byte, and takes a lone surrogate for a broken one.
    if (control := Reader.NON_PRINTABLE.search(text)) is not None:
        before = text[: control.start()]
        line, column = before.count("\n") + 1, control.start() - before.rfind("\n")
        code = f"U+{ord(control[0]):04X}"
        raise NotYamlError(f"not valid YAML: a control character ({code}); remove it", line, column)
    try:
        _measure(text)
        return yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Without libyaml, PyYAML computes before it checks: the escape "\UFFFFFFFF".
        raise NotYamlError(f"not valid YAML: {printable(str(error))}") from None


def _measure(text: str) -> None:
    """Refuse a text too deep or too large before it is made into nodes, which recurses."""
    depth = values = 0
    for event in yaml.parse(text, _Loader):
        values += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        _check_extent(depth, values // 2, event)  # keys count here


def _check_extent(depth: int, values: int, where: Node | yaml.Event) -> None:
    if depth > MAX_DEPTH:
        raise NotYamlError(f"nested too deeply; at most {MAX_DEPTH} levels", _line(where))
    if values > MAX_VALUES:
        raise NotYamlError(f"more than {MAX_VALUES} values; this is another file", _line(where))


def _syntax(error: yaml.MarkedYAMLError, text: str) -> NotYamlError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    problem = printable(error.problem or "it cannot be read")
    if "another document" in problem:
        return NotYamlError("more than one document; remove the `---` between them", line)
    if error.context and error.context_mark is not None:
        start = error.context_mark.line + 1
        problem += f" ({printable(error.context)} that starts in line {start})"
    if mark is not None and _IN_BRACES.search(text[: mark.index + 1].rpartition("\n")[2]):
        problem += "; what has braces in it and is text stands in quotes"
    return NotYamlError(f"not valid YAML: {problem}", line, column)


class _Builder:
    """Walks the node graph, once for every place that a node is used in."""

    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self._text = text
        self._values = 0

    def value(self, node: Node, path: Path, line: int, depth: int) -> Any:
        """The plain value of a node. `line` is that of its key, if it has one."""
        self._count(node, depth)
        self._document.lines[path] = line
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, SequenceNode):
            self._check_tag(node, "seq", path)
            return [
                self.value(item, (*path, index), _line(item), depth + 1)
                for index, item in enumerate(node.value)
            ]
        self._check_tag(node, "map", path)
        if (placeholder := _placeholder(node, self._text)) is not None:
            self._find(
                path,
                f"{show(placeholder)} without quotes is a mapping to YAML; put a value in its "
                f'place, or if it is text write "{printable(placeholder)}"',
            )
            return placeholder
        return {
            key: self.value(value, (*path, key), line, depth + 1)
            for key, (value, line) in self._entries(node, path, depth).items()
        }

    def _entries(self, node: Node, path: Path, depth: int) -> dict[str, tuple[Node, int]]:
        """Key to value and line: the node's own, then what it merges with `<<`."""
        own: dict[str, tuple[Node, int]] = {}
        merged: dict[str, tuple[Node, int]] = {}
        for key, value in node.value:
            line = _line(key)
            if key.tag == _MERGE:
                for source in value.value if isinstance(value, SequenceNode) else [value]:
                    self._count(source, depth + 1)
                    if isinstance(source, MappingNode):
                        merged = {**self._entries(source, path, depth + 1), **merged}
                    else:
                        self._find(path, "`<<` merges a mapping, or a list of them")
            elif key.tag != f"{_TAG}str":
                name = str(key.value) if isinstance(key, ScalarNode) else "?"
                self._document.lines[*path, name] = line
                self._find((*path, name), f"a key is text; put {show(name)} in quotes")
            elif key.value in own:
                self._find((*path, key.value), f"given twice, again in line {line}; keep one")
            else:
                own[key.value] = (value, line)
        return own | {key: entry for key, entry in merged.items() if key not in own}

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        pattern, _, made = _SCALARS.get(node.tag, ("", "", str))
        if re.fullmatch(pattern, node.value) is not None and node.tag != _MERGE:
            return made(node.value)
        self._check_tag(node, "merge" if node.tag == _MERGE else "str", path)
        return node.value

    def _check_tag(self, node: Node, wanted: str, path: Path) -> None:
        if node.tag != _TAG + wanted:
            tag = show(node.tag.replace(_TAG, "!!"))
            self._find(path, f"the tag {tag} is not used here; remove it")

    def _find(self, path: Path, text: str) -> None:
        if len(self._document.findings) < MAX_FINDINGS:
            self._document.findings.append(Finding(path, text, at_key=True))

    def _count(self, node: Node, depth: int) -> None:
        self._values += 1
        _check_extent(depth, self._values, node)


def _placeholder(node: Node, text: str) -> str | None:
    """What was written as `{name}`, `{{ name }}` or `{name}:8080`; None: it is something else."""
    if not isinstance(node, MappingNode) or len(node.value) != 1:
        return None
    ((key, value),) = node.value
    if not isinstance(value, ScalarNode) or not node.flow_style:
        return None
    if isinstance(key, ScalarNode):
        # After a colon, as in `{name: }`, it is a key that was left empty.
        has_colon = ":" in text[key.end_mark.index : value.start_mark.index]
        return None if has_colon or key.style or value.value else f"{{{key.value}}}"
    inner = _placeholder(key, text)
    return inner and (f"{inner}:{value.value}" if value.value else f"{{{inner}}}")


def _line(where: Node | yaml.Event) -> int:
    return int(where.start_mark.line) + 1 if where.start_mark is not None else 1
