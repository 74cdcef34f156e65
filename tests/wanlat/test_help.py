"""Help: every option says what it takes and what it does, in one way, for every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tests.command_line import here
from wanlat import cli

SHORT = {"--help": "-h", "--out": "-o", "--quiet": "-q", "--verbose": "-v", "--version": "-V"}
WORDS = {  # what the field does not say, or says otherwise
    *("tolerate", "anyway", "asked", "ask", "told", "mend", "visit", "quiet user", "look"),
    *("rest", "least", "hold against", "go on", "goes on", "begun", "stands", "held", "kept"),
}


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command that can be run, with its words."""
    root = typer.main.get_command(cli.app)
    yield "", root
    for name in cli.COMMANDS:
        command = cli.load(name)
        yield name, command
        for inner, each in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", each


ALL = dict(commands())


def page(words: str, *more: str) -> str:
    done = here(*words.split(), *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_list_has_one_line_a_command() -> None:
    listed = page("", "-h").partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(cli.COMMANDS)
    assert all(len(line) < 80 and line.endswith(".") for line in listed)
    assert not any(line.endswith("...") for line in listed), "nothing is cut"


@pytest.mark.parametrize("words", ALL)
def test_every_page_reads_the_same_way(words: str) -> None:
    text = page(words, "-h")
    assert not re.search(r"<\w+(\s\w+)*>|\bTEXT\b|\bINTEGER\b|\bBOOLEAN\b", text), "a bare type"
    assert text.isascii() or set(re.findall(r"[^\x00-\x7f]", text)) <= set("×→…–±µ"), "an emoji"
    lines = " ".join(text.split()).lower()
    found = {word for word in WORDS if re.search(rf"\b{word}\b", lines)}
    assert not found
    for parameter in ALL[words].params:
        assert parameter.help, f"{parameter.name} is not explained"
        if parameter.param_type_name == "argument":
            assert parameter.metavar
            continue
        assert not parameter.help.endswith("."), parameter.help
        assert parameter.is_flag or parameter.metavar, f"{parameter.name} has no metavar"
        for long, short in SHORT.items():
            assert (long in parameter.opts) == (short in parameter.opts), parameter.opts
