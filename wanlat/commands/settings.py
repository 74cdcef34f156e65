"""Settings on the command line: ``--set``, ``--matrix``, ``--option`` and ``--bobd``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

_FORM = "it is written SYSTEM.KEY=VALUE, such as `quorum.api=bob`"


def with_options(
    options: Mapping[str, Mapping[str, Any]], given: Sequence[str], systems: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return a study's options with those of the command line, which take precedence.

    Values are YAML. What an option may be is the system's to say; raises UserError for what is no
    option of a system that is measured.
    """
    from wanlat.systems import registry

    merged = {name: dict(values) for name, values in options.items()}
    seen: set[str] = set()
    for text in given:
        name, equals, value = text.partition("=")
        system, dot, key = name.partition(".")
        if not (system and dot and key and equals):
            raise UserError(f"--option {show(text)}: {_FORM}.")
        registry.get(system)
        if system not in systems:
            raise UserError(
                f"--option {show(text)}: system {system} is not measured, only "
                f"{listing(systems)}. Name it with --systems, or leave the option out."
            )
        if name in seen:
            raise UserError(f"--option: {show(name)} is given twice; give it once.")
        seen.add(name)
        merged.setdefault(system, {})[key] = _value(text, value)
    return merged


def settings(given: Sequence[str] | None) -> dict[str, Any]:
    """Return the parameters of ``--set PARAMETER=VALUE``. Values are YAML. Raises UserError."""
    return {
        name: _value(text, value, "--set")
        for text, name, value in _parameters("--set", given, "`samples=20`")
    }


def axes(given: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the parameters of ``--matrix PARAMETER=V1,V2``. Values are YAML. Raises UserError."""
    found = {}
    for text, name, value in _parameters("--matrix", given, "`nodes=1,2,4`"):
        values = _value(text, f"[{value}]", "--matrix")
        if not values:
            raise UserError(f"--matrix {show(text)}: it has no values.")
        found[name] = values
    return found


def _parameters(
    option: str, given: Sequence[str] | None, example: str
) -> Iterator[tuple[str, str, str]]:
    seen: set[str] = set()
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not (equals and name and all(name.split("."))):
            raise UserError(
                f"{option} {show(text)}: it is written PARAMETER=VALUE, such as {example}; inner "
                "parameters with dots, such as `prefill.objects=1000`."
            )
        if name in seen:
            raise UserError(f"{option}: {show(name)} is given twice; give it once.")
        seen.add(name)
        yield text, name, value


def _value(text: str, value: str, option: str = "--option") -> Any:
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UserError(
            f"{option} {show(text)}: the value is not valid YAML: {problem}. Quote it for YAML."
        ) from None


def use_bobd(path: Path, systems: Sequence[str]) -> None:
    """Let system bob be this program, in this process. Raises UserError."""
    from wanlat.systems.binary import setting

    if "bob" not in systems:
        raise UserError(
            f"--bobd {path}: system bob is not measured, only {listing(systems)}. "
            "Name it with --systems, or leave the option out."
        )
    if not path.is_file():
        wrong = "is a directory" if path.is_dir() else "does not exist"
        raise UserError(f"--bobd {path}: the file {wrong}. Give the path of the program `bobd`.")
    if not os.access(path, os.X_OK):
        raise UserError(f"--bobd {path}: it is not executable. Try `chmod +x {path}`.")
    os.environ[setting("bob")] = str(path.absolute())
