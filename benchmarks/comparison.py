"""How every benchmark is run: turns in shuffled rounds, claims judged, a table, a page kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

from wanlat.analysis.names import count
from wanlat.emulator.machine import cores, cpu_model
from wanlat.topologies.errors import RunFailed, WanlatError

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
K, T = TypeVar("K"), TypeVar("T")
Row = Mapping[str, Any]


class Claim(NamedTuple):
    """What must hold, what was measured, and whether it does."""

    text: str
    figure: str
    holds: bool

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.text}: {self.figure}: {'pass' if self.holds else 'FAIL'}"


def parser(name: str, about: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the options of every comparison; `rounds` is the default of --rounds."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    made.add_argument("--rounds", type=positive, default=rounds, help="default: %(default)s")
    made.add_argument("--seed", type=int, default=0, help="of the order within a round")
    made.add_argument("--json", action="store_true", help="the document on standard output")
    made.add_argument("--save", action="store_true", help="keep it in results.json")
    return made


def positive(text: str) -> int:
    """Parse a whole number of one or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def run(measure: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> None:
    """End with what `measure` returns; an error of ours is one paragraph and its exit code."""
    try:
        sys.exit(measure(options))
    except WanlatError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


def in_rounds(options: argparse.Namespace, turns: Mapping[K, Callable[[], T]]) -> dict[K, list[T]]:
    """Return what each found in each round.

    In another order each round: what else the machine does hits all alike.
    """
    results: dict[K, list[T]] = {key: [] for key in turns}
    order = random.Random(options.seed)
    for done in range(options.rounds):
        for key in order.sample(list(turns), len(turns)):
            print(f"round {done + 1} of {options.rounds}: {key}", file=sys.stderr)
            results[key].append(turns[key]())
    return results


def spread(values: Iterable[float], digits: int = 4) -> dict[str, float]:
    """Return the median, the least and the most of them."""
    every = list(values)
    figures = {"median": median(every), "min": min(every), "max": max(every)}
    return {name: round(float(value), digits) for name, value in figures.items()}


def table(rows: Iterable[Row], columns: Mapping[str, str]) -> str:
    """Return rows as a Markdown table: titles and what is under them, such as `{both_s[max]:.1f}`.

    A cell of a figure that is None is empty.
    """
    cells = [list(columns), *([_cell(form, row) for form in columns.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(row)} |" for row in padded)


def _cell(form: str, row: Row) -> str:
    try:
        return form.format_map(row)
    except TypeError:  # None has no format
        return ""


def finish(
    options: argparse.Namespace,
    directory: Path,
    *,
    rows: Sequence[Row],
    tables: str,
    claims: Sequence[Claim],
    **more: Any,
) -> int:
    """Print what was found, with --save keep it in `directory` and in its README.md, if it has one;
    return the exit code: 1 where a claim does not hold.
    """
    holds = all(claim.holds for claim in claims)
    report = {
        "format": 3,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": f"{cores()} cores, {cpu_model()}",
        "load_average": round(os.getloadavg()[0], 1),
        "rounds": options.rounds,
        **more,
        "rows": rows,
        "claims": [claim._asdict() for claim in claims],
        "verdict": "pass" if holds else "fail",
    }
    judged = "\n".join(f"- {claim}" for claim in claims)
    print(tables, file=sys.stderr if options.json else sys.stdout)
    print(f"\n{judged}\nload average at the end: {report['load_average']}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    if options.save:
        if (page := directory / "README.md").exists():
            where = f"{report['cpu']}, Linux {report['kernel']}, {report['when'][:10]}"
            ended = f"load average {report['load_average']} at the end"
            rounds = count(options.rounds, "round")
            _save(page, f"{tables}\n\n{where}, {rounds}; {ended}.\n\n{judged}")
        (directory / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return 0 if holds else 1


def _save(page: Path, text: str) -> None:
    """Write the section of a page. Raises RunFailed when it has no marks for one."""
    before, begin, rest = page.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise RunFailed(f"{page} has no {_BEGIN} and {_END} to write between.")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
