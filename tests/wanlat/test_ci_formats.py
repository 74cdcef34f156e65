"""JUnit XML, Bencher Metric Format and Markdown: they say what `--json` says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.command_line import here
from wanlat.analysis.report.ci import cases_of_report, junit
from wanlat.bundle.documents import SCHEMA_VERSION
from wanlat.output import printed

STORED = Path(__file__).parents[1] / "data" / "bundles" / str(SCHEMA_VERSION)


@pytest.fixture
def bundle(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return shutil.copytree(STORED / request.param, tmp_path / request.param)


@pytest.mark.parametrize("bundle", ["drill"], indirect=True)
def test_a_drill_and_its_claims_are_cases(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "junit.xml"
    said = here("report", str(bundle), "--junit", str(out), "--json")
    assert said.returncode == 0, said.stderr
    drill = json.loads(said.stdout)["drill"]
    suite = Xml.parse(out).getroot()[0]
    cases = {case.attrib["name"]: case for case in suite}
    assert suite.attrib["tests"] == str(len(cases)) == str(1 + len(drill["claims"]))
    assert cases["one-node-killed"].find("failure") is None
    for claim in drill["claims"]:
        found = [each.tag for each in cases[claim["claim"]]]
        assert found == (["skipped"] if claim["verdict"] == "not decided" else [])
    for verdict in ("not decided", "cannot be tested here"):
        claim = {"claim": "c", "verdict": verdict, "evidence": "its samples are gone"}
        (case,) = cases_of_report({"bundle": {"study": "-"}, "claims": {"claims": [claim]}})
        assert case[2] is None and case[3] is not None, "it has neither failed nor passed"
    drill["failures"] = ["Durability is fail: 3 of 90 lost."]
    drill["claims"][0] |= {"verdict": "does not hold", "evidence": "3 of 9 <reads>\x1b were ok"}
    cases_of = cases_of_report({"bundle": {"study": "-"}, "drill": drill})
    suite = Xml.fromstring(printed(junit([("lost", cases_of)])))[0]
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("2", "1")
    assert [case[0].text for case in suite if case.find("failure") is not None] == [
        "Durability is fail: 3 of 90 lost.",
        r"does not hold: 3 of 9 <reads>\u001b were ok",
    ]


@pytest.mark.parametrize(
    ("bundle", "name", "measures"),
    [
        ("study", "quorum PutObject", {"latency"}),
        ("matrix", "quorum PutObject object_size=1KiB", {"latency"}),
        ("round-trips", "quorum GetObject", {"round-trips"}),
    ],
    indirect=["bundle"],
)
def test_bencher_gets_medians_in_ns_and_round_trips(
    bundle: Path, name: str, measures: set[str]
) -> None:
    done = here("report", str(bundle), "--bmf")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert measures <= set(found[name])
    document = json.loads((bundle / "summary.json").read_text())
    for row in document["endpoints"]:
        if name == f"quorum {row['endpoint']}":
            assert found[name]["latency"]["value"] == pytest.approx(1e6 * row["median_ms"])


@pytest.mark.parametrize("bundle", ["study"], indirect=True)
def test_a_comparison_is_cases_and_a_page(bundle: Path, tmp_path: Path) -> None:
    page, out = tmp_path / "summary.md", tmp_path / "junit.xml"
    page.write_text("# Before\n")
    options = ["--markdown", str(page), "--junit", str(out), "--json"]
    done = here("compare", str(bundle), str(bundle), *options)
    assert done.returncode == 0, done.stderr
    said = page.read_text()
    assert said.startswith("# Before\n**PASS (failures, latency). All endpoints: 2 same.**")
    assert "| quorum | GetObject |" in said and "OLD: " in said
    suite = Xml.parse(out).getroot()[0]
    assert [(case.attrib["classname"], case.attrib["name"]) for case in suite] == [
        (each["system"], each["endpoint"]) for each in json.loads(done.stdout)["endpoints"]
    ]
    assert suite.attrib["failures"] == "0"


@pytest.mark.parametrize("bundle", ["study"], indirect=True)
def test_what_cannot_be_written_or_judged_is_said(bundle: Path, tmp_path: Path) -> None:
    nowhere = here("compare", str(bundle), str(bundle), "--junit", str(tmp_path / "no" / "file"))
    assert nowhere.returncode == 2 and "cannot be written" in nowhere.stderr
    nothing = here("report", str(bundle), "--junit", str(tmp_path / "junit.xml"))
    assert nothing.returncode == 2 and "compare OLD NEW --junit FILE" in nothing.stderr
