"""No arrow up, and no circle: a room imports rooms above it in the design's table alone, and no
module is imported, by way of others, by what it imports. In Python and in each Rust crate.

Imports inside functions and under TYPE_CHECKING count: they only hide a circle.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT

ROOMS = (
    "topologies",
    "bundle",
    "emulator",
    "systems",
    "clients",
    "probes",
    "experiments",
    "analysis",
    "wanlat",
)
"""From the top to the bottom: data goes down, and imports go up."""
BUNDLE_ALONE = ("analysis", "bundle")
CRATES = sorted(path.parent for path in CHECKOUT.glob("[!.]*/*/Cargo.toml"))

Graph = Mapping[str, set[str]]

# What is no code in Rust: raw strings, strings, characters that are quotes or braces, comments.
_NOT_CODE = r'\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'\\?["{}]\'|//[^\n]*'


# -- Python ----------------------------------------------------------------------------------


def test_a_room_imports_rooms_above_it_alone() -> None:
    graph = python_graph(CHECKOUT)
    assert len(graph) > 250
    assert upward(graph) == []


def test_no_python_module_is_imported_by_what_it_imports() -> None:
    assert circle_of(python_graph(CHECKOUT)) is None


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("topologies/a.py", "from wanlat.emulator import b"),
        ("emulator/a.py", "import wanlat"),
        ("systems/redis/client.py", "def f():\n    from wanlat.probes.b import c"),
        ("analysis/a.py", "from wanlat.emulator.b import c"),
    ],
)
def test_an_arrow_up_is_seen(tmp_path: Path, name: str, line: str) -> None:
    files = {name: line, "emulator/b.py": "", "probes/b.py": "", "wanlat/__init__.py": ""}
    assert len(upward(python_graph(written(tmp_path, files)))) == 1


def test_a_circle_is_seen_through_functions_and_relative_imports(tmp_path: Path) -> None:
    files = {
        "emulator/__init__.py": "",
        "emulator/a.py": "def f():\n    from wanlat.emulator import b",
        "emulator/b.py": "if TYPE_CHECKING:\n    from . import a",
    }
    assert circle_of(python_graph(written(tmp_path, files))) is not None


def python_graph(root: Path) -> Graph:
    """What each module of the rooms imports of them, by names without `wanlat.` before rooms."""
    paths = [path for room in ROOMS for path in (root / room).rglob("*.py")]
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
        # `wanlat/emulator` and its like are links to the rooms beside it.
        if not any(parent.is_symlink() for parent in path.parents if parent != root)
    }
    graph = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        wanted = imports(ast.parse(path.read_text("utf-8")), package)
        graph[name] = {module for each in wanted if (module := known(each, modules))} - {name}
    return graph


def imports(tree: ast.AST, package: str) -> Iterator[tuple[str, ...]]:
    """Names that may be modules, of each import: the most exact first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else ()), *filter(None, [node.module])])
            yield from ((f"{base}.{alias.name}", base) for alias in node.names)


def known(names: Iterable[str], modules: Mapping[str, Path]) -> str | None:
    for name in names:
        for module in (name.removeprefix("wanlat."), name):
            if module in modules:
                return module
    return None


def upward(graph: Graph) -> list[str]:
    """The imports that go the wrong way."""
    room = {name: name.partition(".")[0] for name in graph}
    return [
        f"{name} -> {other}"
        for name, others in sorted(graph.items())
        for other in sorted(others)
        if ROOMS.index(room[other]) > ROOMS.index(room[name])
        or (room[name] == "analysis" and room[other] not in BUNDLE_ALONE)
    ]


def circle_of(graph: Graph) -> list[str] | None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


# -- Rust ------------------------------------------------------------------------------------


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_rust_module_uses_what_uses_it(crate: Path) -> None:
    assert circle_of(rust_graph(crate / "src")) is None


@pytest.mark.parametrize(
    "files",
    [
        {"a.rs": "use crate::b::B;", "b.rs": "use crate::{c, a::{A, other}};"},
        {"a.rs": "use super::b;", "b.rs": "fn f() { crate::a::f() }"},
        {"a/mod.rs": "mod b;\npub use b::B;", "a/b.rs": "use super::A;"},
        {"a/mod.rs": "mod b;\nfn f() { b::f() }", "a/b.rs": "use super::A;"},
    ],
)
def test_a_circle_in_rust_is_seen(tmp_path: Path, files: dict[str, str]) -> None:
    written(tmp_path, {"lib.rs": "mod a; mod b;", **files})
    assert circle_of(rust_graph(tmp_path)) is not None


def test_unit_tests_and_comments_are_no_use_of_a_module(tmp_path: Path) -> None:
    files = {
        "a.rs": "use crate::b;",
        "b.rs": "// crate::a\n#[cfg(test)]\nmod tests { use crate::a::A; use super::*; }",
        "c.rs": "mod inner { fn f() { super::f() } }",
    }
    assert circle_of(rust_graph(written(tmp_path, files))) is None


def rust_graph(source: Path) -> Graph:
    """What each module of a crate uses of the others; `lib.rs` and `main.rs` are its root."""
    texts: dict[str, str] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        parts = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        texts["::".join(parts)] = texts.get("::".join(parts), "") + of_production(path.read_text())
    graph = {}
    for name, text in texts.items():
        children = {each.rpartition("::")[2] for each in texts if each and parent(each) == name}
        used = {module_of(path, name, texts) for path in paths(text, children)}
        graph[name] = used - {name}
    return graph


def of_production(text: str) -> str:
    """A file without comments and unit tests; inside of its other inline modules, `super` is it."""
    text = re.sub(_NOT_CODE, "", text, flags=re.S)
    while match := re.search(r"(#\[cfg\(test\)\]\s*)?\b(?:pub\s+)?mod\s+\w+\s*\{", text):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        inner = "" if match[1] else text[match.end() : end - 1].replace("super::", "self::")
        text = text[: match.start()] + inner + text[end:]
    return text


def paths(text: str, children: set[str]) -> Iterator[str]:
    """The paths of `use` and of expressions that may lead to modules of the crate."""
    for tree in re.findall(r"\buse\s+(\w[^;]*);", text):
        yield from (of_child(path, children) for path in flat(re.sub(r"\s+", "", tree)))
    for path in re.findall(r"(?<![\w:])\w+(?:::\w+)+", text):
        yield of_child(path, children)


def of_child(path: str, children: set[str]) -> str:
    return f"self::{path}" if path.partition("::")[0] in children else path


def flat(tree: str) -> Iterator[str]:
    """The single paths of `a::{b, c::{d, e}}`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield tree
        return
    depth, part = 0, ""
    for sign in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if sign != "," or depth:
            part += sign
            continue
        if part:
            yield from flat(head + part)
        part = ""


def module_of(path: str, user: str, modules: Iterable[str]) -> str:
    """The module that a path leads to or into; the user itself where it leaves the crate."""
    first, *rest = path.split("::")
    if first not in ("crate", "super", "self"):
        return user
    found = "" if first == "crate" else parent(user) if first == "super" else user
    while rest and rest[0] == "super":
        found, rest = parent(found), rest[1:]
    for name in rest:
        deeper = f"{found}::{name}".removeprefix("::")
        if deeper not in modules:
            break
        found = deeper
    return found


def parent(module: str) -> str:
    return module.rpartition("::")[0]


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
