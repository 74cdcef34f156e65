"""``python -m benchmarks.size``: time labs of up to a thousand nodes, beside Mininet."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.size import chart, contenders, results
from benchmarks.size.contenders import OURS, PEER, Timing
from topologies.errors import WanlatError

_HERE = Path(__file__).parent
_IMAGES = _HERE.parent.parent / "docs" / "images"
_PAGE = _HERE.parent.parent / "docs" / "size.md"


def main() -> int:
    """Return 0 when the targets are met, 1 when one is missed, else what went wrong."""
    options = _options()
    try:
        return _compare(options)
    except WanlatError as error:
        print(f"benchmarks.size: {error}", file=sys.stderr)
        return error.exit_code


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
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print(f"{results.table(report)}\n\n{results.phases(report)}")
    print(results.verdicts(report), file=sys.stderr)
    if options.save:
        (_HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        _IMAGES.mkdir(parents=True, exist_ok=True)
        chart.draw(report, [_IMAGES / "size.png", _IMAGES / "size.svg"])
        results.write_section(_PAGE, report)
    return 0 if report["verdict"] == "pass" else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.size", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=7, help="default: %(default)s")
    parser.add_argument(
        "--nodes",
        type=lambda text: [_positive(each) for each in text.split(",")],
        default=[2, 10, 30, 100, 300, 1000],
        help="sizes of wanlat's labs (default: 2,10,30,100,300,1000)",
    )
    parser.add_argument(
        "--mininet-nodes", type=int, default=100, help="the largest of them that Mininet builds too"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order of measuring")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--save", action="store_true", help="keep results.json, the chart and docs/size.md's table"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


if __name__ == "__main__":
    sys.exit(main())
