"""``python -m benchmarks.emulation``: wire beside netem, rattan and toxiproxy, in one run."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import command
from benchmarks.emulation import chart, peers, results
from benchmarks.emulation.contender import Contender, Found, Task
from benchmarks.emulation.isolated import IsolatedContender
from benchmarks.emulation.labs import LabContender, UserModeLinuxContender
from wanlat.topologies.errors import MachineError, WanlatError

_HERE = Path(__file__).parent
_PAGE = _HERE.parents[1] / "docs" / "emulators-compared.md"
_PICTURE = _HERE.parents[1] / "docs" / "images" / "emulators-compared"
_MAKERS: dict[str, Callable[[], Contender]] = {
    "wire": lambda: LabContender("wire", "wire"),
    "netem": lambda: UserModeLinuxContender("netem", "netem"),
    "rattan": lambda: IsolatedContender(peers.RATTAN, "benchmarks.emulation.rattan"),
    # Its delays are whole milliseconds, each way.
    "toxiproxy": lambda: IsolatedContender(peers.TOXIPROXY, "benchmarks.emulation.toxiproxy"),
    "bare": lambda: LabContender("bare", None),
    "bare in UML": lambda: UserModeLinuxContender("bare in UML", None),
}


def main() -> int:
    """Return 0 when every claim holds, 1 when one does not, else what went wrong."""
    parser = command.parser("benchmarks.emulation", __doc__, rounds=5)
    parser.add_argument("--install", action="store_true", help="build rattan and toxiproxy first")
    parser.add_argument(
        "--samples",
        type=command.positive,
        default=100,
        help="at 100 ms, each round; four times that at 1 ms",
    )
    return command.run("benchmarks.emulation", _install_or_compare, parser.parse_args())


def _install_or_compare(options: argparse.Namespace) -> int:
    if options.install:
        peers.build()
        return 0
    return _compare(options)


def _compare(options: argparse.Namespace) -> int:
    contenders, absent = _contenders()
    task = Task({100.0: options.samples, 1.0: 4 * options.samples})
    found: dict[str, list[Found]] = {each.name: [] for each in contenders}
    order = random.Random(options.seed)
    for turn in range(options.rounds):
        # In another order each round: what else the machine does hits all alike.
        for each in order.sample(contenders, len(contenders)):
            print(f"round {turn + 1} of {options.rounds}: {each.name}", file=sys.stderr)
            found[each.name].append(each.measure(task))
    made = results.rows(found, {each.name: each.version for each in contenders})
    report = results.document(made, contenders, options.rounds, absent)
    if options.save:
        command.save(_HERE, report, _PAGE, results.section(report, made))
        chart.draw(found, [_PICTURE.with_suffix(".png"), _PICTURE.with_suffix(".svg")])
    return command.show(options, report, results.table(made), results.verdicts(report))


def _contenders() -> tuple[list[Contender], dict[str, str]]:
    """Return who takes part, and who cannot and why."""
    if shutil.which("iperf3") is None:
        raise MachineError("iperf3 is not installed (Debian, Ubuntu: apt-get install iperf3).")
    present: list[Contender] = []
    absent: dict[str, str] = {}
    for name, make in _MAKERS.items():
        try:
            present.append(make())
        except WanlatError as error:
            absent[name] = f"{error} (python -m benchmarks.emulation --install builds it)"
    return present, absent


if __name__ == "__main__":
    sys.exit(main())
