"""``python -m benchmarks.size``: time labs of up to a thousand nodes, beside Mininet."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.comparison import (
    Claim,
    Row,
    finish,
    in_rounds,
    parser,
    positive,
    run,
    spread,
    table,
)
from benchmarks.networks import mesh
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import RunFailed

_HERE = Path(__file__).parent
_DOCS = _HERE.parents[1] / "docs" / "results" / "thousand-nodes"
OURS, PEER = "wanlat", "Mininet, Linux bridges"
TIMES_FASTER, COMPARED = 7.0, 100
LARGEST = 1000
WITHIN_S = {COMPARED: 0.4, LARGEST: 2.0}
GROWTH = 1.5  # of the cost per node, from 100 nodes to 1,000

_SITES = {2: 2, 10: 2, 30: 3, 100: 5, 300: 10, 1000: 20}
_SYSTEM_PYTHON = "/usr/bin/python3"  # Debian's Mininet is installed for this one
_AFTER_MININET_S = 3
COLUMNS = {
    "emulator": "{emulator}",
    "nodes": "{nodes:,}",
    "sites": "{sites}",
    "up": "{up_s[median]:.2f} s",
    "down": "{down_s[median]:.2f} s",
    "both": "{both_s[median]:.2f} s",
    "least–most": "{both_s[min]:.2f}–{both_s[max]:.2f} s",
    "a further node": "{further_ms:.1f} ms",
}


class Timing(NamedTuple):
    """One network up and down, in seconds."""

    up_s: float
    down_s: float


def _compare(options: argparse.Namespace) -> int:
    turns: dict[tuple[str, int], Callable[[], Timing]]
    turns = {(OURS, nodes): partial(time_wanlat, nodes) for nodes in options.nodes}
    if (obstacle := mininet_obstacle()) is None:
        small = [nodes for nodes in options.nodes if nodes <= options.mininet_nodes]
        turns |= {(PEER, nodes): partial(time_mininet, nodes) for nodes in small}
    else:
        print(f"without Mininet: {obstacle}", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    for (name, nodes), taken in in_rounds(options, turns).items():
        row = {"emulator": name, "nodes": nodes, "sites": _sites_of(nodes)}
        row |= {"up_s": spread(each.up_s for each in taken)}
        row |= {"down_s": spread(each.down_s for each in taken)}
        rows.append(row | {"both_s": spread(each.up_s + each.down_s for each in taken)})
    for row in rows:
        row["further_ms"] = _further_ms(row, [r for r in rows if r["emulator"] == row["emulator"]])
    if options.save:
        draw(rows, _DOCS / "size")
    found = {"rows": rows, "tables": table(rows, COLUMNS), "claims": [*_claims(rows)]}
    return finish(options, _HERE, **found)


def _further_ms(row: Row, same: Sequence[Row]) -> float | None:
    """Return what each node costs beyond the smallest network of the same emulator."""
    smallest = min(same, key=lambda each: int(each["nodes"]))
    if row["nodes"] < 10 or row is smallest:
        return None
    more_s = row["both_s"]["median"] - smallest["both_s"]["median"]
    return round(more_s / (row["nodes"] - smallest["nodes"]) * 1000, 3)


def _claims(rows: Sequence[Row]) -> Iterator[Claim]:
    by_size = {(row["emulator"], row["nodes"]): row for row in rows}
    ours, peer = by_size.get((OURS, COMPARED)), by_size.get((PEER, COMPARED))
    largest = by_size.get((OURS, LARGEST))
    if ours and peer:
        times = peer["both_s"]["median"] / ours["both_s"]["median"]
        text = f"up and down of {COMPARED} nodes at least {TIMES_FASTER:.0f} times faster"
        yield Claim(f"{text} than Mininet", f"{times:.1f} times", times >= TIMES_FASTER)
    for nodes, within_s in WITHIN_S.items():
        if row := by_size.get((OURS, nodes)):
            both_s = row["both_s"]["median"]
            text = f"{nodes:,} nodes up and down within {within_s:g} s"
            yield Claim(text, f"{both_s:.2f} s", both_s <= within_s)
    if ours and largest and ours["further_ms"]:
        growth = largest["further_ms"] / ours["further_ms"]
        text = f"a further node of {LARGEST} costs at most {GROWTH} times one of {COMPARED}"
        yield Claim(text, f"{growth:.2f} times", growth <= GROWTH)


def _sites_of(nodes: int) -> int:
    """Return over how many sites so many nodes are spread."""
    return _SITES.get(nodes, max(2, round(nodes**0.5 / 1.6)))


def time_wanlat(nodes: int) -> Timing:
    """Time a lab with the wire backend, all of whose WAN links are impaired."""
    plan = mesh("size", nodes, _sites_of(nodes), 40)
    start = time.monotonic()
    with Lab(plan, backend="wire") as lab:
        up = time.monotonic()
        ping = ["ping", "-c1", "-W5", lab.nodes[-1].address]
        answer = lab.run("n1", ping, timeout_s=20).returncode
        end = time.monotonic()
    down = time.monotonic()
    if answer != 0:
        raise RunFailed(f"The last of {nodes} nodes does not answer.")
    return Timing(up - start, down - end)


def mininet_obstacle() -> str | None:
    """Say why Mininet cannot be timed here; None when it can."""
    if os.geteuid() != 0:
        return "Mininet needs root."
    for program, package in (("mnexec", "mininet"), ("brctl", "bridge-utils")):
        if shutil.which(program) is None:
            return f"There is no {program}: apt-get install --no-install-recommends {package}"
    return None


def time_mininet(nodes: int) -> Timing:
    """Time Mininet, in namespaces of its own: nothing of it touches the machine's network."""
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    script = _HERE / "mininet_network.py"
    command += [_SYSTEM_PYTHON, str(script), str(nodes), str(_sites_of(nodes))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RunFailed(f"Mininet failed with {nodes} nodes: {done.stderr.strip()[-500:]}")
    # Unlike a lab it does not await the kernel, which goes on taking its namespaces down and
    # would disturb what is measured next.
    time.sleep(_AFTER_MININET_S)
    found = json.loads(done.stdout.splitlines()[-1])
    if not found["works"]:
        raise RunFailed(f"The last of Mininet's {nodes} hosts does not answer.")
    return Timing(found["up_s"], found["down_s"])


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the comparison as a picture: seconds by size, and what a further node costs."""
    import matplotlib.pyplot as plt

    figure, (seconds, further) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    for name, colour in ((OURS, "#0b6e4f"), (PEER, "#7a8ba3")):
        mine = sorted((r for r in rows if r["emulator"] == name), key=lambda row: int(row["nodes"]))
        nodes = [row["nodes"] for row in mine]
        least, middle, most = (
            [row["both_s"][key] for row in mine] for key in ("min", "median", "max")
        )
        seconds.plot(nodes, middle, "o-", color=colour, label=name)
        seconds.fill_between(nodes, least, most, color=colour, alpha=0.18)
        further.plot(nodes, [row["further_ms"] for row in mine], "o-", color=colour)
    for axis, title in ((seconds, "seconds, up and down"), (further, "ms a further node")):
        axis.set(xscale="log", xlabel="nodes", ylabel=title)
        axis.xaxis.set_major_formatter("{x:,.0f}")
    seconds.set(yscale="log")
    seconds.legend()
    figure.suptitle("A network up and down again (median; band: least to most)")
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=150)


if __name__ == "__main__":
    made = parser("size", __doc__, rounds=7)
    made.add_argument(
        "--nodes",
        type=lambda text: [positive(each) for each in text.split(",")],
        default="2,10,30,100,300,1000",
        help="sizes of wanlat's labs (default: %(default)s)",
    )
    text = "the largest of them that Mininet builds too"
    made.add_argument("--mininet-nodes", type=int, default=100, help=text)
    run(_compare, made.parse_args())
