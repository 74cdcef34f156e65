"""Which files take part in a measurement of a system besides its program, and what they hold.

A shipped definition is all of its directory. Of a user's own, which may hold anything,
it is what the definition names: hooks, templates, .proto files, `{here}/…`, absolute paths, and
modules beside a Python file that it imports. Then what its options name, what runs the program
(java, python) and the packages of Python that its clients import.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions, packages_distributions, version
from pathlib import Path
from typing import Any

from wanlat.systems.engine.cache import files_below, sha256_of
from wanlat.systems.engine.definition import FILE, SHIPPED, Definition
from wanlat.systems.engine.options import Options
from wanlat.systems.engine.protocols import PROTOCOLS, Protocol
from wanlat.systems.engine.steps import HOOKS
from wanlat.topologies.yaml_model import YamlModel

_HERE = re.compile(r"\{here\}(?:/([^\s'\"{},;:\]*]*))?")
_PATH = re.compile(r"(?<![\w.}/:{])(\.{0,2}/[^\s'\"{}\[\],;:=]+)")
_MODULE = re.compile(r"(?:^|\s)-m[\s,]+['\"]?(\w+)")
_LONGEST_TEXT_BYTES = 64 << 10
_OF_THE_MACHINE = {"sh", "bash", "dash", "env", "unshare"}
"""They start what is measured, and are not it."""


@dataclass(frozen=True)
class Identity:
    """What a manifest has of a system's definition and of all else that is run with it."""

    files: Mapping[str, str]
    """The SHA-256 of each, by its name below the definition's directory, or its path."""
    definition: Mapping[str, str]
    """The text of those that are the definition's."""
    packages: Mapping[str, str]
    """Versions of Python's."""


def identity_of(
    definition: Definition, directory: Path, options: Options, program: Path
) -> Identity:
    """Return what takes part besides the ``program``'s own file."""
    of_definition = _of_definition(definition, directory)
    others = {
        **_of_options(options, program),
        **_interpreters(definition, of_definition.values(), program),
    }
    packages = _packages_of_launcher(program)
    if any(name.startswith("program python") for name in others):
        packages |= _packages(of_definition.values())
    every = {**of_definition, **others, **_modules_of_launcher(program)}
    return Identity(
        files={name: sha256_of(path) for name, path in sorted(every.items())},
        definition={name: text for name, path in of_definition.items() if (text := _text(path))},
        packages=dict(sorted(packages.items())),
    )


def _text(path: Path) -> str | None:
    try:
        whole = path.stat().st_size <= _LONGEST_TEXT_BYTES
        return path.read_text(encoding="utf-8") if whole else None
    except ValueError:  # a program beside it
        return None


# -- its definition --------------------------------------------------------------------------


def _of_definition(definition: Definition, directory: Path) -> dict[str, Path]:
    own = _of_home(definition, directory)
    if definition.extends is None:
        return own
    base = _of_home(definition, SHIPPED / definition.extends)
    return {**own, **{f"{definition.extends}/{name}": path for name, path in base.items()}}


def _of_home(definition: Definition, home: Path) -> dict[str, Path]:
    if home.parent == SHIPPED:
        every = {path.name: path for path in sorted(home.iterdir()) if path.is_file()}
        return {name: path for name, path in every.items() if path.suffix not in (".md", ".toml")}
    front = definition.front
    named = [FILE, HOOKS, *definition.files.values(), *(front.files.values() if front else ())]
    for protocol, section in _sections(definition):
        for value in (getattr(section, key) for key in protocol.file_keys):
            named += value if isinstance(value, list | tuple) else []
    files_named = {home / name for name in named}
    for text in _texts([home / FILE]):
        files_named |= {path for match in _HERE.finditer(text) for path in _named(home, match[1])}
        files_named |= {Path(path) for path in _PATH.findall(text) if path.startswith("/")}
    files = {path for path in files_named if path.is_file()}
    waiting = [path for path in files if path.suffix == ".py"]
    while waiting:
        new = _siblings(waiting.pop()) - files
        files |= new
        waiting += new
    return {_name(path, home): path for path in sorted(files)}


def _sections(definition: Definition) -> Iterator[tuple[Protocol[Any], YamlModel]]:
    """Yield the protocols that a definition has a section of, and that."""
    for protocol in PROTOCOLS.values():
        if (section := definition.section(protocol)) is not None:
            yield protocol, section


def _named(home: Path, below: str | None) -> Iterable[Path]:
    """Return what `{here}/BELOW` names; of the directory itself its modules alone."""
    if not below:
        return home.glob("*.py")
    path = home / below
    return files_below(path).values() if path.is_dir() else [path]


def _name(path: Path, home: Path) -> str:
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    return (path.read_text("utf-8", "replace") for path in paths if path.is_file())


# -- what else is run ------------------------------------------------------------------------


def _of_options(options: Options, program: Path) -> dict[str, Path]:
    paths_by_name: dict[str, Path] = {}
    for name in type(options).model_fields:
        for value in _values(getattr(options, name)):
            paths = [value] if isinstance(value, Path) else map(Path, _PATH.findall(value))
            for path in paths:
                below = files_below(path) if path.is_dir() and isinstance(value, Path) else {}
                paths_by_name |= {f"{path}/{inner}": file for inner, file in below.items()}
                if path.is_file() and path.absolute() != program:
                    paths_by_name[str(path)] = path
    return paths_by_name


def _values(value: Any) -> Iterator[str | Path]:
    if isinstance(value, str | Path):
        yield value
    elif isinstance(value, Mapping):
        yield from _values(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _values(inner)


def _interpreters(definition: Definition, files: Iterable[Path], program: Path) -> dict[str, Path]:
    client = [
        word
        for protocol, section in _sections(definition)
        for word in protocol.command(section)[:1]
    ]
    words = [need.program for need in definition.needs]
    words += [str(word) for word in (*definition.command[:1], *client)]
    words += [_shebang(program)]
    programs = {Path(word).name: shutil.which(word) for word in words if word and "{" not in word}
    if any("{python}" in text for text in _texts(files)):
        programs["python"] = sys.executable
    return {
        f"program {name}": Path(path).resolve()
        for name, path in programs.items()
        if path and name not in _OF_THE_MACHINE and Path(path).resolve() != program.resolve()
    }


def _shebang(program: Path) -> str:
    """Return what runs a script; nothing of a program that is none."""
    with program.open("rb") as file:
        first = file.readline(256)
    words = first.removeprefix(b"#!").decode("utf-8", "replace").split()
    if not first.startswith(b"#!") or not words:
        return ""
    return words[-1] if words[0].endswith("/env") else words[0]


# -- Python ----------------------------------------------------------------------------------


def _imports(file: Path) -> set[str]:
    """Return the names of the modules that a Python file imports, without their packages' parts."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return set()
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"wanlat"}


def _siblings(file: Path) -> set[Path]:
    """Return the modules beside a Python file that it imports: a script finds them first."""
    beside = [file.parent / name for name in _imports(file)]
    modules = {path.with_suffix(".py") for path in beside}
    packages = {file for path in beside if path.is_dir() for file in files_below(path).values()}
    return {path for path in modules | packages if path.is_file()}


_distributions = cache(packages_distributions)


def _packages(files: Iterable[Path]) -> dict[str, str]:
    """Return the packages, of those that are here, that clients import or are run as modules."""
    names = set[str]()
    for file in files:
        if file.suffix == ".py" and file.name != HOOKS:
            names |= _imports(file)
        elif file.name == FILE:
            names |= set(_MODULE.findall(file.read_text("utf-8", "replace")))
    packages = (package for name in names for package in _distributions().get(name, ()))
    return {package: version(package) for package in packages}


def _site_of(program: Path) -> Path | None:
    """Return where a script of a virtual environment finds its packages; None of any other."""
    interpreter = _shebang(program)
    prefix = Path(interpreter).parent.parent
    if not interpreter or not (prefix / "pyvenv.cfg").is_file():
        return None
    return next(prefix.glob("lib/python3*/site-packages"), None)


def _packages_of_launcher(program: Path) -> dict[str, str]:
    site = _site_of(program)
    return {its.name: its.version for its in distributions(path=[str(site)])} if site else {}


def _modules_of_launcher(program: Path) -> dict[str, Path]:
    """Return the modules that a script of a virtual environment starts: it has few lines itself."""
    modules: dict[str, Path] = {}
    if site := _site_of(program):
        for name in _imports(program):
            below = files_below(site / name) if (site / name).is_dir() else {}
            modules |= {f"{name}/{name_below}": path for name_below, path in below.items()}
            if (module := site / f"{name}.py").is_file():
                modules[module.name] = module
    return modules
