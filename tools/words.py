"""The words of `tools/words.txt`, which no identifier and no docstring of ours has.

python -m tools.words: prints every place and exits 1 where there is one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("words.txt")
ROOMS = (
    *("wanlat", "topologies", "bundle", "emulator", "systems", "probes", "experiments"),
    *("analysis", "tools", "benchmarks"),
)


class Listed(NamedTuple):
    """The lists of words.txt."""

    anywhere: frozenset[str]
    """Words that are in no name and no docstring."""
    names: frozenset[str]
    """What is no name by itself."""
    keys: frozenset[str]
    """Keys of files, which fields are called by all the same."""


def read_list(path: Path = LIST) -> Listed:
    """Read lines `WORD`, `name NAME` and `key NAME`; `#` begins a comment. Raises OSError."""
    lines = [line.partition("#")[0].split() for line in path.read_text().splitlines()]
    return Listed(
        frozenset(line[0] for line in lines if len(line) == 1),
        frozenset(line[1] for line in lines if line[:1] == ["name"]),
        frozenset(line[1] for line in lines if line[:1] == ["key"]),
    )


def fields(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the fields that classes declare or code assigns to, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                for statement in body:
                    match statement:
                        case ast.AnnAssign(target=ast.Name(id=name)):
                            yield statement.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every name that the source introduces, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every docstring, of attributes too, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def words_of(name: str) -> list[str]:
    """Return the lower-case words of a name or a text."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def offences(path: Path) -> Iterator[str]:
    """Yield `PATH:LINE: …` for every listed word of a Python file. Raises SyntaxError."""
    anywhere, names, keys = read_list()
    tree = ast.parse(path.read_text())
    exempt = {(line, name) for line, name in fields(tree) if name in keys}
    for line, name in identifiers(tree):
        if (line, name) in exempt:
            continue
        if name in names or not anywhere.isdisjoint(words_of(name)):
            yield f"{path}:{line}: name {name}"
    for line, text in docstrings(tree):
        for word in sorted(anywhere.intersection(words_of(text))):
            yield f"{path}:{line}: docstring has {word!r}"


def main() -> int:
    """Check every Python file of the rooms that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)],
        check=True,
        capture_output=True,
        text=True,
    )
    places = [place for path in listed.stdout.split() for place in offences(Path(path))]
    print(*places, sep="\n", end="\n" if places else "")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
