"""What every command and group of commands has in common: plain help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


VALUED_LATER = ("--advise",)
"""Options that may stand alone: a value of theirs has a `=`."""


class Command(TyperCommand):
    """A command with help that names each argument by its metavar, without a type."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; an option that stands alone has no value, the empty one."""
        known = {name for parameter in self.params for name in parameter.opts}
        given: list[str] = []
        for place, word in enumerate(args):
            is_value = any("=" in then for then in args[place + 1 : place + 2])
            is_alone = word in known.intersection(VALUED_LATER) and not is_value
            given.append(f"{word}=" if is_alone else word)
        return super().parse_args(ctx, given)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return `[OPTIONS]`, then the arguments: those that may be left out in brackets."""
        pieces = [self.options_metavar or ""]
        for argument in self._arguments(ctx):
            name = str(argument.metavar)
            if argument.nargs == -1 and not name.endswith("..."):
                name += "..."
            pieces.append(name if argument.required else f"[{name}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what the arguments and the options are."""
        arguments = [(argument.metavar, argument.help) for argument in self._arguments(ctx)]
        records = [option.get_help_record(ctx) for option in self._parameters(ctx, "option")]
        options = [record for record in records if record]
        for title, rows in (("Arguments", arguments), ("Options", options)):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _arguments(self, ctx: Any) -> list[Any]:
        return self._parameters(ctx, "argument")

    def _parameters(self, ctx: Any, kind: str) -> list[Any]:
        return [
            parameter for parameter in self.get_params(ctx) if parameter.param_type_name == kind
        ]


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
