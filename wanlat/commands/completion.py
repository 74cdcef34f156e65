"""``wanlat completion``: what a shell completes, and the script that has it ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated, Literal

import typer

VARIABLE = "_WANLAT_COMPLETE"
"""The environment variable by which a shell asks for completions."""

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
    """Have this process answer a shell that asks for completions."""
    from typer._completion_classes import completion_init

    completion_init()


def _names(module: str, function: str = "shipped") -> Complete:
    """Return what completes a name, of those that a function returns when it is called."""

    def complete(incomplete: str) -> list[str]:
        known: Iterable[str] = getattr(import_module(f"wanlat.{module}"), function)()
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _several(complete_one: Complete) -> Complete:
    """Return what completes the last of several names, separated by commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        return [f"{before}{comma}{name}" for name in complete_one(last) if name not in given]

    return complete


studies = _names("experiments.config.files")
drill = _names("experiments.drill.files")
drills = _several(drill)
topologies = _names("topologies.load")
system = _names("systems.registry", "names")
systems = _several(system)
