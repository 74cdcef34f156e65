"""``wanlat completion``: what a shell completes, and the script that makes it do so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Literal

import typer

VARIABLE = "_WANLAT_COMPLETE"
"""The environment variable by which a shell requests completions."""

Complete = Callable[[str], list[str]]


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="The shell that the script is for"),
    ],
) -> None:
    """Print the script that completes wanlat's words in a shell.

    bash, in ~/.bashrc:  eval "$(wanlat completion bash)"

    zsh, in ~/.zshrc, after compinit:  eval "$(wanlat completion zsh)"

    fish:  wanlat completion fish > ~/.config/fish/completions/wanlat.fish
    """
    from typer._completion_shared import get_completion_script

    typer.echo(get_completion_script(prog_name="wanlat", complete_var=VARIABLE, shell=shell))


def prepare() -> None:
    """Have this process answer a shell that requests completions."""
    from typer._completion_classes import completion_init

    completion_init()


def _one(names: Callable[[], Iterable[str]]) -> Complete:
    """Return what completes a name, of those that the decorated function returns."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _several(complete_one: Complete) -> Complete:
    """Return what completes the last of several names, separated by commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [f"{before}{comma}{name}" for name in complete_one(last) if name not in given]

    return complete


@_one
def studies() -> Iterable[str]:
    """Return the shipped studies."""
    from wanlat.experiments.config.files import shipped

    return shipped()


@_one
def drill() -> Iterable[str]:
    """Return the shipped drills."""
    from wanlat.experiments.drill.files import shipped

    return shipped()


@_one
def topologies() -> Iterable[str]:
    """Return the shipped topologies."""
    from wanlat.topologies.load import shipped

    return shipped()


@_one
def system() -> Iterable[str]:
    """Return the systems."""
    from wanlat.systems.registry import names

    return names()


@_one
def protocol() -> Iterable[str]:
    """Return the protocols that a new definition can begin with."""
    from wanlat.systems.engine.protocols import PROTOCOLS

    return [name for name, protocol in PROTOCOLS.items() if protocol.templates]


drills = _several(drill)
systems = _several(system)
