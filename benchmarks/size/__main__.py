"""``python -m benchmarks.size``: time labs of up to a thousand nodes, beside Mininet."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import command
from benchmarks.size import chart, contenders, results
from benchmarks.size.contenders import OURS, PEER, Timing

_HERE = Path(__file__).parent
_IMAGES = _HERE.parent.parent / "docs" / "images"
_PAGE = _HERE.parent.parent / "docs" / "size.md"


def main() -> int:
    """Return 0 when the targets are met, 1 when one is missed, else what went wrong."""
    parser = command.parser("benchmarks.size", __doc__, rounds=7)
    parser.add_argument(
        "--nodes",
        type=lambda text: [command.positive(each) for each in text.split(",")],
        default=[2, 10, 30, 100, 300, 1000],
        help="sizes of wanlat's labs (default: 2,10,30,100,300,1000)",
    )
    parser.add_argument(
        "--mininet-nodes", type=int, default=100, help="the largest of them that Mininet builds too"
    )
    return command.run("benchmarks.size", _compare, parser.parse_args())


def _compare(options: argparse.Namespace) -> int:
    entered: list[tuple[str, int, Callable[[int], Timing]]] = [
        (OURS, nodes, contenders.time_wanlat) for nodes in options.nodes
    ]
    obstacle = contenders.mininet_obstacle()
    if obstacle is None:
        entered += [
            (PEER, nodes, contenders.time_mininet)
            for nodes in options.nodes
            if nodes <= options.mininet_nodes
        ]
    else:
        print(f"without Mininet: {obstacle}", file=sys.stderr)
    timings: dict[tuple[str, int], list[Timing]] = {(name, n): [] for name, n, _ in entered}
    order = random.Random(options.seed)
    for number in range(options.rounds):
        # Interleaved, in another order each round: what else the machine does hits all alike.
        for name, nodes, measure in order.sample(entered, len(entered)):
            timings[name, nodes].append(measure(nodes))
            taken = timings[name, nodes][-1]
            print(
                f"round {number + 1} of {options.rounds}: {name}, {nodes} nodes: "
                f"up {taken.up_s:.2f} s, down {taken.down_s:.2f} s",
                file=sys.stderr,
            )
    report = results.document(timings, options.rounds)
    if options.save:
        _IMAGES.mkdir(parents=True, exist_ok=True)
        chart.draw(report, [_IMAGES / "size.png", _IMAGES / "size.svg"])
        command.save(_HERE, report, _PAGE, results.section(report))
    text = f"{results.table(report)}\n\n{results.phases(report)}"
    return command.show(options, report, text, results.verdicts(report))


if __name__ == "__main__":
    sys.exit(main())
