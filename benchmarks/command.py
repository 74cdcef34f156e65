"""What the benchmarks' commands have in common: options, progress, a document, a page's section."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wanlat.topologies.errors import RunFailed, WanlatError

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def run(
    name: str, measure: Callable[[argparse.Namespace], int], options: argparse.Namespace
) -> int:
    """Return what `measure` returns; an error of ours is one paragraph and its exit code."""
    try:
        return measure(options)
    except WanlatError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code


def parser(name: str, about: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the options of every comparison; `rounds` is the default of --rounds."""
    made = argparse.ArgumentParser(prog=f"python -m {name}", description=about)
    made.add_argument("--rounds", type=positive, default=rounds, help="default: %(default)s")
    made.add_argument("--seed", type=int, default=0, help="of the order within a round")
    made.add_argument("--json", action="store_true", help="the document on standard output")
    made.add_argument(
        "--save", action="store_true", help="write results.json, and what its page shows of it"
    )
    return made


def positive(text: str) -> int:
    """Parse a whole number of one or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def show_round(done: int, rounds: int) -> None:
    """Say on a terminal that `done` of the rounds are through."""
    if sys.stderr.isatty():
        end = "\n" if done == rounds else ""
        print(f"\rround {done} of {rounds}", end=end, file=sys.stderr)


def show(options: argparse.Namespace, report: Mapping[str, Any], text: str, verdict: str) -> int:
    """Print a report for people, with --json the document too; return the exit code."""
    print(text, file=sys.stderr if options.json else sys.stdout)
    print(f"\n{verdict}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    return 0 if report["verdict"] == "pass" else 1


def save(directory: Path, report: Mapping[str, Any], page: Path, section: str) -> None:
    """Write results.json, and the `section` of the page; RunFailed when it has no marks for one."""
    before, begin, rest = page.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise RunFailed(f"{page} has no {_BEGIN} and {_END} to write between.")
    (directory / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    page.write_text(f"{before}{begin}\n\n{section}\n\n{end}{after}", "utf-8")


def markdown(cells: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table that can be read in a terminal; the first of `cells` is its head."""
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" for row in padded)
