"""``python -m benchmarks.probe``: measure what the probe costs, and say so."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

from benchmarks.probe import grpc_clients, results, s3_clients
from benchmarks.probe.servers import NullServer
from topologies.errors import WanlatError

_HERE = Path(__file__).parent


def main() -> int:
    """Return 0 when oneshot costs no more than it may, 1 when it does, else what went wrong."""
    options = _options()
    try:
        return _compare(options)
    except WanlatError as error:
        print(f"benchmarks.probe: {error}", file=sys.stderr)
        return error.exit_code


def _compare(options: argparse.Namespace) -> int:
    # Everything on one core: waking another one that sleeps takes longer than the request itself,
    # and whether it comes to that is the scheduler's luck.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with NullServer("null-server") as s3, NullServer("null-grpc") as bob:
        entered = [*s3_clients.contenders(s3), *grpc_clients.contenders(bob)]
        times: dict[str, list[list[int]]] = {each.name: [] for each in entered}
        order = random.Random(options.seed)
        for done in range(options.rounds):
            # Interleaved, in another order each round: what else the machine does hits all alike.
            for each in order.sample(entered, len(entered)):
                times[each.name].append(each.measure(options.samples))
            if sys.stderr.isatty():
                end = "\n" if done + 1 == options.rounds else ""
                print(f"\rround {done + 1} of {options.rounds}", end=end, file=sys.stderr)
    found = results.rows(entered, times)
    targets = (*s3_clients.TARGETS, *grpc_clients.TARGETS)
    report = results.document(found, targets, options.rounds)
    print(results.table(found), file=sys.stderr if options.json else sys.stdout)
    print(f"\n{results.verdicts(report)}", file=sys.stderr)
    if options.json:
        print(json.dumps(report, indent=2))
    if options.save:
        (_HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        results.write_section(_HERE / "README.md", report, found)
    return 0 if report["verdict"] == "pass" else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probe", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=30, help="default: %(default)s")
    parser.add_argument("--samples", type=_positive, default=100, help="a client and round")
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
