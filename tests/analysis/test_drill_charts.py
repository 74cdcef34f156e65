"""Timeline and matrix of drills show every request, fault and run where it was, and can be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chart_checks import assert_apart, contrast, lightness, seen_with
from drill_bundles import CLIENTS, Fault, Trouble, stalled, write_drill
from typer.testing import CliRunner

from tests.bundles import TITLES
from wanlat.analysis.figures.drill.matrix import DrillKey, DrillRun, matrix_of, read_drills
from wanlat.analysis.figures.drill.read import Drill, read_drill
from wanlat.analysis.report.drill import claims_table, drills_table
from wanlat.analysis.section import markdown
from wanlat.analysis.summary import summarize
from wanlat.bundle.documents import Titles
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import Series, read_run
from wanlat.cli import app

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

pytestmark = pytest.mark.usefixtures("few_resamples")

LONG = "a-name-that-somebody-chose-and-goes-on-" * 3
CASES: dict[str, dict[str, Any]] = {
    "stall": {
        "troubles": [stalled(3.0, 7.0)],
        "faults": [Fault("stop", "n2", 7, 10, nodes=("n2",), affects="processes")],
    },
    "flapping": {
        "faults": [Fault("flapping", "dc1 / dc2", 5, 15, occurrences_s=[5, 7, 9, 11, 13])],
        "troubles": [Trouble("silent", at, at + 1) for at in (5, 7, 9, 11, 13)],
        "deadline_ms": 1000.0,
    },
    "of each kind, and of an older bundle": {
        "faults": [
            Fault("slow", "dc1 / dc2", 5, 15, affects="links"),
            Fault("cpu-throttled", "n2", 6, 15, affects="processes"),
            Fault("disk-full", "n3", 7, 15, affects="disks"),
            Fault("kill", "n4", 8, 15),
            Fault("kill", "n1", 9, 15, affects="what nobody knows here"),
        ],
    },
    "killed early": {"killed_at_s": 8.0, "troubles": [Trouble("down", 5, 15)]},
    "never began": {"killed_at_s": -4.0},
    "long names": {
        "name": LONG,
        "clients": {**CLIENTS, LONG: {"node": "n1", "site": "dc1", "target": "n4"}},
        "faults": [
            Fault("slow", ", ".join(f"n{n}" for n in range(1, 30)), 5, 15, "+1.5 s ± 200 ms"),
            *(Fault("kill", f"n{n}", 5 + n, 15) for n in range(4)),
            Fault("restart", "n2", 14.9, 14.9),
        ],
        "troubles": [Trouble("slow", 5, 15, extra_ms=900)],
        "extra_events": [(9.0, "died", "n3", "exit 1")],
    },
}
Drawn = Callable[[str], tuple[Drill, "Figure"]]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
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


@pytest.mark.parametrize("case", ["flapping", "long names", "of each kind, and of an older bundle"])
def test_no_word_overlaps_another(drawn: Drawn, case: str) -> None:
    assert_apart(drawn(case)[1])


@pytest.mark.parametrize("case", ["stall", "flapping", "killed early"])
def test_every_request_is_a_point_where_it_was_due_and_all_are_counted(
    drawn: Drawn, case: str
) -> None:
    import numpy as np

    drill, figure = drawn(case)
    shown = 0
    for client, operation, _ in drill.clients:
        rows = drill.rows(client["client"], operation)
        for dots in axes_named(figure, f"{client['client']}/{operation}").collections:
            marks, kind = np.asarray(dots.get_offsets(), dtype=float), str(dots.get_gid())
            if not dots.get_gid():
                continue
            shown += len(marks)
            never = kind == "expired"
            outcome = "ok" if kind.endswith("ok") else kind
            of = rows[~rows["sent"] if never else rows["sent"] & (rows["outcome"] == outcome)]
            assert marks[:, 0] == pytest.approx(of["due_s"].to_numpy() - 5.0)
            took_s = of["latency_ms"].to_numpy() / 1000
            known = np.isfinite(took_s) & (not never)
            assert marks[known, 1] == pytest.approx(took_s[known], rel=1e-6)
            assert set(marks[~known, 1]) <= {drill["deadline_ms"] / 1000}
    assert shown == len(drill.requests)
    expired = int((~drill.requests["sent"]).sum())
    assert (f"expired: {expired}" in text_of(figure)) == (expired > 0)


@pytest.mark.parametrize(
    ("case", "shaded", "named"),
    [
        ("stall", [(2.0, 5.0)], ["stop n2", "back to normal, 3.0", "longest outage, 3.0"]),
        ("flapping", [(0.0, 10.0)], ["flapping dc1 / dc2"]),
        ("long names", [(0, 10), (0, 10), (1, 10), (2, 10), (3, 10), (9.9, 9.9)], ["n3 died"]),
        # Nobody healed it: it reaches to the end of the record.
        ("killed early", [(0.0, 3.0)], ["kill n2", "was killed, having reached `during`"]),
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
    assert len(arrows) == sum(fault["end_s"] is None for fault in drill["faults"])


def test_a_fault_has_the_colour_of_what_it_hits_and_the_legend_says_which(drawn: Drawn) -> None:
    from matplotlib.colors import to_hex

    from wanlat.analysis.charts.drill_timeline import FAULT_COLOURS

    drill, figure = drawn("of each kind, and of an older bundle")
    recorded = ["links", "processes", "disks", None, None]
    assert [fault["affects"] for fault in drill["faults"]] == recorded
    wanted = [FAULT_COLOURS[affects] for affects in recorded]
    for name in ("lanes", "ground"):
        colours = [to_hex(bar.get_facecolor()) for bar in axes_named(figure, name).patches]
        assert colours == wanted
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[-4:] == ["fault of links", "fault of processes", "fault of disks", "fault"]
    assert "fault of links" not in text_of(drawn("stall")[1])


def test_a_drill_that_measured_nothing_says_so_and_draws_no_axes(drawn: Drawn) -> None:
    figure = drawn("never began")[1]
    assert "nothing measured" in text_of(figure) and not figure.axes


def test_strips_show_the_share_of_what_was_due_and_leave_empty_bins_empty() -> None:
    import pandas as pd

    from wanlat.analysis.charts.drill_timeline import bin_edges, shares_by_bin

    due = pd.Series([-1.0, 0.1, 0.2, 0.3, 1.5, 1.6, 3.0])
    ours = "not_sent"
    outcomes = pd.Series(["ok", "ok", "fail", ours, ours, ours, "ok"])
    shares = shares_by_bin(due, outcomes, [-1.5, -1, 0, 1, 2, 3, 3.5])
    assert shares == pytest.approx([-1, 1, 0.5, float("nan"), -1, 1], nan_ok=True)
    edges = bin_edges(-15.0, 35.2, 0.25)
    assert 0.0 in edges and (edges[0], edges[-1]) == (-15.0, 35.2) and len(edges) <= 121


def test_marks_differ_for_everybody_and_the_scale_of_shares_in_greyscale() -> None:
    from wanlat.analysis.charts import style
    from wanlat.analysis.charts.drill_timeline import OPERATION_COLOURS
    from wanlat.analysis.charts.style import colour_of

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


def served(shares: Mapping[str, float | None], expired: int = 0, p99_ms: float = 60.0) -> Any:
    counts = {"attempted": 200, "ok": 100, "expired": expired, "not_sent": 0, "availability": 0.5}
    return counts | {"availability_by_client": shares, "p99_ms": p99_ms, "p99_before_ms": 58.0}


WELL, HALF = served({"near": 1.0, "far": 1.0}), served({"near": 1.0, "far": 0.0}, 40)


def run_of(name: str = "one-node-killed", series: Series = MINIO, **changed: Any) -> DrillRun:
    """A run in which nothing is wrong, but for what is `changed`."""
    claims, scale = changed.pop("claims", claimed("holds")), changed.pop("scale", 1.0)
    figures = {
        **{"bundle": "b", "started": "2026-03-01", "status": "complete", "reached": "done"},
        **{
            "at_once": 1,
            "longest_outage_s": 0.0,
            "recovered": True,
            "recovery_s": 0.0,
            "durability": GOOD,
        },
        **{"during": {"reads": changed.pop("reads", WELL), "writes": WELL}, **changed},
    }
    return DrillRun(DrillKey(name, "four-sites", scale), series, figures, claims)


OLD: dict[str, Any] = {"started": "2026-02-01"}
SAID: dict[str, tuple[list[DrillRun], list[str], list[str]]] = {
    "a pair that was never run": (
        [run_of("one", GARAGE), run_of("two", scale=0.1)],
        ["not run", "times × 0.1"],
        ["| two × 0.1 | Garage 2.5.0 | not run |", "| not run |"],
    ),
    "a killed run is neither recovered nor safe": (
        [run_of(status="running", reached="during", durability=UNKNOWN)],
        ["killed in `during`", "not read again"],
        [],
    ),
    "each client's share, what expired, and who is not back": (
        [run_of(reads=HALF, recovered=False, recovery_s=None)],
        ["0 %", "40", "not back"],
        ["near 100 %, far 0 %", "| 40 |", "not back"],
    ),
    "a time to recover is one that had the machine to itself": (
        [run_of(recovery_s=31.0), run_of("b", recovery_s=32.0, at_once=8)],
        ["back in 31.0 s", "back"],
        ["| back in 31.0 s |", "| back |"],
    ),
    "a newer run hides no loss and no claim that did not hold": (
        [
            run_of(**OLD, durability=BAD, claims=claimed("does not hold")),
            *(run_of(), run_of("b", GARAGE, claims=())),
        ],
        ["12 lost, 1 of 2 runs"],
        [
            "fail: 12 lost, 1 of 2 runs",
            "| writes | writes go on | its manual \\| 3 | one-node-killed | writes ok ≥ 90% |",
            "| **does not hold** (1 of 2 runs): 99 of 100 |",
        ],
    ),
    "long names, and as much as may come of a drill": (
        [
            run_of(f"{LONG}{back}", series, reads=slow, recovered=back, durability=of, status=how)
            for series in (GARAGE, Series("a-system-with-a-long-name", "v3.0.0-beta.12345"))
            for slow in (HALF, served({"a": None, "b": 0.9999}, 12_345, 99_999.0))
            for back, of, how in (
                (None, UNKNOWN | {"unread": 7}, "complete"),
                (False, BAD | {"stale": 12}, "interrupted"),
            )
        ],
        ["not known", "12 lost, 12 stale", "interrupted in `done`"],
        [],
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_a_matrix_hides_nothing(case: str) -> None:
    from wanlat.analysis.charts import drill_matrix

    runs, on_chart, in_tables = SAID[case]
    for order in (runs, runs[::-1]):
        matrix = matrix_of(order, Titles(TITLES))
        tables = markdown(drills_table(matrix)) + markdown(claims_table(matrix))
        assert all(said in tables for said in in_tables), tables
    figure = drill_matrix.draw(matrix)
    text = text_of(figure)
    assert all(said in text for said in on_chart), text
    if "long names" in case:
        assert_apart(figure)


def test_the_command_writes_pictures_tables_and_one_document(
    make_bundle: Any, tmp_path: Path
) -> None:
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
    whole = read_drills([below / "minio"])
    (below / "minio" / "summary.json").write_text(summarize(read_run(below / "minio")).to_text())
    assert read_drills([below / "minio"]) == whole
    out = tmp_path / "new" / "place"
    done = CliRunner().invoke(app, ["drill", "matrix", str(below), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert {path.suffix for path in out.iterdir()} == {".png", ".svg", ".json", ".md"}
    document = json.loads(done.stdout)
    assert document == json.loads((out / "matrix.json").read_text())
    runs = {cell["system"]: cell["runs"][0] for cell in document["cells"]}
    assert runs["minio"]["durability"]["lost"] == 2
    reads = runs["garage"]["during"]["reads"]
    assert reads["availability_by_client"] == {"survivor": 1.0, "victim": 0.0}
    assert reads["expired"] > 0 and reads["availability"] == reads["ok"] / reads["attempted"]
    verdicts = {v["system"]: v["verdict"] for v in document["claims"][0]["verdicts"]}
    assert verdicts == {"minio": "does not hold", "garage": "holds"}
    for place, why in ((make_bundle(n=5), "of a study and not of a drill"), (out, "holds none")):
        with pytest.raises(BundleError, match=why):
            read_drills([place])
