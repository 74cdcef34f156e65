"""``python -m benchmarks.start``: how long the command line takes to answer, medians in ms.

Each round runs every command once, so that what else the machine does hits all alike. Elapsed time
is what a user waits, and on a busy machine says more about that machine; processor time does not.
``--beside PROGRAM`` runs another `wanlat`, such as the one of a checkout of an older version, in
turns with this one.

On an idle machine `--help` is to be there within 250 ms, and an error in a study's name within
500 ms. Which modules a start imports is tested in `tests/wanlat/test_start.py`, whatever the
machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import positive, show_round

_COMMANDS = {
    "help": ["--help"],
    "mistyped study": ["run", "endpoint-latensy"],
    "mistyped drill": ["drill", "run", "one-node-kiled"],
    "mistyped topology": ["calibrate", "fife-sites"],
    "help of a command": ["run", "--help"],
}


def main() -> int:
    """Print the medians; return 0."""
    options = _options()
    programs = [Path(sys.executable).with_name("wanlat"), *options.beside]
    cases = [(name, program) for name in _COMMANDS for program in programs]
    samples: dict[tuple[str, Path], list[tuple[float, float]]] = {case: [] for case in cases}
    for done in range(1, options.rounds + 1):
        for name, program in cases:
            samples[name, program].append(_run([str(program), *_COMMANDS[name]]))
        show_round(done, options.rounds)
    report = [_summary(name, program, samples[name, program]) for name, program in cases]
    if options.json:
        print(json.dumps(report, indent=2))
        return 0
    print(f"{'elapsed':>8} {'(min)':>8} {'processor':>10}   ms, of {options.rounds} runs")
    for each in report:
        print(
            f"{each['elapsed_ms']:8.0f} {each['min_ms']:8.0f} {each['processor_ms']:10.0f}"
            f"   {each['command']}: {each['program']}"
        )
    return 0


def _run(argv: Sequence[str]) -> tuple[float, float]:
    """Return the elapsed and the processor time of a process, in ms. 0 and 2 are its answers."""
    before, begun = os.times(), time.monotonic()
    code = subprocess.run(argv, capture_output=True, check=False).returncode
    elapsed, after = time.monotonic() - begun, os.times()
    if code not in (0, 2):
        raise SystemExit(f"{' '.join(argv)} ended with {code}")
    used = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    return elapsed * 1000, used * 1000


def _summary(name: str, program: Path, samples: Sequence[tuple[float, float]]) -> dict[str, Any]:
    elapsed = [each for each, _ in samples]
    return {
        "command": name,
        "program": str(program),
        "n": len(samples),
        "elapsed_ms": statistics.median(elapsed),
        "min_ms": min(elapsed),
        "processor_ms": statistics.median(used for _, used in samples),
    }


def _options() -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--rounds", type=positive, default=20, help="default: %(default)s")
    made.add_argument(
        "--beside",
        type=Path,
        action="append",
        default=[],
        metavar="PROGRAM",
        help="another wanlat to run in turns with this one; may be repeated",
    )
    made.add_argument("--json", action="store_true", help="the document on standard output")
    return made.parse_args()


if __name__ == "__main__":
    sys.exit(main())
