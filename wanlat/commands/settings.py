"""Settings on the command line: ``--set``, ``--matrix``, ``--option`` and ``--bobd``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import listing, show

_INNER = "inner parameters with dots, such as `prefill.objects=1000`"
_FORMS = {
    "--option": "SYSTEM.KEY=VALUE, such as `quorum.api=bob`",
    "--set": f"PARAMETER=VALUE, such as `samples=20`; {_INNER}",
    "--matrix": f"PARAMETER=VALUE, such as `nodes=1,2,4`; {_INNER}",
    "--advise": "TIMEOUT=VALUE, such as `election=500ms,1s,5s`, or alone",
}


def with_options(
    options: Mapping[str, Mapping[str, Any]], given: Sequence[str] | None, systems: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return a study's options with those of ``--option``, which take precedence.

    Values are YAML. Raises UserError for what is no option of a system that is
    measured; what an option may be, the system defines.
    """
    from wanlat.systems import registry

    merged = {name: dict(values) for name, values in options.items()}
    for text, name, value in _pairs("--option", given):
        system, _, key = name.partition(".")
        registry.get(system)
        _check_measured(f"--option {show(text)}", system, systems)
        merged.setdefault(system, {})[key] = value
    return merged


def settings(given: Sequence[str] | None, **options: Any) -> dict[str, Any]:
    """Return the parameters of ``--set PARAMETER=VALUE``, and those with an option of their own.

    Values are YAML. Raises UserError.
    """
    parsed = {name: value for name, value in options.items() if value is not None}
    for _, name, value in _pairs("--set", given):
        if name in parsed:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} is given, and `{name}` is set; do one of them.")
        parsed[name] = value
    return parsed


def axes(given: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the parameters of ``--matrix PARAMETER=V1,V2``. Values are YAML. Raises UserError."""
    parsed = {}
    for text, name, values in _pairs("--matrix", given, "[{}]"):
        if not values:
            raise UserError(f"--matrix {show(text)}: it has no values.")
        parsed[name] = values
    return parsed


def timeouts(given: Sequence[str]) -> dict[str, list[Duration]]:
    """Return the timeouts of ``--advise TIMEOUT=V1,V2``; none of it alone. Raises UserError."""
    parsed = {}
    for text, name, values in _pairs("--advise", list(filter(None, given)), "[{}]"):
        if not values:
            raise UserError(f"--advise {show(text)}: it has no values.")
        parsed[name] = [Duration.parse(value) for value in values]
    return parsed


def _pairs(
    option: str, given: Sequence[str] | None, form: str = "{}"
) -> Iterator[tuple[str, str, Any]]:
    """Yield of each NAME=VALUE the whole text, the name, and the value in that form, as YAML."""
    from wanlat.topologies.yaml_tree import NotYamlError, parse

    seen: set[str] = set()
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        is_whole = all(name.split(".")) and (option != "--option" or "." in name)
        if not (equals and name and is_whole):
            raise UserError(f"{option} {show(text)}: it is written {_FORMS[option]}.")
        if name in seen:
            raise UserError(f"{option}: {show(name)} is given twice; give it once.")
        seen.add(name)
        try:
            document = parse(form.format(value))
        except NotYamlError as error:
            problem = f"{error.text}. Quote the value for YAML."
            raise UserError(f"{option} {show(text)}: {problem}") from None
        if document.findings:
            raise UserError(f"{option} {show(text)}: {document.findings[0].text}.")
        yield text, name, document.raw


def use_bobd(path: Path | None, systems: Sequence[str]) -> None:
    """Let system bob be this program, if one is given, in this process. Raises UserError."""
    if path is None:
        return
    from wanlat.systems.engine.program import setting

    _check_measured(f"--bobd {path}", "bob", systems)
    if not os.access(path, os.X_OK):
        raise UserError(f"--bobd {path}: it is not executable. Try `chmod +x {path}`.")
    os.environ[setting("bob")] = str(path.absolute())


def _check_measured(option: str, system: str, systems: Sequence[str]) -> None:
    if system not in systems:
        raise UserError(
            f"{option}: system {system} is not measured, only {listing(systems)}. "
            "Name it with --systems, or leave the option out."
        )


def adopted(given: str) -> list[str]:
    """Return the names of the systems of ``--systems``; a path is that of a definition's directory.

    Raises UserError.
    """
    from wanlat.systems import registry

    return [registry.adopt(name.strip()) for name in given.split(",")]


def adopted_one(given: str) -> str:
    """Return the name of the one system of ``--system``, as `adopted` does. Raises UserError."""
    name, *others = adopted(given)
    if others:
        raise UserError(f"--system {show(given)}: one at a time; give {show(name)} alone.")
    return name


def trust(systems: str | None) -> None:
    """Load the user's own systems of a bundle from the directories that ``--systems`` names.

    None are loaded because a bundle names them. Raises UserError for what is no directory.
    """
    from wanlat.systems import registry

    for name in [] if systems is None else adopted(systems):
        if not registry.adopted([name]):
            raise UserError(
                f"--systems {name}: a bundle has its own systems; give directories of definitions "
                "of yours that it was measured with, such as ./mystore/."
            )
