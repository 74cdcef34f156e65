"""``wanlat completion``: what a shell completes, and the script that has it ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import typer

VARIABLE = "_WANLAT_COMPLETE"
"""The environment variable by which a shell asks for completions."""


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
    """Have this process answer a shell that asks for completions."""
    from typer._completion_classes import completion_init

    completion_init()


def names(find: Callable[[], Sequence[str]]) -> Callable[[str], list[str]]:
    """Return what completes a name: of those that ``find`` returns when it is called."""
    return lambda incomplete: [name for name in find() if name.startswith(incomplete)]


def lists(find: Callable[[], Sequence[str]]) -> Callable[[str], list[str]]:
    """Return what completes the last of several names, separated by commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        known = [name for name in find() if name.startswith(last) and name not in given]
        return [f"{before}{comma}{name}" for name in known]

    return complete


def studies() -> Sequence[str]:
    """Return the names of the shipped studies."""
    from wanlat.experiments.config.files import shipped

    return shipped()


def drills() -> Sequence[str]:
    """Return the names of the shipped drills."""
    from wanlat.experiments.drill.files import shipped

    return shipped()


def topologies() -> Sequence[str]:
    """Return the names of the shipped topologies."""
    from wanlat.topologies.load import shipped

    return shipped()


def systems() -> Sequence[str]:
    """Return the names of the systems."""
    from wanlat.systems import registry

    return registry.names()
