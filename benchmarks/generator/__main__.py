"""``python -m benchmarks.generator``: what the generator of load reaches when the store is nothing.

Server and generator share the machine's cores, or two of them. Rounds alternate, so that whatever
else the machine does hits all cases alike. Ends with 1 when it is less than is promised.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from benchmarks.generator import results
from benchmarks.generator.cases import CASES, Round, measure
from topologies.errors import WanlatError

_HERE = Path(__file__).parent
_CORES = 2


def main() -> int:
    """Return 0 when what is promised holds, 1 when it does not, else what went wrong."""
    options = _options()
    try:
        return _measure(options)
    except WanlatError as error:
        print(f"benchmarks.generator: {error}", file=sys.stderr)
        return error.exit_code


def _measure(options: argparse.Namespace) -> int:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    rounds: dict[str, list[Round]] = {case.name: [] for case in CASES}
    order = random.Random(options.seed)
    watch = results.Watch()
    with tempfile.TemporaryDirectory() as directory:
        for done in range(options.rounds):
            for case in order.sample(CASES, len(CASES)):
                rounds[case.name].append(measure(case, options.seconds, Path(directory)))
            if sys.stderr.isatty():
                end = "\n" if done + 1 == options.rounds else ""
                print(f"\rround {done + 1} of {options.rounds}", end=end, file=sys.stderr)
    report = results.document(CASES, rounds, watch.seen(), options.seconds)
    print(results.table(report), file=sys.stderr if options.json else sys.stdout)
    print(f"\n{results.verdict(report)}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    if options.save:
        (_HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        results.write_section(_HERE / "README.md", report)
    return 0 if report["verdict"] == "pass" else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=5, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a case and round")
    parser.add_argument("--seed", type=int, default=0, help="of the order within a round")
    parser.add_argument("--json", action="store_true", help="the document on standard output")
    parser.add_argument(
        "--save", action="store_true", help="write results.json and the README's table"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    sys.exit(main())
