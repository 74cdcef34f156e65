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
from answers import changing
from rich.console import Console

from tests.bundles import GARAGE, QUORUM, MakeBundle, write_bundle, write_resources
from tests.command_line import ran
from wanlat.analysis.report import report
from wanlat.analysis.section import Grid, markdown, print_grid
from wanlat.bundle.errors import BundleError

ROOT = Path(__file__).parents[2]
HOMES = ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
IMPORT = """
import sys
import wanlat.analysis.report, wanlat.results, wanlat.bundle.errors
print([name for name in ("pandas", "numpy", "scipy", "matplotlib") if name in sys.modules])
"""
REPORT = """
import json, os, sys
from wanlat.analysis.report import report
report(sys.argv[1])
print(json.dumps({"modules": sorted(sys.modules), "home": os.environ.get("MPLCONFIGDIR")}))
"""


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter, whose only home is what `environment` says."""
    inherited = {name: value for name, value in os.environ.items() if name not in HOMES}
    own = {**inherited, "PYTHONPATH": str(ROOT), **environment}
    return ran(sys.executable, "-c", code, *arguments, env=own, check=True)


def contents(directory: Path) -> dict[str, bytes]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.mark.minutes
def test_a_process_without_a_home_elsewhere_makes_the_same_bytes(tmp_path: Path) -> None:
    import matplotlib as mpl

    write_bundle(tmp_path, n=30, systems=[GARAGE], endpoints=["PutObject", "GetObject"])
    before = mpl.rcParams.copy()
    theirs: Any = {"font.size": 30, "axes.grid": True, "savefig.bbox": "tight", "svg.id": "x"}
    with mpl.rc_context(theirs):  # somebody's settings change nothing, and are left alone
        report(tmp_path)
    assert mpl.rcParams.copy() == before
    first = contents(tmp_path)
    elsewhere = {"PYTHONHASHSEED": "1234", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    done = python(REPORT, str(tmp_path), HOME="/dev/null/nobody", **elsewhere)
    second = contents(tmp_path)
    assert [name for name in first if first[name] != second.get(name)] == []
    facts = json.loads(done.stdout)
    assert done.stderr == ""
    assert facts["home"].startswith("/")
    assert not Path(facts["home"]).exists()  # it went with the process
    modules = set(facts["modules"])
    rooms = ("emulator", "systems", "probes", "experiments", "proto", "commands")
    assert modules.isdisjoint(f"wanlat.{room}" for room in rooms)
    backends = {name for name in modules if name.startswith("matplotlib.backends.backend_")}
    assert backends == {"matplotlib.backends.backend_agg"}  # no window system is touched
    assert modules.isdisjoint({"scipy.stats", "scipy.optimize"})


def test_importing_costs_no_heavy_library_and_a_writable_home_is_used(tmp_path: Path) -> None:
    code = f"{IMPORT}\nimport os, wanlat.analysis.charts; print(os.environ.get('MPLCONFIGDIR'))"
    assert python(code, HOME=str(tmp_path)).stdout.split() == ["[]", "None"]


@pytest.mark.usefixtures("few_resamples")
def test_a_report_is_a_summary_tables_and_charts(make_bundle: MakeBundle) -> None:
    from matplotlib import image

    path = make_bundle(n=20)
    before = contents(path)
    made = report(path, svg=True)
    after = contents(path)
    stems = ("endpoint-latency", "calibration")
    charts = {f"charts/{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")}
    written = {"summary.json", "tables.md", "report.html"} | charts
    paths = (made.summary_path, made.tables_path or path, made.page_path, *made.charts)
    assert {str(p.relative_to(path)) for p in paths} == written
    assert after.keys() - before.keys() == written
    assert {name: after[name] for name in before} == before
    assert json.loads(made.summary_path.read_text()) == made.summary.to_json()
    assert "samples" not in vars(made.summary.source)  # of millions, not every column is read
    widths = [image.imread(each).shape[1] for each in made.charts if each.suffix == ".png"]
    assert min(widths) >= 150 * 10  # fine enough to print: charts are ten inches wide
    page = (path / "tables.md").read_text()
    assert page.startswith("# endpoint-latency on five-sites\n")
    assert page.count("| 20/0/0 |") == 10
    assert page.index("| system | endpoint |") < page.index("In words:") < page.index("Notes:")


@pytest.mark.usefixtures("few_resamples")
def test_no_latency_is_drawn_on_a_network_that_was_wrong(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=20, as_lines=True, manifest={"status": "running"})
    with changing(path / "calibration.json") as document:
        document["pairs"][0]["verdict"] = document["verdict"] = "fail"
    made = report(path)
    assert {p.stem for p in made.charts} == {"calibration"}
    assert "The run was killed" in made.summary.notes[0]
    assert any("No chart of latencies is drawn" in note for note in made.summary.notes)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("in_the_way", ["charts", "summary.json"])
def test_a_bundle_that_cannot_be_written_is_told(make_bundle: MakeBundle, in_the_way: str) -> None:
    path = make_bundle(systems=[QUORUM], endpoints=["PutObject"], n=20)
    if in_the_way == "charts":
        (path / in_the_way).write_text("a file where a directory belongs")
    else:
        (path / in_the_way).mkdir()
    with pytest.raises(BundleError, match="cannot be written"):
        report(path)
    assert not list(path.rglob("*.partial"))


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
        monkeypatch.setattr(output, "people", lambda console=console: console)
        monkeypatch.setattr(results, "people", lambda console=console: console)
        results.show_report(path, as_json=False, verbose=verbose)
        texts[verbose] = out.getvalue()
    text = texts[False]
    usage = "Resource usage per node"
    assert usage not in text and usage in texts[True] and usage in (path / "tables.md").read_text()
    order = ["95 %]", "GetObject: ", "Instrument and network", "tables: ", "chart: "]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert text.count("chart: ") == 1 and "calibration" in text.split("(beside it: ")[1]


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
    out = io.StringIO()
    print_grid(GRID, Console(file=out, width=width))
    text, page = out.getvalue(), markdown(GRID).splitlines()
    assert max(map(len, text.splitlines())) <= width
    joined = "".join(text.split())
    if width >= 80:  # narrower, figures go over lines too
        for figure in ("1.234", "[1.200–1.300]", "12345.678", "[12345.600–12345.700]"):
            assert figure in joined
    if width >= 100:  # words get what figures leave
        assert "a store with a long name" in text
    assert GRID.rows[1][1:4:2] == ("–", "2 2")  # dashes for nothing, spaces for line breaks
    for row in GRID.rows:
        assert any(all(cell.replace("|", "\\|") in line for cell in row) for line in page)
        # Whatever goes over lines: not one character of a cell is lost.
        assert all(text.count(c) >= cell.count(c) for cell in row for c in cell if c != " ")
    assert "- Read it." in page and "Read it." in text
