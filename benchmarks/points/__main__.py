"""``python -m benchmarks.points``: what a matrix costs besides its points.

Points are simulated: a millisecond of sleep, and a bundle without samples. All else is as it is: a
matrix is planned, measured in four shards, one after another, and merged.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from benchmarks.comparison import Claim, finish, in_rounds, parser, run, spread, table
from wanlat.bundle.write import BundleWriter
from wanlat.experiments import matrix_points
from wanlat.experiments.config.study import Study
from wanlat.experiments.matrix import merge, run_matrix
from wanlat.experiments.matrix_points import Shard, StudyPoints, prepare_points
from wanlat.experiments.prepare import Prepared
from wanlat.experiments.session import Outcome, silent
from wanlat.topologies.errors import RunFailed

_POINT_S, _REPLICATES, SHARDS = 0.001, 5, 4
AT_MOST_MS, AT_MOST_MIB = 20.0, 500
_COLUMNS = {
    "points": "{points}",
    "planned": "{planned_s[median]:.2f} s",
    "measured": "{measured_s[median]:.2f} s",
    "merged": "{merged_s[median]:.2f} s",
    "a point": "{each_ms[median]:.1f} ms",
    "least–most": "{each_ms[min]:.1f}–{each_ms[max]:.1f} ms",
}


def study(points: int) -> Study:
    sizes = [*range(1, points // _REPLICATES + 1)]
    keys = {"name": "many", "topology": "one-site", "nodes": 1, "endpoints": ["GetObject"]}
    varied = {"matrix": {"object_size": sizes}, "replicates": _REPLICATES, "seed": 3}
    return Study.model_validate(keys | varied)


@contextmanager
def simulated_points() -> Iterator[None]:
    def simulated(prepared: Prepared, _report: object) -> Outcome:
        time.sleep(_POINT_S)
        manifest = {"kind": "study", "study": prepared.study.to_dict(), "seed": prepared.seed}
        BundleWriter.create(prepared.directory, manifest).close("complete", None)
        return Outcome(prepared.directory, "complete")

    with patch.object(matrix_points, "run", simulated):
        yield


def measured(points: int, shards: int = SHARDS) -> dict[str, float]:
    """Return the seconds that planning all shards, measuring them, and merging take."""
    whole, took = study(points), {"planned_s": 0.0, "measured_s": -_POINT_S * points}
    with TemporaryDirectory() as place, simulated_points():
        parts = [Path(place, str(number)) for number in range(1, shards + 1)]
        for number, part in enumerate(parts, 1):
            began = time.monotonic()
            prepared = prepare_points(
                StudyPoints(whole), directory=part, shard=Shard(number, shards)
            )
            planned = time.monotonic()
            if run_matrix(prepared, silent).status != "complete":
                raise RunFailed(f"shard {number} of {shards} did not complete")
            took["planned_s"] += planned - began
            took["measured_s"] += time.monotonic() - planned
        began = time.monotonic()
        merge(parts, Path(place, "merged"))
        took["merged_s"] = time.monotonic() - began
    return took


def _compare(options: argparse.Namespace) -> int:
    results = in_rounds(options, {points: partial(measured, points) for points in options.points})
    rows = [
        {
            "points": points,
            **{key: spread(seconds[key] for seconds in rounds) for key in rounds[0]},
            "each_ms": spread(1e3 * sum(seconds.values()) / points for seconds in rounds),
        }
        for points, rounds in results.items()
    ]
    most_ms = rows[-1]["each_ms"]["median"]
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    claims = [
        Claim(f"at most {AT_MOST_MS:g} ms a point", f"{most_ms:.1f} ms", most_ms <= AT_MOST_MS),
        Claim(f"at most {AT_MOST_MIB} MiB", f"{mib} MiB", mib <= AT_MOST_MIB),
    ]
    tables = table(rows, _COLUMNS)
    return finish(options, Path(__file__).parent, rows=rows, tables=tables, claims=claims)


if __name__ == "__main__":
    made = parser("points", __doc__, rounds=3)
    made.add_argument("--points", type=int, nargs="+", default=[100, 1000])
    run(_compare, made.parse_args())
