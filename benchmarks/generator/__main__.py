"""``python -m benchmarks.generator``: what the generator of load reaches when the store is nothing.

Server and generator share the machine's cores, or two of them. Rounds alternate, so that whatever
else the machine does hits all cases alike. Ends with 1 when it is less than is promised.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from benchmarks import command
from benchmarks.generator import results
from benchmarks.generator.cases import CASES, Round, measure

_HERE = Path(__file__).parent
_CORES = 2


def main() -> int:
    """Return 0 when what is promised holds, 1 when it does not, else what went wrong."""
    parser = command.parser("benchmarks.generator", __doc__, rounds=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a case and round")
    return command.run("benchmarks.generator", _measure, parser.parse_args())


def _measure(options: argparse.Namespace) -> int:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    rounds: dict[str, list[Round]] = {case.name: [] for case in CASES}
    order = random.Random(options.seed)
    watch = results.Watch()
    with tempfile.TemporaryDirectory() as directory:
        for done in range(options.rounds):
            for case in order.sample(CASES, len(CASES)):
                rounds[case.name].append(measure(case, options.seconds, Path(directory)))
            command.show_round(done + 1, options.rounds)
    report = results.document(CASES, rounds, watch.seen(), options.seconds)
    if options.save:
        command.save(_HERE, report, _HERE / "README.md", results.section(report))
    return command.show(options, report, results.table(report), results.verdict(report))


if __name__ == "__main__":
    sys.exit(main())
