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

LIST = Path(__file__).with_name("words.txt")
ROOMS = (
    *("wanlat", "topologies", "bundle", "emulator", "systems", "probes", "experiments"),
    *("analysis", "tools", "benchmarks"),
)


def read_list(path: Path = LIST) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that are nowhere, and those that are no name by themselves.

    A line is `WORD` or `name WORD`; `#` begins a comment. Raises OSError.
    """
    lines = [line.partition("#")[0].split() for line in path.read_text().splitlines()]
    anywhere = frozenset(line[0] for line in lines if len(line) == 1)
    names = frozenset(line[1] for line in lines if len(line) == 2)
    return anywhere, names


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
    anywhere, names = read_list()
    tree = ast.parse(path.read_text())
    for line, name in identifiers(tree):
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
