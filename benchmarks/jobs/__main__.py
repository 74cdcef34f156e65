"""``python -m benchmarks.jobs``: many labs at once, beside one after another.

`study`: one replicate of the main study alone, and eight with `--jobs auto`; eight without jitter,
whose medians can be compared to a tenth of a millisecond, one by one, with `--jobs auto`, and so
beside two processes that compute a third of the time. `drills`: every shipped drill at once, whose
own times are added up; with --serial one after another as well, which takes more than an hour. Ends
with 1 when one of the claims does not hold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from benchmarks.comparison import Claim, finish, in_rounds, parser, positive, run, table
from wanlat.bundle.documents import Points
from wanlat.bundle.read import read_document, read_json
from wanlat.bundle.run import read_run
from wanlat.experiments.drill.files import shipped
from wanlat.topologies.errors import RunFailed

_TIMES, _OVER, _MOST_MS, _MOST_BUSY_MS, _DRILLS = 1.6, 1.5, 0.3, 0.5, 0.2
_BUSY_S, _PERIOD_S = 1.0, 3.0
ALONE, SHIPPED = "one alone", "jobs auto"
SERIAL, AUTO, BUSY = (
    *("no jitter, one by one", "no jitter, jobs auto"),
    "no jitter, jobs auto, beside two busy processes",
)
_LOOP = (
    "import time\nwhile True:\n    end = time.monotonic() + {busy}\n"
    "    while time.monotonic() < end: sum(range(1000))\n    time.sleep({rest})"
)
Found = tuple[list[dict[str, Any]], list[Claim]]
_COLUMNS = {
    "what": "{what}",
    "clusters": "{clusters}",
    "took": "{took_s:.1f} s",
    "over the sum of latencies": "{wall_over_latencies:.2f}",
    "most at once": "{most}",
    "marked late": "{late}",
    "largest difference of a median": "{apart_ms:.2f} ms",
}


def _compare(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="wanlat-jobs-") as name:
        parts = {"study": _studies, "drills": _drills}
        found = [parts[each](Path(name), options) for each in options.parts]
    rows = [row for part, _ in found for row in part]
    claims = [claim for _, part in found for claim in part]
    more: dict[str, Any] = {"rows": rows, "tables": table(rows, _COLUMNS), "jobs": options.jobs}
    return finish(options, Path(__file__).parent, claims=claims, **more)


def _studies(place: Path, options: argparse.Namespace) -> Found:
    """Run the study in every way; return a row each, and what is claimed of them."""
    asked = {key: partial(do, place) for key, do in _turns(options).items()}
    found: dict[str, list[dict[str, Any]]] = in_rounds(options, asked)
    rows, clusters = [], options.replicates
    medians_ms = {what: _medians(rounds) for what, rounds in found.items()}
    for what, rounds in found.items():
        row = {
            key: median(each[key] for each in rounds) for key in rounds[0] if key != "medians_ms"
        }
        apart = [abs(ms - medians_ms[SERIAL][name]) for name, ms in medians_ms[what].items()]
        rows.append({"what": what, **row, "apart_ms": max(apart) if what in (AUTO, BUSY) else None})
    by_name = {row["what"]: row for row in rows}
    alone, times = by_name[ALONE], by_name[SHIPPED]["took_s"] / by_name[ALONE]["took_s"]
    over, so_many = alone["wall_over_latencies"], f"{clusters} replicates take at most"
    return rows, [
        Claim(f"{so_many} {_TIMES:g} times as long as one", f"{times:.2f}", times <= _TIMES),
        Claim(f"one takes at most {_OVER:g} times its latencies", f"{over:.2f}", over <= _OVER),
        *(
            Claim(f"{what}: medians within {most:g} ms of one by one", f"{ms:.2f} ms", ms <= most)
            for what, most in ((AUTO, _MOST_MS), (BUSY, _MOST_BUSY_MS))
            for ms in [by_name[what]["apart_ms"]]
        ),
    ]


def _medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median of each endpoint, ms, as the middle one of all rounds."""
    names = rounds[0]["medians_ms"]
    return {name: median(each["medians_ms"][name] for each in rounds) for name in names}


def _turns(options: argparse.Namespace) -> dict[str, Callable[[Path], dict[str, Any]]]:
    every = ["--replicates", str(options.replicates), "--seed", str(options.seed)]
    still, auto = ["--jitter", "0ms"], ["--jobs", options.jobs]
    return {
        ALONE: partial(_study, ["--seed", str(options.seed)], busy=0),
        SHIPPED: partial(_study, [*every, *auto], busy=0),
        SERIAL: partial(_study, [*every, *still], busy=0),
        AUTO: partial(_study, [*every, *still, *auto], busy=0),
        BUSY: partial(_study, [*every, *still, *auto], busy=2),
    }


def _study(more: list[str], place: Path, *, busy: int) -> dict[str, Any]:
    """Run the study, and return what is compared of it."""
    out = Path(tempfile.mkdtemp(dir=place)) / "bundle"
    with _computing(busy):
        took_s = _wanlat("run", "endpoint-latency", "--systems", "quorum", *more, out=out)
    points = read_document(out, Points)
    bundles = [read_run(out / each.directory) for each in points.points] if points else []
    timed = pd.concat([each.timed for each in bundles or [read_run(out)]])
    return {
        "clusters": max(1, len(bundles)),
        "took_s": round(took_s, 1),
        "wall_over_latencies": read_json(out / "summary.json")["speed"]["wall_over_latencies"],
        "most": _most_at_once(out),
        "late": sum(each.late for each in bundles or [read_run(out)]),
        "medians_ms": {
            str(name): float(ns.median()) / 1e6
            for name, ns in timed.groupby("endpoint", observed=True)["total_ns"]
        },
    }


def _drills(place: Path, options: argparse.Namespace) -> Found:
    """Run every shipped drill at once, and with --serial one by one."""
    runs = {}
    for jobs in (options.jobs, *(["1"] if options.serial else [])):
        out = place / f"drills-{jobs}"
        command = ("drill", "run", "all", "--systems", "quorum", "--seed", "1", "--jobs", jobs)
        took_s = _wanlat(*command, out=out, codes=(0, 1))
        known = read_document(out, Points)
        complete = [each for each in (known.points if known else ()) if each.status == "complete"]
        bundles = [out / each.directory for each in complete]
        own_s = [read_json(each / "manifest.json")["wall_s"] for each in bundles]
        summaries = [read_json(each / "summary.json")["drill"] for each in bundles]
        runs[jobs] = {
            "what": f"drills, jobs {jobs}",
            "clusters": len(bundles),
            "took_s": round(took_s, 1),
            "own_s": round(sum(own_s), 1),
            "wall_over_latencies": None,
            "most": _most_at_once(out),
            "late": sum(each["late_requests"] for each in summaries),
            "apart_ms": None,
            "verdicts": {each["name"]: _verdict(each) for each in summaries},
            "unfinished": {
                each.name: each.reason
                for each in (known.points if known else ())
                if each.status != "complete"
            },
        }
    at_once, serial = runs[options.jobs], runs.get("1")
    whole_s, of = at_once["own_s"], "their own times' sum"
    if serial:
        whole_s, of = serial["took_s"], "one by one"
    share, missing = at_once["took_s"] / whole_s, len(shipped()) - at_once["clusters"]
    said = f"{at_once['took_s']:.0f} s of {whole_s:.0f} s: {share:.2f}"
    claims = [
        Claim(f"drills take at most {_DRILLS:g} of {of}", said, share <= _DRILLS),
        Claim(
            "drills that did not come to their end",
            "; ".join(f"{name}: {why}" for name, why in at_once["unfinished"].items()) or "none",
            missing == 0,
        ),
    ]
    if serial:
        before, now = serial["verdicts"], at_once["verdicts"]
        differ = [name for name in {*before, *now} if before.get(name) != now.get(name)]
        told = ", ".join(differ) or "none"
        claims.append(Claim("drills whose verdicts differ from one by one", told, not differ))
    return list(runs.values()), claims


def _most_at_once(bundle: Path) -> int:
    jobs = read_json(bundle / "manifest.json").get("jobs", ())
    return max((each["jobs"] for each in jobs), default=1)


def _verdict(drill: dict[str, Any]) -> dict[str, str]:
    """Return whether it passed, and what came of its claims."""
    claims = {each["id"]: each["verdict"] for each in drill["claims"]}
    return {"passed": str(drill["passed"]), "durability": drill["durability"]["verdict"], **claims}


def _wanlat(*arguments: str, out: Path, codes: tuple[int, ...] = (0,)) -> float:
    """Run a command of wanlat's, and return how long it took. Raises RunFailed."""
    command = [sys.executable, "-m", "wanlat", *arguments, "--out", str(out), "-q"]
    began_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode not in codes:
        raise RunFailed(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.monotonic() - began_s


@contextmanager
def _computing(count: int) -> Iterator[None]:
    """Have so many processes compute a part of the time meanwhile."""
    loop = _LOOP.format(busy=_BUSY_S, rest=_PERIOD_S - _BUSY_S)
    busy = [
        subprocess.Popen([sys.executable, "-c", loop], start_new_session=True) for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    made = parser("jobs", __doc__, rounds=1)
    made.add_argument("--replicates", type=positive, default=8, help="clusters (8)")
    made.add_argument("--jobs", default="auto", help="labs at once (auto)")
    made.add_argument("--serial", action="store_true", help="drills one after another, too")
    made.add_argument("parts", nargs="*", default=["study"], metavar="study|drills")
    run(_compare, made.parse_args())
