"""Every command line of the pages is one that wanlat has, and is run, or it is said why not.

Of studies and drills it is the dry run, on the reference store: what it says of systems is a
matter of what is installed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.command_line import CHECKOUT, here
from wanlat import cli

PAGES = [
    CHECKOUT / "README.md",
    CHECKOUT / "CONTRIBUTING.md",
    *sorted((CHECKOUT / "docs").rglob("*.md")),
]
SCRIPTS = [CHECKOUT / name for name in ("Makefile", ".ci/run", ".ci/unprivileged")]
_INLINE = re.compile(r"`wanlat ([a-z][^`\\]*)`")
_CALL = re.compile(r"(?:bin/|\$\(BIN\)/|-m )wanlat +([a-z].*)$", re.MULTILINE)
_BLOCK = re.compile(r"```[a-z]*\n(.*?)```", re.DOTALL)
_LINE = re.compile(r"^\s*(?:\$ )?(?:\.venv/bin/)?wanlat[ ]+([a-z-].*)$", re.MULTILINE)
_RUN = {
    *("topology list", "topology show", "topology validate", "topology export"),
    *("study list", "study show", "study validate", "drill list", "drill show", "drill validate"),
    *("completion", "system list", "system schema", "system show", "place"),
}
"""What takes seconds and needs nothing."""
_WHY_NOT = {
    "calibrate": "it builds a lab: tests/wanlat/test_calibrate.py",
    "lab": "it needs a lab: how-to/live-changes.md is run by tests/wanlat/test_lab_running.py",
    "trace": "it builds a lab and a cluster: tests/wanlat/test_trace_command.py",
    "compare": "of the reader's bundles: tests/wanlat/test_compare_command.py",
    "merge": "of the reader's bundles: tests/experiments/test_shards.py",
    "report": "of the reader's bundles: tests/analysis/test_every_report.py",
    "capture": "of the reader's bundles: tests/wanlat/test_capture_command.py",
    "view": "it goes on until it is ended: tests/analysis/test_view.py",
    "doctor": "its exit code is the machine's: tests/wanlat/test_refused_namespaces.py",
    "drill matrix": "of the reader's bundles: tests/wanlat/test_drill_command.py",
    "topology import": "of the reader's files: tests/topologies/test_matrix.py",
    "system check": "of the reader's store: tests/wanlat/test_tutorial_s3.py",
    "system install": "it builds for minutes: tests/systems/test_install.py",
    "system new": "the tutorial's is run: tests/wanlat/test_tutorial_s3.py",
}
_PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\b[A-Z]\b|\.\.\.|…|\|")


def lines() -> Iterator[tuple[str, str]]:
    """Yield the command lines of pages and scripts, with the file that each is from."""
    for page in PAGES:
        text = page.read_text("utf-8")
        found = [line for block in _BLOCK.findall(text) for line in _LINE.findall(joined(block))]
        found += _INLINE.findall(_BLOCK.sub("", text))
        yield from ((str(page.relative_to(CHECKOUT)), line) for line in found)
    for script in SCRIPTS:
        for line in _CALL.findall(joined(script.read_text("utf-8"))):
            yield str(script.relative_to(CHECKOUT)), line


def joined(text: str) -> str:
    """Return lines that go on in the next as one."""
    return text.replace("\\\n", " ")


def ways(line: str) -> list[list[str]]:
    """The words of a command line, without what is said of it beside; of `a | b NAME` each way."""
    said = re.split(r"\s{2,}|\s#\s|\s>{1,2}\s|\s2>|\s&&|\s\|\s(?=jq|head|less)", line)[0]
    whole = re.sub(r"(?<!=)\[([^\]]*)\]", r"\1", said)  # what may be left out; not a list
    first, *others = [way.split() for way in whole.split(" | ")]
    words = shlex.split(said) if not others and whole == said else first
    group = words[:1] if others else []
    return [words, *([*group, *way] for way in others)]


DOCUMENTED = [(page, line, words) for page, line in lines() for words in ways(line)]


def unknown_options(words: list[str]) -> list[str]:
    """The options that a command line has and its command has not. Raises for no command."""
    command: Any = typer.main.get_command(cli.app)
    context = command.make_context("wanlat", ["run"])
    rest = words
    while rest and getattr(command, "commands", None):
        _, command, rest = command.resolve_command(context, rest)
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    given = [word.partition("=")[0] for word in rest]
    if "--" in given:  # what follows is another program's
        given = given[: given.index("--")]
    used = [word for word in given if re.fullmatch(r"--?[a-zA-Z][\w-]*", word)]
    return [word for word in used if word not in {*options, "-h", "--help"}]


def test_each_is_a_command_with_these_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "load", cache(cli.load))
    assert len(DOCUMENTED) > 100
    wrong = [
        (page, line, bad) for page, line, words in DOCUMENTED if (bad := unknown_options(words))
    ]
    assert wrong == []


def needs_the_reader(words: list[str]) -> bool:
    """Whether a line has placeholders, or names files, directories or bundles of a reader's."""
    text = " ".join(words)
    theirs = ("--resume", "$", "./", "ci/", "docs/results/mixed-load")
    made_up = any(word.endswith((".yaml", ".csv")) for word in words)
    return bool(_PLACEHOLDER.search(text)) or made_up or any(each in text for each in theirs)


def dry(words: list[str]) -> tuple[str, ...]:
    """Return the dry run of a study or drill, on the reference store."""
    kept, rest = [], iter(words)
    for word in rest:
        # An option, too, is one that another system has, and so may requests be.
        if word == "--set" and "endpoints=" in (then := next(rest)):
            continue
        if word == "--set":
            kept += [word, then]
        elif word in ("--systems", "--engine", "--scheduler", "--out", "-o", "--option"):
            next(rest)
        elif kept[-1:] == ["--advise"] and "=" in word:
            continue  # a timeout that another system has
        elif word != "--dry-run":
            kept.append(word)
    return (*kept, "--systems", "quorum", "--dry-run")


DRY = sorted(
    {
        dry(words)
        for _, _, words in DOCUMENTED
        if ((words[:1] == ["run"] and len(words) > 1) or words[:2] == ["drill", "run"])
        and not needs_the_reader(words)
    }
)
assert len(DRY) > 20


def test_of_all_others_it_is_said_why_they_are_not_run() -> None:
    silent = {
        " ".join(words)
        for _, _, words in DOCUMENTED
        if words[0] not in {*_RUN, *_WHY_NOT, "run"}
        and " ".join(words[:2]) not in {*_RUN, *_WHY_NOT, "drill run"}
    }
    assert silent == set()
    for why in _WHY_NOT.values():
        if place := re.search(r"tests/\S+", why):
            assert (CHECKOUT / place[0]).exists(), why


RUNNABLE = sorted(
    {
        tuple(words)
        for _, _, words in DOCUMENTED
        if (" ".join(words[:2]) in _RUN or words[0] in _RUN or "-h" in words)
        and not _PLACEHOLDER.search(" ".join(words))
        and not any(word.endswith((".yaml", ".csv")) for word in words)  # which the page makes up
        and "--confirm" not in words  # tests/experiments/placement/test_confirmed.py measures
    }
)
assert len(RUNNABLE) > 5


@pytest.mark.parametrize("words", [*DRY, *RUNNABLE], ids=" ".join)
def test_what_needs_nothing_runs_and_what_takes_minutes_could_begin(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here(*words)
    assert done.returncode == 0, done.stderr
