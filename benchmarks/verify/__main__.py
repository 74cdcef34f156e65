"""``python -m benchmarks.verify``: what verifying every body costs, at the fastest transfer."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from benchmarks import command
from benchmarks.verify import results
from benchmarks.verify.clients import Fetched, clients, others
from wanlat.topologies.units import Size

_HERE = Path(__file__).parent
_SIZES = ("1KiB", "50KiB", "1MiB", "4MiB", "100MiB")
_BYTES = 400 << 20
"""Of each client and size, at least: small objects are fetched more often."""
_MOST, _LEAST = 200, 4


def main() -> int:
    """Return 0 when verifying costs no more than it may, 1 when it does, else what went wrong."""
    parser = command.parser("benchmarks.verify", __doc__, rounds=10)
    parser.add_argument(
        "--sizes",
        type=lambda text: [Size.parse(one).bytes for one in text.split(",")],
        default=",".join(_SIZES),
        help="default: %(default)s",
    )
    return command.run("benchmarks.verify", _measure, parser.parse_args())


def _measure(options: argparse.Namespace) -> int:
    rows: list[results.Row] = []
    for size in options.sizes:
        rows += _at(size, options)
    report = results.document(rows, others(max(options.sizes)), options.rounds)
    if options.save:
        command.save(_HERE, report, _HERE / "README.md", results.section(report))
    return command.show(options, report, results.text(report), results.verdict(report))


def _at(object_bytes: int, options: argparse.Namespace) -> list[results.Row]:
    count = min(max(_BYTES // object_bytes // options.rounds, _LEAST), _MOST)
    order = random.Random(options.seed)
    with clients(object_bytes) as entered:
        fetched: list[list[list[Fetched]]] = [[] for _ in entered]
        for _ in range(options.rounds):
            # Interleaved, in another order each round: what else the machine does hits all alike.
            for index in order.sample(range(len(entered)), len(entered)):
                fetched[index].append(entered[index].fetch(count))
        return [
            results.row(object_bytes, each.api, each.name, mine)
            for each, mine in zip(entered, fetched, strict=True)
        ]


if __name__ == "__main__":
    sys.exit(main())
