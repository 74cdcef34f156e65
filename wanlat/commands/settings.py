"""Settings of systems on the command line: ``--option SYSTEM.KEY=VALUE`` and ``--bobd PATH``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from systems import registry
from systems.binary import setting
from topologies.errors import UserError
from topologies.wording import listing, show

_FORM = "it is written SYSTEM.KEY=VALUE, such as `quorum.api=bob`"


def with_options(
    options: Mapping[str, Mapping[str, Any]], given: Sequence[str], systems: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return a study's options with those of the command line, which take precedence.

    Values are YAML. What an option may be is the system's to say; raises UserError for what is no
    option of a system that is measured.
    """
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


def _value(text: str, value: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UserError(
            f"--option {show(text)}: the value is not valid YAML: {problem}. Quote it for YAML."
        ) from None


def use_bobd(path: Path, systems: Sequence[str]) -> None:
    """Let system bob be this program, in this process. Raises UserError."""
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
