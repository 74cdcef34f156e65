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


def test_no_window_system_is_touched(twice: dict[str, Any]) -> None:
    # seaborn imports pyplot, which loads a backend only when it is asked for a figure.
    backends = {m for m in twice["modules"] if m.startswith("matplotlib.backends.backend_")}
    assert backends == {
        "matplotlib.backends.backend_agg",
        "matplotlib.backends.backend_svg",
        "matplotlib.backends.backend_mixed",
    }


@pytest.mark.usefixtures("few_resamples")
def test_a_report_is_a_summary_tables_and_charts_in_two_formats(make_bundle: MakeBundle) -> None:
    path = make_bundle()
    before = contents(path)
    made = report(path)
    after = contents(path)
    stems = ("endpoint-latency", "published", "calibration")
    written = {"summary.json", "tables.md"} | {
        f"charts/{s}.{x}" for s in stems for x in ("png", "svg")
    }
    assert {str(p.relative_to(path)) for p in made.paths} == written
    assert after.keys() - before.keys() == written
    assert {name: after[name] for name in before} == before
    assert json.loads(made.summary_path.read_text()) == made.summary.to_json()


@pytest.mark.usefixtures("few_resamples")
def test_pngs_are_fine_enough_to_print(make_bundle: MakeBundle) -> None:
    from matplotlib import image

    made = report(make_bundle(systems=[QUORUM], n=20))
    widths = [image.imread(path).shape[1] for path in made.charts if path.suffix == ".png"]
    assert min(widths) >= 150 * 10  # charts are ten inches wide


@pytest.mark.usefixtures("few_resamples")
def test_lines_of_a_killed_run_make_a_report(make_bundle: MakeBundle) -> None:
    path = make_bundle(as_lines=True, manifest={"status": "running"})
    raw = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(raw[: len(raw) // 2])
    made = report(path)
    assert "The run was killed" in made.summary.notes[0]
    assert (path / "charts" / "endpoint-latency.svg").is_file()


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
import wanlat.analysis.report, wanlat.analysis.table, wanlat.bundle.errors
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
def test_a_terminal_gets_resource_usage_where_it_is_asked_for(
    make_bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wanlat import results

    path = make_bundle(systems=[GARAGE], endpoints=["PutObject", "GetObject", "HeadObject"])
    write_resources(path)
    texts = {}
    for verbose in (False, True):
        out = io.StringIO()
        monkeypatch.setattr(results, "people", Console(file=out, width=160))
        results.show_report(path, as_json=False, verbose=verbose)
        texts[verbose] = out.getvalue()
    assert "Resource usage per node" not in texts[False]
    assert "Resource usage per node" in texts[True]
    tables = (path / "tables.md").read_text()
    assert tables.index("| Garage 2.5.0 | PutObject |") < tables.index("Resource usage per node")
