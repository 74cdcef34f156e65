"""What a definition has as text: expressions, texts with ``{placeholders}``, template files.

One language for all of it, Jinja2's expressions. In a text, ``{expression}`` stands for its value
and ``{nodes:TEXT}`` for TEXT once for every node, joined by commas; a text that is nothing but one
expression has its value, whatever the type. ``{{`` and ``}}`` are braces that are meant.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

from jinja2 import Environment, StrictUndefined, TemplateError, Undefined, UndefinedError, nodes
from jinja2.environment import TemplateExpression
from jinja2.meta import find_undeclared_variables
from pydantic import AfterValidator, StrictStr

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

Scene = Mapping[str, Any]
"""The names that expressions know, and their values."""


def derive(purpose: str, digits: int = 64) -> str:
    """Return up to 64 hex digits that depend on the purpose alone: a lab's secrets.

    They protect nothing, and two runs of one study configure the same cluster.
    """
    return hashlib.sha256(f"wanlat: {purpose}".encode()).hexdigest()[:digits]


def numbers(text: str) -> tuple[int, ...]:
    """Return the first dotted number in a text as a tuple, () when there is none."""
    match = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def search(pattern: str, text: object) -> str | None:
    """Return what the first group of a regular expression matches in a text, None if nothing."""
    match = re.search(pattern, str(text))
    return match[1] if match else None


def spread(nodes: Iterable[Any]) -> list[Any]:
    """Return nodes so that any first few are in as many sites as can be: one of each, then more.

    The first stays the first; within a site the order stays.
    """
    rank, placed = Counter[str](), list[tuple[int, Any]]()
    for node in nodes:
        placed.append((rank[node.site], node))
        rank[node.site] += 1
    return [node for _, node in sorted(placed, key=lambda entry: entry[0])]


def _environment(undefined: type[Undefined]) -> Environment:
    made = Environment(
        undefined=undefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {"derive": derive, "numbers": numbers, "search": search, "spread": spread}
    made.filters["json"] = json.dumps
    return made


_STRICT = _environment(StrictUndefined)
_MISTAKES = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError)


# -- expressions -----------------------------------------------------------------------------


@cache
def _compiled(expression: str) -> TemplateExpression:
    return _STRICT.compile_expression(expression, undefined_to_none=False)


def evaluate(expression: str, scene: Scene) -> Any:
    """Return an expression's value. Raises UserError."""
    try:
        value = _compiled(expression)(**scene)
        if isinstance(value, Undefined):
            str(value)  # raises, naming what is undefined
    except _MISTAKES as error:
        raise UserError(f"The expression {show(expression)} has no value: {error}.") from error
    return value


# -- expressions over an answer --------------------------------------------------------------


class NotYetError(Exception):
    """An answer has not got what an expression needs of it. The message is what it lacks."""


class _Absent(StrictUndefined):
    """What an answer lacks, or has null for.

    So is what lies in it. As a condition it is false; what else is done with it raises.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _: object) -> Any:
        return self

    def __bool__(self) -> bool:  # type: ignore[override]  # where a list is searched
        return False


_EXPLICIT = ("default", "d", "defined", "undefined", "none")
"""Filters and tests by which a definition states what to take where an answer lacks something."""
_REFUSE = object()


def _demanding(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter or test of Jinja's that takes nothing in place of what is absent."""
    place = int(hasattr(function, "jinja_pass_arg"))  # after the environment

    @wraps(function)
    def demanding(*arguments: Any, **named: Any) -> Any:
        if isinstance(arguments[place], _Absent):
            str(arguments[place])  # raises
        return function(*arguments, **named)

    return demanding


def _number(convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the filter `int` or `float`: Jinja's takes 0 for what is no number."""

    def number(value: Any, default: Any = _REFUSE) -> Any:
        try:
            return convert(value)
        except _MISTAKES:
            if default is _REFUSE:
                raise
            return default

    return number


def _whole(value: Any) -> int:
    return int(float(value)) if isinstance(value, str) and "." in value else int(value)


def _of_answers() -> Environment:
    made = _environment(_Absent)
    made.filters |= {"int": _number(_whole), "float": _number(float)}
    every: tuple[dict[str, Any], ...] = (made.filters, made.tests)
    for functions in every:
        for name in functions.keys() - set(_EXPLICIT):
            functions[name] = _demanding(functions[name])
    made.tests["none"] = lambda value: value is None or isinstance(value, _Absent)
    return made


_OF_ANSWERS = _of_answers()


@dataclass(frozen=True)
class _Judged:
    """An expression over an answer: a connective with its operands, or what Jinja evaluates."""

    connective: type[nodes.Expr] | None = None
    operands: tuple[_Judged, ...] = ()
    compiled: TemplateExpression | None = None

    @classmethod
    def parsed(cls, tree: nodes.Expr) -> _Judged:
        match tree:
            case nodes.And(left=left, right=right) | nodes.Or(left=left, right=right):
                return cls(type(tree), (cls.parsed(left), cls.parsed(right)))
            case nodes.Not(node=inner):
                return cls(nodes.Not, (cls.parsed(inner),))
            case nodes.CondExpr(test=test, expr1=then, expr2=nodes.Expr() as other):
                return cls(nodes.CondExpr, (cls.parsed(test), cls.parsed(then), cls.parsed(other)))
        body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), tree, lineno=1)]
        template = _OF_ANSWERS.from_string(nodes.Template(body, lineno=1))
        return cls(compiled=TemplateExpression(template, undefined_to_none=False))

    def value(self, scene: Scene) -> Any:
        """Return its value. Raises NotYetError where that rests on what is absent.

        Connectives are Kleene's: what is absent or true is true, not absent is absent.
        """
        if self.compiled is not None:
            return _known(self.compiled, scene)
        first, *others = self.operands
        if self.connective is nodes.Not:
            return not first.value(scene)
        if self.connective is nodes.CondExpr:
            return others[0 if first.value(scene) else 1].value(scene)
        is_either = self.connective is nodes.Or
        try:
            value = first.value(scene)
        except NotYetError:
            value = others[0].value(scene)
            if bool(value) is not is_either:
                raise
            return value
        return value if bool(value) is is_either else others[0].value(scene)


def _known(compiled: TemplateExpression, scene: Scene) -> Any:
    try:
        value = compiled(**scene)
        if isinstance(value, _Absent):
            str(value)  # raises
        if isinstance(value, Iterator):  # filters work when their values are taken
            value = list(value)
    except UndefinedError as error:
        raise NotYetError(f"{error.message}".replace("dict object", "answer")) from error
    except (AttributeError, *_MISTAKES) as error:
        raise NotYetError(str(error)) from error
    return value


def _without_null(answer: Any) -> Any:
    """Return an answer with what is absent in the place of every null."""
    if isinstance(answer, Mapping):
        return {key: _without_null(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_without_null(value) for value in answer]
    return _Absent("it has null there") if answer is None else answer


@cache
def _judged(expression: str) -> tuple[_Judged, frozenset[str]]:
    tree = _OF_ANSWERS.parse(f"{{{{ {expression} }}}}")
    names = frozenset(find_undeclared_variables(tree)) - _OF_ANSWERS.globals.keys()
    (output,) = tree.body
    assert isinstance(output, nodes.Output)
    (expr,) = output.nodes
    return _Judged.parsed(expr), names


def judge(expression: str, scene: Scene) -> Any:
    """Return the value of an expression over ``scene["answer"]``, which somebody else has written.

    Raises NotYetError where it rests on what the answer lacks, has null for, or has of another type
    than the expression takes; UserError for a name that is none of the scene's.
    """
    judged, names = _judged(expression)
    if unknown := names - scene.keys():
        raise UserError(f"The expression {show(expression)} has no value: no {listing(unknown)}.")
    return judged.value({**scene, "answer": _without_null(scene["answer"])})


# -- texts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """What stands in braces: an expression; with ``joined``, a text for each of those nodes."""

    text: str
    joined: str | None = None


def _braces(depth: int) -> str:
    within = rf"|\{{{_braces(depth - 1)}\}}" if depth else ""
    return rf"""(?:[^{{}}"']|"[^"]*"|'[^']*'{within})*"""


_PART = re.compile(rf"\{{\{{|\}}\}}|\{{(?P<inner>{_braces(3)})\}}|[^{{}}]+|[{{}}]")


_LITERALS = {"{{": "{", "}}": "}"}


@cache
def parts(text: str) -> tuple[str | Slot, ...]:
    """Split a text at its placeholders. Raises ValueError for a brace that is not closed."""
    pieces: list[str | Slot] = []
    for part in _PART.finditer(text):
        if part[0] == "{":
            raise ValueError(
                f"a brace is not closed in {show(text)}; one that is meant is written {{{{"
            )
        inner, literal = part["inner"], part[0]
        pieces.append(_slot(inner) if inner is not None else _LITERALS.get(literal, literal))
    return tuple(pieces)


def _slot(inner: str) -> Slot:
    over, colon, text = inner.partition(":")
    return Slot(text, over) if colon and over in ("nodes", "peers") else Slot(inner)


def fill(value: Any, scene: Scene) -> Any:
    """Return a value with the placeholders of all texts in it filled in. Raises UserError."""
    if isinstance(value, Mapping):
        return {key: fill(inner, scene) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [fill(inner, scene) for inner in value]
    if not isinstance(value, str):
        return value
    pieces = parts(value)
    if len(pieces) == 1 and isinstance(pieces[0], Slot) and pieces[0].joined is None:
        return evaluate(pieces[0].text, scene)
    return "".join(piece if isinstance(piece, str) else _text(piece, scene) for piece in pieces)


def filled(value: str, scene: Scene) -> str:
    """Return a text with its placeholders filled in, as a command line has it."""
    value = fill(value, scene)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(slot: Slot, scene: Scene) -> str:
    if slot.joined is not None:
        texts = (filled(slot.text, {**scene, "node": node}) for node in scene[slot.joined])
        return ",".join(texts)
    return filled(f"{{{slot.text}}}", scene)


def render(template: Path, scene: Scene) -> str:
    """Return a template file with the scene's values. Raises UserError."""
    try:
        return _STRICT.from_string(template.read_text(encoding="utf-8")).render(**scene)
    except TemplateError as error:
        raise UserError(f"{template}: {error}") from error


# -- checked where they are written ----------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """What the expressions of one definition may name: names, and the attributes of some."""

    directory: Path
    names: Mapping[str, Sequence[str] | None]
    """None: whatever it has."""


KNOWN: ContextVar[Known | None] = ContextVar("known", default=None)
"""Of the definition that is being read."""


def _wrong_names(tree: nodes.Template) -> Iterator[str]:
    """Yield what is wrong with the names of an expression."""
    known = KNOWN.get()
    if known is None:
        return
    bound = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    for name in tree.find_all(nodes.Name):
        if name.name not in bound and name.name not in known.names:
            names = sorted(known.names)
            near = did_you_mean(name.name, names)
            yield f"{show(name.name)} is not known here{near}; there are {listing(names)}"
    for access in tree.find_all(nodes.Getattr):
        if not isinstance(access.node, nodes.Name) or access.node.name in bound:
            continue
        having = known.names.get(access.node.name)
        if having is not None and access.attr not in having:
            owner, near = access.node.name, did_you_mean(access.attr, list(having))
            yield f"{show(f'{owner}.{access.attr}')} is not known{near}; {owner} has " + (
                listing(having) or "nothing"
            )


def _check(source: str) -> None:
    try:
        mistakes = list(_wrong_names(_STRICT.parse(source)))
    except TemplateError as error:
        raise ValueError(f"{error.message}") from error
    if mistakes:
        raise ValueError("; ".join(mistakes))


def _check_expression(expression: str) -> str:
    _check(f"{{{{ {expression} }}}}")
    return expression


def _check_text(text: str) -> str:
    for part in parts(text):
        if isinstance(part, Slot) and part.joined is None:
            _check_expression(part.text)
        elif isinstance(part, Slot):
            _check_text(part.text)
    return text


def _check_all(value: Any) -> Any:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _check_all(inner)
    return value


def _check_template(name: str) -> str:
    known = KNOWN.get()
    if known is not None:
        try:
            source = (known.directory / name).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{show(name)} cannot be read: {error.strerror}") from error
        try:
            _check(source)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return name


Expression = Annotated[StrictStr, AfterValidator(_check_expression)]
Text = Annotated[StrictStr, AfterValidator(_check_text)]
Json = Annotated[Any, AfterValidator(_check_all)]
Template = Annotated[StrictStr, AfterValidator(_check_template)]
