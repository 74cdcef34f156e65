"""The command of a user's program: where it is found, and how its placeholders are filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.emulator.interpreter import which
from wanlat.systems.engine.cache import sha256_of
from wanlat.systems.engine.program import Binary
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.wording import did_you_mean, listing, printable, show

if TYPE_CHECKING:
    from wanlat.systems.engine.system import System

# `{name}` stands for something; `{{name}}` for itself in braces. Other braces are left alone.
_PLACEHOLDER = re.compile(r"\{\{(?P<literal>[a-z.]+)\}\}|\{(?P<name>[a-z.]+)\}")
_KNOWN = ("node", "address", "port", "data", "peers", "peer.node", "peer.address")


def binary_for(system: System, options: Any) -> Binary:
    """Return the first word of the command, as a path or found on PATH."""
    if not options.command:
        return system.find()
    given = options.command[0]
    program = which(given)
    if program is None:
        where = "is not a program" if "/" in given else "is not on PATH"
        raise SystemMissing(
            f"The program of system service, `{printable(given)}`, {where}. Name another one, "
            "or make it executable: options: {service: {command: [PROGRAM, ...]}}."
        )
    path = Path(program).absolute()
    return Binary(path, options.version or path.name, sha256_of(path))


def mistake(options: Any) -> str | None:
    """Return what is wrong with the options beyond their types."""
    if not options.command:
        return (
            "System service has no command: name your program in the study: options: "
            "{service: {command: [./program, ...]}}."
        )
    for text in (*options.command, *options.environment.values()):
        for name in {match["name"] for match in _PLACEHOLDER.finditer(text)} - {None, *_KNOWN}:
            return (
                f"System service: {show(text)} has an unknown placeholder "
                f"{{{name}}}{did_you_mean(name, _KNOWN)}; there are "
                f"{listing(f'{{{known}}}' for known in _KNOWN)}. If the braces are meant, "
                f"write {{{{{name}}}}}."
            )
    for proto in options.protos:
        if not proto.is_file():
            return f"System service: there is no file {proto} (option protos)."
    for directory in options.includes:
        if not directory.is_dir():
            return f"System service: there is no directory {directory} (includes)."
    return None


def absolute(paths: Iterable[Path]) -> list[str]:
    """Return paths as seen from where wanlat is run."""
    return [str(path.absolute()) for path in paths]


def command(scene: Mapping[str, Any]) -> list[str]:
    """Return the program and its arguments, those about peers once for each node."""
    words = [scene["program"]]
    for argument in scene["options"].command[1:]:
        about_peers = any(
            "peer." in (match["name"] or "") for match in _PLACEHOLDER.finditer(argument)
        )
        words += [
            _fill(argument, scene, peer) for peer in scene["nodes"][: None if about_peers else 1]
        ]
    return words


def environment(scene: Mapping[str, Any]) -> dict[str, str]:
    """Return what is added to its environment."""
    given: Mapping[str, str] = scene["options"].environment
    return {key: _fill(text, scene, scene["node"]) for key, text in given.items()}


def _fill(text: str, scene: Mapping[str, Any], peer: Any) -> str:
    node, port = scene["node"], scene["options"].port
    values = {
        "node": node.name,
        "address": node.address,
        "port": str(port),
        "data": node.data,
        "peers": ",".join(f"{other.address}:{port}" for other in scene["nodes"]),
        "peer.node": peer.name,
        "peer.address": peer.address,
    }
    return _PLACEHOLDER.sub(
        lambda match: values[match["name"]] if match["name"] else f"{{{match['literal']}}}", text
    )
