"""The man page and the completion scripts, where a package installs them: tools/share.py DIRECTORY.

All of it is made from the command line itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer._completion_shared import get_completion_script

from wanlat.app import HELP
from wanlat.cli import COMMANDS, app, load
from wanlat.commands.completion import VARIABLE
from wanlat.topologies.version import VERSION

SCRIPTS = {
    "bash": "bash-completion/completions/wanlat",
    "zsh": "zsh/site-functions/_wanlat",
    "fish": "fish/vendor_completions.d/wanlat.fish",
}
# zsh runs the file as the function _wanlat when wanlat's words are completed for the first time.
FIRST_TIME = '\n[[ $funcstack[1] == _wanlat ]] && _wanlat_completion "$@"\n'
STATUS = {
    0: "It is done, and what was asked holds.",
    1: "It is done, and something does not hold: a claim, a comparison, a calibration.",
    2: "What was asked for is wrong, or a bundle is damaged.",
    3: "The machine cannot do it; the message says what helps.",
}
VARIABLES = {
    "WANLAT_CACHE": "Directory of installed stores (default: $XDG_CACHE_HOME/wanlat, or "
    "~/.cache/wanlat).",
    "WANLAT_LABS": "Directory below which labs on disk have one of their own (default: "
    "$XDG_CACHE_HOME/wanlat, or ~/.cache/wanlat).",
    "WANLAT_NAME_BINARY": "Program of the system NAME, in capitals, such as WANLAT_GARAGE_BINARY.",
}


def man_page() -> str:
    """Return wanlat(1)."""
    summary, *_ = str(app.info.help).splitlines()
    parts = [f'.TH WANLAT 1 "" "wanlat {VERSION}"', ".SH NAME", rf"wanlat \- {roff(summary)}"]
    parts += [".SH SYNOPSIS", ".B wanlat", r"COMMAND [OPTIONS] ARGUMENTS...", ".SH COMMANDS"]
    for name in COMMANDS:
        parts += command(f"wanlat {name}", load(name))
    parts += [".SH EXIT STATUS", *listed(STATUS.items())]
    parts += [".SH ENVIRONMENT", *listed(VARIABLES.items())]
    return "\n".join(parts) + "\n"


def command(name: str, one: Any, above: Any = None) -> Iterator[str]:
    """Yield the section of a command, or those of a group's commands."""
    context = typer.Context(one, parent=above, info_name=name, **HELP)
    if hasattr(one, "commands"):
        for inner, subcommand in one.commands.items():
            yield from command(f"{name} {inner}", subcommand, context)
        return
    yield f'.SS "{roff(" ".join([name, *one.collect_usage_pieces(context)]))}"'
    for paragraph in str(one.help or "").split("\n\n"):
        yield from (".PP", roff(" ".join(paragraph.split())))
    parameters = one.get_params(context)
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    yield from listed((argument.metavar, argument.help) for argument in arguments)
    options = [option for option in parameters if option.param_type_name == "option"]
    yield from listed(option.get_help_record(context) for option in options)


def listed(rows: Any) -> Iterator[str]:
    """Yield terms with what they mean."""
    for term, meaning in filter(None, rows):
        yield from (".TP", rf"\fB{roff(str(term))}\fR", roff(str(meaning or "")))


def roff(text: str) -> str:
    """Return text in which nothing is a request."""
    ascii_ = "".join(char if char.isascii() else f"\0{ord(char):04X}]" for char in text)
    plain = ascii_.replace("\\", r"\e").replace("-", r"\-").replace("\0", r"\[u")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def main(directory: Path) -> None:
    """Write all files."""
    made = {"man/man1/wanlat.1": man_page()}
    for shell, path in SCRIPTS.items():
        script = get_completion_script(prog_name="wanlat", complete_var=VARIABLE, shell=shell)
        made[path] = f"{script.lstrip()}{FIRST_TIME if shell == 'zsh' else ''}\n"
    for name, text in made.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
