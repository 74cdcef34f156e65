"""docs/tutorial/own-store.md, word for word: its files are written, its commands run, in its order.

A file's block follows a line that ends with its path. In a console's block a line that begins with
`$ ` is a command, and the others are what it prints: their words must come, in this order, whatever
the figures are. Slopes of round trips must be as written, and so must exit codes. Each part has a
file of tests, so that they run side by side.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command_line import write_program
from tests.needs import lab_of
from wanlat.emulator.binaries import binary

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "tutorial" / "own-store.md"
_BLOCK = re.compile(r"(?:`([\w./-]+)`:\n\n)?```(\w+)([^\n]*)\n(.*?)```", re.DOTALL)
_SLOPE = re.compile(r"^\S.*?  +(\w+) +(\d+\.\d\d) \[")
"""A row of a table of round trips: the endpoint and its slope."""
_HEAD = re.compile(r"^[^…\n].*\n(?:^[^…\n].*\n)?(?=^─+\s*$)", re.MULTILINE)
"""The one or two lines above the rule of a table."""
_OFF = 0.3
"""Round trips: less than a message. Of eight in a row a busy machine adds a tenth."""
_VARIES = {"one", "unexplained", "or"}
"""Words of which a table may have more or fewer: modes, and requests that nothing explains."""


class Step(NamedTuple):
    """A file to write, or a command with what it prints and its exit code."""

    file: str | None
    text: str
    prints: str
    code: int


def parts() -> dict[str, list[Step]]:
    """The steps of each part of the page, by its heading."""
    _, *sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    found = {each.partition("\n")[0]: list(_steps(each)) for each in sections}
    return {heading: steps for heading, steps in found.items() if steps}


def _steps(section: str) -> Iterator[Step]:
    for file, language, beside, text in _BLOCK.findall(section):
        if language != "console":
            assert file, f"a block that is no file's:\n{text}"
            yield Step(file, text, "", 0)
            continue
        code = int(beside.partition("exit=")[2] or 0)
        for one in text.split("$ ")[1:]:
            command, _, prints = one.partition("\n")
            yield Step(None, command, prints, code)


def words(line: str) -> str:
    """What of a printed line does not depend on the day: its words.

    Whether twenty requests show a whole number of round trips depends on it.
    """
    line = line.partition(" × RTT")[0]
    return " ".join(each for each in re.findall(r"[^\W\d]+", line) if each not in _VARIES)


def missing(prints: str, printed: str) -> list[str]:
    """The lines that were not printed, in their order, of those that the page shows.

    Over how many lines the head of a table goes depends on the width of what is below.
    """
    rest = iter(words(line) for line in printed.splitlines())
    shown = (line for line in _HEAD.sub("", prints).splitlines() if words(line))
    heads = [{*words(head).split()} for head in _HEAD.findall(prints)]
    there = [{*words(head).split()} for head in _HEAD.findall(printed)]
    lacking = [" ".join(sorted(head)) for head in heads if not any(head <= one for one in there)]
    return [*lacking, *(line for line in shown if words(line) not in rest)]


def slopes(prints: str) -> dict[str, float]:
    """The round trips that the page shows, by endpoint."""
    rows = (_SLOPE.match(line) for line in prints.splitlines())
    return {row[1]: float(row[2]) for row in rows if row}


def follow(part: str, tmp_path: Path) -> None:
    """Carry out a part of the page, and compare."""
    with lab_of("one-site"):
        pass  # where there can be none, this skips
    release = tmp_path / "target" / "release"
    release.mkdir(parents=True)
    release.joinpath("quorum").symlink_to(binary("quorum"))
    (tmp_path / "proto").symlink_to(CHECKOUT / "proto")
    programs = tmp_path / "bin"
    write_program(programs / "wanlat", f'exec {sys.executable} -m wanlat "$@"')
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "110"}
    environment["PYTHONPATH"] = str(CHECKOUT)
    for step in parts()[part]:
        if step.file is not None:
            (tmp_path / step.file).write_text(step.text, "utf-8")
            continue
        done = subprocess.run(
            ["bash", "-c", step.text],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}"
        assert missing(step.prints, done.stdout) == [], f"$ {step.text}\n{done.stdout}"
        if expected := slopes(step.prints):
            bundle = step.text.partition(" -o ")[2].split()[0]
            summary = json.loads((tmp_path / bundle / "summary.json").read_text("utf-8"))
            found = {each["endpoint"]: each["round_trips"] for each in summary["round_trips"]}
            assert {name: found[name] for name in expected} == pytest.approx(expected, abs=_OFF)
