"""Timeline and matrix of drills show every request, fault and run where it was, and can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chart_checks import assert_apart, contrast, lightness, seen_with
from drill_bundles import CLIENTS, Fault, Trouble, stalled, write_drill
from typer.testing import CliRunner

from wanlat.analysis.bundle import Series, read_bundle
from wanlat.analysis.figures.drill.matrix import (
    Run,
    Served,
    matrix_of,
    read_matrix,
    read_run,
)
from wanlat.analysis.figures.drill.model import Drill
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.grid import markdown
from wanlat.analysis.report.drill_matrix import claims_table, drills_table
from wanlat.analysis.summary import summarize
from wanlat.bundle.errors import BundleError
from wanlat.cli import app

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

pytestmark = pytest.mark.usefixtures("few_resamples")

LONG = "a-name-that-somebody-chose-and-goes-on-" * 3
CASES: dict[str, dict[str, Any]] = {
    "stall": {
        "troubles": [stalled(3.0, 7.0)],
        "faults": [Fault("stop", "n2", 7, 10, nodes=("n2",))],
    },
    "partition": {
        "faults": [Fault("partition", "n1, n2 | n3, n4", 5, 15)],
        "troubles": [Trouble("silent", 5, 15.5, operations=["write"])],
        "deadline_ms": 2000.0,
    },
    "rolling loss": {
        "faults": [Fault("kill", f"n{number}", 4 + number, 15) for number in (1, 2, 4)],
        "troubles": [Trouble("down", 5, 15, clients=["victim"])],
        "extra_events": [(9.0, "died", "n3", "exit 1")],
    },
    "flapping": {
        "faults": [Fault("flapping", "dc1 / dc2", 5, 15, occurrences_s=[5, 7, 9, 11, 13])],
        "troubles": [Trouble("silent", at, at + 1) for at in (5, 7, 9, 11, 13)],
        "deadline_ms": 1000.0,
    },
    "killed early": {"killed_at_s": 8.0, "troubles": [Trouble("down", 5, 15)]},
    "never began": {"killed_at_s": -4.0},
    "long names": {
        "name": LONG,
        "clients": {**CLIENTS, LONG: {"node": "n1", "site": "dc1", "target": "n4"}},
        "faults": [
            Fault("slow", ", ".join(f"n{n}" for n in range(1, 30)), 5, 15, "+1.5 s ± 200 ms"),
            *(Fault("crash-loop", f"n{n}", 5 + n, 6 + n, "every 1 s") for n in range(8)),
            Fault("restart", "n2", 14.9, 14.9),
        ],
        "troubles": [Trouble("slow", 5, 15, extra_ms=900)],
    },
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Drill, Figure]]:
    """Each case, played, read and drawn once."""
    from wanlat.analysis.charts import drill_timeline

    found: dict[str, tuple[Drill, Figure]] = {}

    def draw(case: str) -> tuple[Drill, Figure]:
        if case not in found:
            directory = tmp_path_factory.mktemp("drill") / "bundle"
            drill = read_drill(write_drill(directory, phases_s=(5.0, 10.0, 10.0), **CASES[case]))
            found[case] = drill, drill_timeline.draw(drill)
        return found[case]

    return draw


Drawn = Callable[[str], tuple[Drill, "Figure"]]


def axes_named(figure: Figure, name: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_label() == name)


def text_of(figure: Figure) -> str:
    """All words, one after another."""
    words = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        words += [text.get_text() for text in (*axes.texts, *ticks)]
    legends = (text.get_text() for legend in figure.legends for text in legend.get_texts())
    return "\n".join([*words, *legends])


def points_of(figure: Figure) -> Mapping[str, Any]:
    """What is drawn of each kind of request of each client: an array of x and y, shape (n, 2)."""
    import numpy as np

    dots = (each for axes in figure.axes for each in axes.collections if each.get_gid())
    return {str(each.get_gid()): np.asarray(each.get_offsets(), dtype=float) for each in dots}


@pytest.mark.minutes
@pytest.mark.parametrize("case", CASES)
def test_no_word_overlaps_another(drawn: Drawn, case: str) -> None:
    assert_apart(drawn(case)[1])


@pytest.mark.parametrize("case", ["stall", "partition", "flapping", "killed early"])
def test_every_request_is_a_point_where_it_was_due_and_all_are_counted(
    drawn: Drawn, case: str
) -> None:
    import numpy as np

    drill, figure = drawn(case)
    points, every = points_of(figure), drill.requests
    assert sum(len(each) for each in points.values()) == len(every)
    for name, marks in points.items():
        client, operation, kind = re.split("[/ ]", name, maxsplit=2)
        rows = every[(every["client"] == client) & (every["operation"] == operation)]
        never = kind == "not sent"
        rows = rows[~rows["sent"] if never else rows["sent"] & (rows["outcome"] == kind)]
        assert marks[:, 0] == pytest.approx(rows["due_s"].to_numpy(dtype=float) - 5.0)
        took_ms = rows["latency_ms"].to_numpy(dtype=float)
        known = np.isfinite(took_ms) & (not never)
        assert marks[known, 1] == pytest.approx(took_ms[known], rel=1e-6)
        assert set(marks[~known, 1]) <= {drill.deadline_ms}
    never = int((~every["sent"]).sum())
    assert (f"due and never sent: {never}" in text_of(figure)) == (never > 0)


def test_a_stall_is_a_ramp_that_falls_as_fast_as_time_passes(drawn: Drawn) -> None:
    import numpy as np

    points = points_of(drawn("stall")[1])["survivor/read ok"]
    ramp = points[points[:, 1] > 300]
    fall_ms = np.diff(ramp[np.argsort(ramp[:, 0])], axis=0)
    # Waiting requests are served one after another, each some milliseconds after the one before.
    assert len(ramp) >= 10
    assert fall_ms[:, 1] / fall_ms[:, 0] == pytest.approx(np.full(len(fall_ms), -1000), abs=60)


@pytest.mark.parametrize(
    ("case", "shaded", "named"),
    [
        ("stall", [(2.0, 5.0)], ["stop n2", "back to normal, 3.0"]),
        ("rolling loss", [(0.0, 10.0), (1.0, 10.0), (3.0, 10.0)], ["kill n4", "n3 died"]),
        ("flapping", [(0.0, 10.0)], ["flapping dc1 / dc2"]),
        # Nobody healed it: it reaches to the end of the record.
        ("killed early", [(0.0, 3.0)], ["kill n2", "killed in the stage `during`"]),
    ],
)
def test_faults_are_shaded_where_they_were_and_named(
    drawn: Drawn, case: str, shaded: list[tuple[float, float]], named: list[str]
) -> None:
    drill, figure = drawn(case)
    ground = axes_named(figure, "ground").patches
    spans = sorted((each.get_x(), each.get_x() + each.get_width()) for each in ground)  # type: ignore[attr-defined]
    assert spans == [pytest.approx(each, abs=0.3) for each in shaded]
    text = text_of(figure)
    assert all(name in text for name in named), text
    arrows = [line for line in axes_named(figure, "lanes").get_lines() if line.get_marker() == ">"]
    assert len(arrows) == sum(fault.end_s is None for fault in drill.faults)


def test_the_longest_outage_stands_where_it_was(drawn: Drawn) -> None:
    import numpy as np

    drill, figure = drawn("stall")
    worst = drill.longest_outage
    assert worst is not None
    bars = axes_named(figure, f"{worst.client}/{worst.operation}").get_lines()
    ends = [np.asarray(bar.get_xdata()).tolist() for bar in bars if bar.get_gid() == "outage"]
    assert pytest.approx([worst.begin_s - 5, worst.end_s - 5]) in ends
    assert f"longest outage, {worst.duration_s:.2f} s" in text_of(figure)


def test_a_drill_that_measured_nothing_says_so_and_draws_no_axes(drawn: Drawn) -> None:
    figure = drawn("never began")[1]
    assert "nothing measured" in text_of(figure) and not figure.axes


def test_strips_show_the_share_of_what_was_sent_and_leave_empty_bins_empty() -> None:
    import pandas as pd

    from wanlat.analysis.charts.drill_panel import bin_width_s, shares_by_bin

    rows = pd.DataFrame(
        {
            "due_s": [-1.0, 0.1, 0.2, 0.3, 1.5, 1.6, 3.0],
            "sent": [True, True, True, False, False, False, True],
            "outcome": ["ok", "ok", "fail", "fail", "fail", "fail", "ok"],
        }
    )
    edges, shares, due = shares_by_bin(rows, (-1.5, 3.5), 1.0)
    nan = float("nan")
    assert edges == pytest.approx([-1.5, -1, 0, 1, 2, 3, 3.5])
    assert shares == pytest.approx([nan, 1, 0.5, nan, nan, 1], nan_ok=True)
    assert due.tolist() == [0, 1, 3, 2, 0, 1]
    widths = [bin_width_s(*each) for each in ((100, 0.25), (10, 0.025), (100, 4), (600, 1))]
    assert widths == pytest.approx([1, 0.1, 10, 5])


def test_many_requests_are_all_drawn_in_a_small_svg(drawn: Drawn, tmp_path: Path) -> None:
    import pandas as pd

    from wanlat.analysis.charts import drill_panel, drill_timeline, style

    drill = drawn("stall")[0]
    many = pd.concat([drill.requests] * 12).sort_values("due_s").reset_index(drop=True)
    assert len(drill.requests) <= drill_panel.AS_SHAPES < len(many)
    figure = drill_timeline.draw(replace(drill, requests=many))
    assert sum(len(each) for each in points_of(figure).values()) == len(many)
    style.save_as(figure, tmp_path / "many.svg")
    assert (tmp_path / "many.svg").stat().st_size < 1_000_000


def test_marks_differ_for_everybody_and_the_scale_of_shares_in_greyscale() -> None:
    from wanlat.analysis.charts import style
    from wanlat.analysis.charts.availability import colour_of
    from wanlat.analysis.charts.drill_panel import OPERATION_COLOURS

    for one, other in combinations((*OPERATION_COLOURS.values(), style.ALARM), 2):
        for deficiency in ("protanopia", "deuteranopia", "tritanopia"):
            assert contrast(seen_with(deficiency, one), seen_with(deficiency, other)) > 15
    levels = [lightness(colour_of(share)) for share in (0, 0.25, 0.5, 0.75, 0.9, 0.99, 1)]
    assert all(high > low + 1 for low, high in pairwise(levels))


# --- the matrix --------------------------------------------------------------------------------

GARAGE = Series("garage", "2.5.0")
MINIO = Series("minio", "v0.0.0-20260212201848-7aac2a2c5b7c")


GOOD = {"verdict": "pass", "acknowledged": 500, "lost": 0}
BAD = {"verdict": "fail", "acknowledged": 500, "lost": 12}
UNKNOWN = {"verdict": "unknown", "acknowledged": 3, "unread": 0}


def claimed(verdict: str) -> tuple[dict[str, Any], ...]:
    spec = {"of": "writes", "at_least": "90%"}
    words = {"id": "writes", "claim": "writes go on", "source": "its manual | 3"}
    return (words | {"verdict": verdict, "evidence": "99 of 100", "availability": spec},)


def run_of(name: str = "one-node-killed", series: Series = MINIO, **changed: Any) -> Run:
    """A run in which nothing is wrong, but for what is `changed`."""
    good = Served(200, 200, 0, {"survivor": 1.0, "victim": 1.0}, 60.0, 58.0)
    served = {key: changed.pop(key, good) for key in ("reads", "writes")}
    document = {
        **{"name": name, "topology": "four-sites", "scale": 1.0, **series._asdict()},
        **{"started": "2026-03-01", "status": "complete", "reached": "done"},
        **{"longest_outage_s": 0.0, "recovered": True, "recovery_s": 0.0},
        **{"claims": claimed("holds"), "durability": GOOD, **changed},
    }
    return Run(Path("some/bundle"), document, **served)


OLD = {"started": "2026-02-01"}
HALF = Served(200, 100, 40, {"survivor": 1.0, "victim": 0.0}, 60.0, 58.0)
SAID: dict[str, tuple[list[Run], list[str], list[str]]] = {
    "a pair that was never run": (
        [run_of("one", GARAGE), run_of("two")],
        ["not run"],
        ["| two | Garage 2.5.0 | not run |", "| not run |"],
    ),
    "a killed run is neither recovered nor safe": (
        [run_of(status="running", reached="during", durability=UNKNOWN)],
        ["killed in `during`", "not read again"],
        [],
    ),
    "not recovered": ([run_of(recovered=False, recovery_s=None)], ["not back"], ["not back"]),
    "each client's share, and what was never sent": (
        [run_of(reads=HALF)],
        ["0 %", "40"],
        ["survivor 100 %, victim 0 %", "| 40 |"],
    ),
    "the newest complete run is shown, and all are counted": (
        [run_of(**OLD, recovery_s=3.0), run_of(recovery_s=7.0), run_of(status="interrupted")],
        ["back in 7.00 s", "(3 runs)"],
        ["**holds** (3 of 3 runs)"],
    ),
    "a newer run hides no loss": (
        [run_of(**OLD, durability=BAD), run_of()],
        ["12 lost, 1 of 2 runs"],
        ["fail: 12 lost, 1 of 2 runs"],
    ),
    "a newer run hides no claim that did not hold": (
        [run_of(), run_of(**OLD, claims=claimed("does not hold")), run_of("b", GARAGE, claims=())],
        [],
        [
            "| writes | writes go on | its manual \\| 3 | one-node-killed | writes ok ≥ 90% |",
            "| **does not hold** (1 of 2 runs): 99 of 100 |",
        ],
    ),
    "long names, and as much as may come of a drill": (
        [
            run_of(f"{LONG}{back}", series, reads=slow, recovered=back, durability=of, status=how)
            for series in (GARAGE, Series("a-system-with-a-long-name", "v3.0.0-beta.12345"))
            for slow in (HALF, Served(99_999, 5, 12_345, {"a": None, "b": 0.9999}, 99_999.0, 5.0))
            for back, of, how in (
                (True, GOOD, "complete"),
                (None, UNKNOWN | {"unread": 7}, "complete"),
                (False, BAD | {"stale": 12}, "interrupted"),
            )
        ],
        ["not known", "12 lost, 12 stale", "interrupted in `done`"],
        [],
    ),
    "runs at another scale stand in a row of their own": (
        [run_of(), run_of(scale=0.1)],
        ["times × 0.1"],
        ["one-node-killed × 0.1"],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_matrix_hides_nothing(case: str) -> None:
    from wanlat.analysis.charts import drill_matrix

    runs, on_chart, in_tables = SAID[case]
    for order in (runs, runs[::-1]):
        matrix = matrix_of(order)
        tables = markdown(drills_table(matrix)) + markdown(claims_table(matrix))
        assert all(said in tables for said in in_tables), tables
    figure = drill_matrix.draw(matrix)
    text = text_of(figure)
    assert all(said in text for said in on_chart), text
    if "long names" in case:
        assert_apart(figure)


def test_the_command_writes_pictures_tables_and_one_document(tmp_path: Path) -> None:
    below = tmp_path / "deep"
    for series, spoil in ((MINIO, {"lost": 2}), (GARAGE, {})):
        write_drill(
            below / series.system,
            series=series,
            phases_s=(5.0, 8.0, 5.0),
            troubles=[Trouble("silent", 5, 13.6, clients=["victim"])],
            deadline_ms=1000.0,
            spoil=spoil,
            claims=[{"id": "intact", "claim": "c", "source": "s", "durability": "intact"}],
        )
    # From its summary alone a matrix has the same as from the whole bundle.
    whole = read_run(below / "minio")
    (below / "minio" / "summary.json").write_text(summarize(read_bundle(below / "minio")).to_text())
    assert read_run(below / "minio") == whole
    written = []
    for out in (tmp_path / "new" / "place", tmp_path / "again"):
        command = ["drill", "matrix", str(below), "--out", str(out), "--json"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert written[0] == written[1]
    assert set(written[0]) == {
        *("matrix.png", "matrix.svg", "matrix.json", "drills.md", "claims.md")
    }
    document = json.loads(done.stdout)
    assert document == json.loads(written[0]["matrix.json"])
    runs = {cell["system"]: cell["runs"][0] for cell in document["cells"]}
    assert runs["minio"]["durability"]["lost"] == 2
    reads = runs["garage"]["during"]["reads"]
    assert reads["availability_by_client"] == {"survivor": 1.0, "victim": 0.0}
    assert reads["not_sent"] > 0 and reads["availability"] == reads["ok"] / (
        reads["attempted"] - reads["not_sent"]
    )
    verdicts = {v["system"]: v["verdict"] for v in document["claims"][0]["verdicts"]}
    assert verdicts == {"minio": "does not hold", "garage": "holds"}


def test_a_study_and_an_empty_directory_are_refused(make_bundle: Any, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="of a study and not of a drill"):
        read_matrix([make_bundle(n=5)])
    with pytest.raises(BundleError, match="holds none"):
        read_matrix([tmp_path / "missing"])
