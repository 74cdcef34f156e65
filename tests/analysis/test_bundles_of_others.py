"""A bundle that somebody else made is data: its report reads and writes nothing outside it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from answers import changing
from damaged_bundles import STORED, stored
from rich.console import Console

from tests.command_line import here
from wanlat.analysis.report import report
from wanlat.analysis.summary import print_summary
from wanlat.bundle.errors import BundleError, one_line
from wanlat.bundle.matrix import read_matrix

pytestmark = pytest.mark.usefixtures("few_resamples")
CANARY = "canary-of-the-reader"
READ = sorted(
    [path.name for path in (STORED / "study").iterdir() if path.name != "summary.json"]
    + ["trace.png", "charts/trace-x.png", "charts"]
)
WRITTEN = ("summary.json", "tables.md", "report.html", "charts/calibration.png")


@pytest.mark.parametrize("name", READ)
def test_no_link_in_a_bundle_gets_into_its_report(tmp_path: Path, name: str) -> None:
    bundle = stored("study", tmp_path / "bundle")
    own, place = tmp_path / "own", bundle / name
    own.mkdir()
    (own / "file").write_text(CANARY)
    if place.is_file():
        shutil.copy(place, own / "file")
        place.unlink()
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(own if name == "charts" else own / "file")
    with pytest.raises(BundleError, match="link"):
        report(bundle)
    assert [path.name for path in own.iterdir()] == ["file"]
    assert not (bundle / "report.html").exists()


def test_a_report_writes_through_no_link(tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "bundle")
    own = tmp_path / "own"
    own.write_text(CANARY)
    (bundle / "charts").mkdir()
    for name in WRITTEN:
        place = bundle / name
        for each in (place, place.with_name(f".{place.name}.partial")):
            each.unlink(missing_ok=True)
            each.symlink_to(own)
    report(bundle)
    assert own.read_text() == CANARY
    assert not any((bundle / name).is_symlink() for name in WRITTEN)


@pytest.mark.parametrize("inside", ["points", "points/quorum-object_size-1KiB"])
def test_the_points_of_a_matrix_are_in_it(tmp_path: Path, inside: str) -> None:
    bundle = stored("matrix", tmp_path / "bundle")
    shutil.move(bundle / inside, tmp_path / "elsewhere")
    (bundle / inside).symlink_to(tmp_path / "elsewhere")
    missing = {point.name: point.why_missing or "" for point in read_matrix(bundle).missing}
    assert "link" in missing["quorum-object_size-1KiB"]


@pytest.mark.parametrize("place", ["points/..", "points/../../own", "/etc", "points/x\n::error::y"])
def test_a_manifest_names_no_place_outside(tmp_path: Path, place: str) -> None:
    bundle = stored("matrix", tmp_path / "bundle")
    with changing(bundle / "points.json") as document:
        document["points"][0]["directory"] = place
    with pytest.raises(BundleError, match="directory"):
        read_matrix(bundle)


def test_no_line_of_a_report_begins_with_what_a_manifest_says(tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "bundle")
    forged = "::error file=x::forged"
    text = f"all is well\n{forged}\r{forged}\u2028{forged}"
    with changing(bundle / "manifest.json") as manifest:
        manifest["warnings"] = [text]
        manifest["reason"] = text
        manifest["status"] = "failed"
        manifest["study"]["name"] = text
    made = report(bundle)
    shown = io.StringIO()
    print_summary(made.summary, Console(file=shown, width=2000), verbose=True)
    assert made.tables_path is not None
    for said in (shown.getvalue(), made.tables_path.read_text()):
        assert "forged" in said
        assert not any(line.lstrip(" •-#").startswith("::") for line in said.splitlines())


def test_ci_reads_no_line_that_a_bundle_forged(tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "bundle")
    with changing(bundle / "manifest.json") as manifest:
        manifest["topology"]["name"] = manifest["wanlat"] = "x\n::error::forged"
    ended = here("report", str(bundle))
    assert ended.returncode and "forged" in ended.stderr
    assert not any(line.startswith("::") for line in ended.stderr.splitlines())


def test_no_ci_finds_a_command_in_a_line_whatever_stands_before_it() -> None:
    said = one_line("x\n::error::a ##[error]b ##vso[task]c :::d")
    assert not any(command in said for command in ("::", "##[", "##vso[", "\n"))


def test_a_page_of_several_reads_no_link_either(tmp_path: Path) -> None:
    bundle = stored("study", tmp_path / "bundle")
    (tmp_path / "own.json").write_text(json.dumps({"study": CANARY}))
    (bundle / "calibration.json").unlink()
    (bundle / "calibration.json").symlink_to(tmp_path / "own.json")
    ended = here("report", str(bundle), str(STORED / "study"), "-o", str(tmp_path / "page.html"))
    assert ended.returncode and "link" in ended.stderr
    assert CANARY not in ended.stderr and not (tmp_path / "page.html").exists()


def test_a_system_of_any_name_has_its_diagram_among_the_charts() -> None:
    from wanlat.analysis.charts.sequence import stem

    trace: Any = {"system": "x/../../../victim", "endpoint": "Put/Object", "placement": "local"}
    assert "/" not in stem(trace) and stem(trace).startswith("trace-x")


def test_what_no_xml_may_hold_is_in_no_file_that_is_written(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    from wanlat.output import replace_junit

    replace_junit(tmp_path / "junit.xml", "<testsuites>\ufffe\uffff</testsuites>")
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().text
