"""``python -m benchmarks.verify``: what verifying every body costs, at the fastest transfer."""

from __future__ import annotations

import argparse
import json
import random
import sys
from itertools import compress
from pathlib import Path

from benchmarks.verify import results
from benchmarks.verify.clients import COMPARED, Fetched, clients, others
from topologies.errors import WanlatError
from topologies.units import Size

_HERE = Path(__file__).parent
_SIZES = ("1KiB", "50KiB", "1MiB", "4MiB", "100MiB")
_BYTES = 400 << 20
"""Of each client and size, at least: small objects are fetched more often."""
_MOST, _LEAST = 200, 4


def main() -> int:
    """Return 0 when verifying costs no more than it may, 1 when it does, else what went wrong."""
    options = _options()
    try:
        return _measure(options)
    except WanlatError as error:
        print(f"benchmarks.verify: {error}", file=sys.stderr)
        return error.exit_code


def _measure(options: argparse.Namespace) -> int:
    rows: list[results.Row] = []
    for size in options.sizes:
        rows += _at(size, options)
    beside = {} if options.compared_only else others(max(options.sizes))
    report = results.document(rows, beside, options.rounds)
    print(results.text(report), file=sys.stderr if options.json else sys.stdout)
    print(f"\n{results.verdict(report)}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    if options.save:
        (_HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        results.write_section(_HERE / "README.md", report)
    return 0 if report["verdict"] == "pass" else 1


def _at(object_bytes: int, options: argparse.Namespace) -> list[results.Row]:
    count = min(max(_BYTES // object_bytes // options.rounds, _LEAST), _MOST)
    order = random.Random(options.seed)
    with clients(object_bytes) as all_of_them:
        wanted = [each.name == COMPARED or not options.compared_only for each in all_of_them]
        entered = list(compress(all_of_them, wanted))
        fetched: list[list[list[Fetched]]] = [[] for _ in entered]
        for _ in range(options.rounds):
            # Interleaved, in another order each round: what else the machine does hits all alike.
            for index in order.sample(range(len(entered)), len(entered)):
                fetched[index].append(entered[index].fetch(count))
        return [
            results.row(object_bytes, each.api, each.name, mine)
            for each, mine in zip(entered, fetched, strict=True)
        ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=10, help="default: %(default)s")
    parser.add_argument(
        "--sizes",
        type=lambda text: [Size.parse(one).bytes for one in text.split(",")],
        default=",".join(_SIZES),
        help="default: %(default)s",
    )
    parser.add_argument(
        "--compared-only", action="store_true", help="without what it is compared with"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order within a round")
    parser.add_argument("--json", action="store_true", help="the document on standard output")
    parser.add_argument(
        "--save", action="store_true", help="write results.json and the README's tables"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    sys.exit(main())
