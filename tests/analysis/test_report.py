"""A report comes from the bundle alone, is the same each time, and asks little of the machine."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from resources_bundles import write_resources
from rich.console import Console
from synthetic_bundles import GARAGE, QUORUM, MakeBundle, write_bundle

from wanlat.analysis.grid import Grid, markdown, print_grid
from wanlat.analysis.report import report
from wanlat.bundle.errors import BundleError

ROOT = Path(__file__).parents[2]
NO_HOME = {
    "HOME": "/dev/null/nobody",
    "MPLCONFIGDIR": None,
    "XDG_CONFIG_HOME": None,
    "XDG_CACHE_HOME": None,
}
REPORT = """
import json, os, sys
from wanlat.analysis.grid import Grid, markdown, print_grid
from wanlat.analysis.report import report
report(sys.argv[1])
print(json.dumps({"modules": sorted(sys.modules), "home": os.environ.get("MPLCONFIGDIR")}))
"""


def python(
    code: str, *arguments: str, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter; a variable that is None is not in its environment."""
    wanted = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={name: value for name, value in wanted.items() if value is not None},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report made here, and again by a process without a home, in another place and order."""
    bundle = tmp_path_factory.mktemp("bundle")
    write_bundle(bundle, n=30, systems=[GARAGE], endpoints=["PutObject", "GetObject"])
    report(bundle)
    first = contents(bundle)
    done = python(
        REPORT, str(bundle), PYTHONHASHSEED="1234", LC_ALL="C", TZ="Asia/Tokyo", **NO_HOME
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts | {"first": first, "second": contents(bundle), "said": done.stderr}


@pytest.mark.minutes
def test_a_second_report_has_the_same_bytes_even_in_another_process(
    twice: dict[str, Any],
) -> None:
    assert twice["second"].keys() == twice["first"].keys()
    assert [name for name in twice["first"] if twice["first"][name] != twice["second"][name]] == []


@pytest.mark.minutes
def test_no_writable_home_is_needed_and_no_word_said_about_it(twice: dict[str, Any]) -> None:
    assert twice["said"] == ""
    assert twice["home"].startswith("/")
    assert not Path(twice["home"]).exists()  # it went with the process


def test_no_other_room_is_imported(twice: dict[str, Any]) -> None:
    rooms = ("topologies", "emulator", "systems", "probes", "experiments", "proto", "commands")
    assert {f"wanlat.{room}" for room in rooms}.isdisjoint(twice["modules"])


def test_nothing_is_imported_that_a_report_of_latencies_does_not_use(twice: dict[str, Any]) -> None:
    backends = {m for m in twice["modules"] if m.startswith("matplotlib.backends.backend_")}
    assert backends == {"matplotlib.backends.backend_agg"}  # no window system is touched
    assert {"scipy.stats", "scipy.optimize", "seaborn"}.isdisjoint(twice["modules"])


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("svg", [False, True])
def test_a_report_is_a_summary_tables_and_charts(make_bundle: MakeBundle, svg: bool) -> None:
    from matplotlib import image

    path = make_bundle(n=20)
    before = contents(path)
    made = report(path, svg=svg)
    after = contents(path)
    stems = ("endpoint-latency", "published", "calibration")
    suffixes = ("png", "svg") if svg else ("png",)
    written = {"summary.json", "tables.md"} | {f"charts/{s}.{x}" for s in stems for x in suffixes}
    assert {str(p.relative_to(path)) for p in made.paths} == written
    assert after.keys() - before.keys() == written
    assert {name: after[name] for name in before} == before
    assert json.loads(made.summary_path.read_text()) == made.summary.to_json()
    widths = [image.imread(each).shape[1] for each in made.charts if each.suffix == ".png"]
    assert min(widths) >= 150 * 10  # fine enough to print: charts are ten inches wide
    page = (path / "tables.md").read_text()
    assert page.startswith("# endpoint-latency on five-sites\n")
    assert page.count("| Garage 2.5.0 |") >= 5
    assert page.index("| system | endpoint |") < page.index("In words:") < page.index("Notes:")


@pytest.mark.usefixtures("few_resamples")
def test_lines_of_a_killed_run_make_a_report(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True, manifest={"status": "running"})
    raw = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(raw[: len(raw) // 2])
    made = report(path)
    assert "The run was killed" in made.summary.notes[0]
    assert (path / "charts" / "endpoint-latency.png").is_file()


@pytest.mark.usefixtures("few_resamples")
def test_no_latency_is_drawn_on_a_network_that_was_wrong(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=20)
    document = json.loads((path / "calibration.json").read_text())
    document["pairs"][0]["verdict"] = document["verdict"] = "fail"
    (path / "calibration.json").write_text(json.dumps(document))
    made = report(path)
    assert {p.stem for p in made.charts} == {"calibration"}
    assert any("No chart of latencies is drawn" in note for note in made.summary.notes)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("in_the_way", ["charts", "summary.json"])
def test_a_bundle_that_cannot_be_written_is_told(make_bundle: MakeBundle, in_the_way: str) -> None:
    path = make_bundle(systems=[QUORUM], n=20)
    if in_the_way == "charts":
        (path / in_the_way).write_text("a file where a directory belongs")
    else:
        (path / in_the_way).mkdir()
    with pytest.raises(BundleError, match="cannot be written"):
        report(path)
    assert not list(path.rglob("*.partial"))


def test_a_writable_home_is_left_to_matplotlib(tmp_path: Path) -> None:
    code = "import os, wanlat.analysis.charts; print(os.environ.get('MPLCONFIGDIR'))"
    done = python(code, **{**NO_HOME, "HOME": str(tmp_path)})
    assert done.stdout.strip() == "None"


def test_importing_costs_no_heavy_library() -> None:
    code = """
import sys
import wanlat.analysis.report, wanlat.analysis.blocks, wanlat.bundle.errors
print([name for name in ("pandas", "numpy", "scipy", "matplotlib") if name in sys.modules])
"""
    assert python(code).stdout.strip() == "[]"


@pytest.mark.usefixtures("few_resamples")
def test_the_settings_of_the_process_are_left_alone(make_bundle: MakeBundle) -> None:
    import matplotlib as mpl

    before = mpl.rcParams.copy()
    report(make_bundle(systems=[QUORUM], n=20))
    assert mpl.rcParams.copy() == before


@pytest.mark.usefixtures("few_resamples")
def test_somebodys_settings_change_nothing(make_bundle: MakeBundle) -> None:
    import matplotlib as mpl

    path = make_bundle(systems=[QUORUM], n=20)
    report(path)
    first = contents(path)
    theirs: Any = {"font.size": 30, "axes.grid": True, "savefig.bbox": "tight", "svg.id": "x"}
    with mpl.rc_context(theirs):
        report(path)
    assert contents(path) == first


@pytest.mark.usefixtures("few_resamples")
def test_a_terminal_gets_one_table_then_sentences_and_one_chart(
    make_bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wanlat import output, results

    path = make_bundle(systems=[GARAGE], endpoints=["PutObject", "GetObject", "HeadObject"])
    write_resources(path)
    texts = {}
    for verbose in (False, True):
        out = io.StringIO()
        console = Console(file=out, width=160)
        monkeypatch.setattr(output, "_people", lambda console=console: console)
        monkeypatch.setattr(results, "people", console)
        results.show_report(path, as_json=False, verbose=verbose)
        texts[verbose] = out.getvalue()
    text = texts[False]
    assert "Resource usage per node" not in text and "Resource usage per node" in texts[True]
    order = ["mean [95 %]", "GetObject: ", "Instrument and network", "tables: ", "chart: "]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert text.count("chart: ") == 1 and "calibration" in text.split("(beside it: ")[1]
    tables = (path / "tables.md").read_text()
    assert tables.index("| Garage 2.5.0 | PutObject |") < tables.index("Resource usage per node")


GRID = Grid(
    title="A table",
    headers=("what", "of whom", "mean ms [95 %]", "a long header of one figure"),
    rows=(
        ("reads", "a store with a long name", "1.234 [1.200–1.300]", "1"),
        ("writes | both", "", "12345.678 [12345.600–12345.700]", "2\n2"),
        ("[red]smuggled", "[bold]markup", "1", "–"),
    ),
    text=frozenset(("what", "of whom")),
    notes=("Read it.",),
    sections=frozenset((0,)),
)


@pytest.mark.parametrize("width", [40, 60, 80, 90, 100, 120, 200])
def test_a_table_says_the_same_in_any_terminal_and_on_a_page(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    print_grid(GRID, console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), markdown(GRID).splitlines()
    assert max(map(len, text.splitlines())) <= width
    joined = "".join(text.split())
    if width >= 60:  # narrower, figures go over lines too
        for figure in ("1.234", "[1.200–1.300]", "12345.678", "[12345.600–12345.700]"):
            assert figure in joined
    if width >= 90:  # words get what figures leave
        assert "a store with a long name" in text
    assert GRID.rows[1][1:4:2] == ("–", "2 2")  # dashes for nothing, spaces for line breaks
    for row in GRID.rows:
        assert any(all(cell.replace("|", "\\|") in line for cell in row) for line in page)
        # Whatever goes over lines: not one character of a cell is lost.
        assert all(text.count(c) >= cell.count(c) for cell in row for c in cell if c != " ")
    assert "- Read it." in page and "Read it." in text


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells under 2 headers"):
        Grid("t", ("a", "b"), (("x",),))
