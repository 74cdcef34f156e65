"""``python -m benchmarks.probe``: measure what the probe costs, and say so."""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

from benchmarks import command
from benchmarks.null_server import NullServer
from benchmarks.probe import grpc_clients, results, s3_clients

_HERE = Path(__file__).parent


def main() -> int:
    """Return 0 when oneshot costs no more than it may, 1 when it does, else what went wrong."""
    parser = command.parser("benchmarks.probe", __doc__, rounds=30)
    parser.add_argument("--samples", type=command.positive, default=100, help="a client and round")
    return command.run("benchmarks.probe", _compare, parser.parse_args())


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
            command.show_round(done + 1, options.rounds)
    found = results.rows(entered, times)
    targets = (*s3_clients.TARGETS, *grpc_clients.TARGETS)
    report = results.document(found, targets, options.rounds)
    if options.save:
        command.save(_HERE, report, _HERE / "README.md", results.section(report, found))
    return command.show(options, report, results.table(found), results.verdicts(report))


if __name__ == "__main__":
    sys.exit(main())
