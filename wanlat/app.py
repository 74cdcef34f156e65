"""What every command and group of commands has in common: plain help, and what it says there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(TyperCommand):
    """A command whose help names each argument by its metavar, without a type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return `[OPTIONS]`, then the arguments: those that may be left out in brackets."""
        pieces = [self.options_metavar or ""]
        for each in _parameters(self, ctx):
            if each.param_type_name == "argument":
                name = each.metavar or each.name.upper()
                more = "..." if each.nargs == -1 and not name.endswith("...") else ""
                pieces.append(f"{name}{more}" if each.required else f"[{name}{more}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the arguments and the options are."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in _parameters(self, ctx):
            if each.param_type_name == "argument":
                rows["Arguments"].append((each.metavar or each.name.upper(), each.help or ""))
            elif (record := each.get_help_record(ctx)) is not None:
                rows["Options"].append(record)
        for title, each_of in rows.items():
            if each_of:
                with formatter.section(title):
                    formatter.write_dl(each_of)


def _parameters(command: TyperCommand, context: Any) -> list[Any]:
    return list(command.get_params(context))


class App(typer.Typer):
    """A group of commands."""

    def __init__(self, summary: str | None = None, **settings: Any) -> None:
        super().__init__(
            help=summary,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings=HELP,
            **settings,
        )

    def command(
        self, name: str | None = None, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add the decorated function as a command."""
        return super().command(name, cls=Command, **settings)
