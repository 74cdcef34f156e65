"""report.html: complete, one file, bounded; whatever a bundle says is text in it."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answers import opened
from drill_bundles import Fault, stalled, write_drill
from matplotlib import image
from pages import Page

from tests.bundles import GARAGE, MINIO, QUORUM, MakeBundle, write_sweep
from wanlat.analysis.report import beside, html, report
from wanlat.analysis.report.html import Picture
from wanlat.analysis.report.strip import SLOWEST, thinned
from wanlat.analysis.summary import summarize
from wanlat.bundle.run import read_run

pytestmark = pytest.mark.usefixtures("few_resamples")
HOSTILE = """</script></style><script>alert(1)</script><img src=x onerror=alert(1)>"'{{ 7*7 }}"""
SECTIONS = ["found", "charts", "samples", "tables", "provenance"]


def page_of(directory: Path, *pictures: Picture) -> Page:
    """The page of a bundle, with these charts instead of its own, which take long to draw."""
    summary = summarize(opened(directory))
    return checked(html.page(summary, pictures))


def checked(text: str) -> Page:
    """A page of which holds what must hold of every one: nothing is fetched, ours alone runs."""
    page = Page(text)
    assert "<script>alert" not in text
    assert all(each.startswith(("#", "data:")) for each in page.addresses), page.addresses
    assert not any(name.startswith("on") for _, names in page.kinds for name in names)
    assert "style" not in {name for _, names in page.kinds for name in names}
    scripts = [given for tag, given in page.elements if tag == "script"]
    assert [given for given in scripts if given.get("type") != "application/json"] == [{}]
    (policy,) = [given["content"] for tag, given in page.elements if "http-equiv" in given]
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("style", "script"):
        own = page.text(tag)[-1]  # the script that runs is the last one
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|sendBeacon|innerHTML|eval\(", text)
    return page


def test_a_study_is_found_first_and_every_sample_is_there(make_bundle: MakeBundle) -> None:
    path = make_bundle(n=20, failures={("garage", "GetObject"): (1, 1)})
    made = report(path)
    text = made.page_path.read_text(encoding="utf-8")
    page = checked(text)
    assert len(text) < 1_500_000
    charts = [given for tag, given in page.elements if tag == "img"]
    assert len(charts) == len(made.charts) == 2
    assert all(given["alt"] and int(given["width"]) > 1000 for given in charts)
    assert [given["id"] for tag, given in page.elements if tag == "section"] == SECTIONS
    (lede,) = page.text("p", class_="lede")
    assert "RTTs on MinIO" in lede
    assert any("× RTT" in each for each in page.text("li"))
    assert page.text("h1") == ["endpoint-latency on five-sites"]
    plate = dict(zip(page.text("dt", class_="label"), page.text("dd"), strict=False))
    assert plate["calibration"] == "passed" and plate["samples"] == "200: 1 fail, 1 unknown"
    lanes = page.strip["lanes"]
    assert [lane["n"] for lane in lanes] == [lane["shown"] for lane in lanes] == [20] * 10
    samples = pd.read_parquet(path / "samples.parquet")
    measured = samples[samples["phase"] == "measure"].set_index(["version", "seq"])
    versions = [GARAGE[1], MINIO[1]]
    errors = set()
    for lane in lanes:
        of = measured.loc[[(versions[lane["series"]], seq) for seq in lane["seq"]]]
        assert set(of["endpoint"]) == {lane["name"]}
        want = of["total_ns"].to_numpy() / 1e3
        got = np.array(lane["total"], dtype=float)
        assert np.allclose(got, want.round(), equal_nan=True)
        errors |= {page.strip["errors"][n] for n in np.atleast_1d(lane["error"]) if n is not None}
    assert errors == {"http 503 SlowDown", "timeout"}
    left_out = page.text("dl", class_="facts")[0]
    assert "10 of prepare and 10 of warmup" in left_out


def test_what_a_bundle_says_is_text_whatever_it_is(make_bundle: MakeBundle, tmp_path: Path) -> None:
    png = tmp_path / "chart.png"
    image.imsave(png, np.zeros((2, 3)))
    chart = Picture("chart", HOSTILE, (png,))
    plain = page_of(make_bundle(n=12, systems=[GARAGE]), chart)
    named = ["cpu", "kernel", "wanlat", "started", "ended", "reason", "storage", "backend"]
    path = make_bundle(
        name="hostile",
        n=12,
        systems=[(f"garage{HOSTILE}", HOSTILE)],
        endpoints=[HOSTILE, "GetObject"],
        topology=HOSTILE,
        failures={(f"garage{HOSTILE}", "GetObject"): (2, 0)},
        manifest={
            **dict.fromkeys(named, HOSTILE),
            "cpu": {"model": HOSTILE, "cores": 2},
            "command": ["wanlat", HOSTILE],
            "warnings": [HOSTILE],
            "tcp": {HOSTILE: HOSTILE},
            "study": {"name": HOSTILE, "description": HOSTILE, "endpoints": [HOSTILE]},
            "status": "failed",
            "target": {HOSTILE: HOSTILE},
        },
    )
    rows = pd.read_parquet(path / "samples.parquet")
    rows.loc[rows["outcome"] != "ok", "error"] = HOSTILE
    rows.to_parquet(path / "samples.parquet")
    page = page_of(path, chart)
    # Nothing is there that is not there otherwise; and all of it can be read.
    assert page.kinds - plain.kinds <= {("tr", frozenset({"class"}))}
    assert page.text("h1") == [f"{HOSTILE} on {HOSTILE}"]
    assert page.strip["errors"] == [HOSTILE] and page.text("p", class_="lede") == [HOSTILE]
    assert sum(HOSTILE in each for each in page.text("dd")) >= 8
    both = [(summarize(read_run(path)), [chart])] * 2
    assert HOSTILE in checked(html.comparison(both)).text("h1")[0]


def test_a_drill_has_its_timeline_and_what_was_broken(tmp_path: Path) -> None:
    kill = Fault("kill", "n2", 5.0, 8.0, nodes=["n2"])
    path = tmp_path / "drill"
    write_drill(path, faults=[kill], troubles=[stalled(2.0, 5.0)], phases_s=(4.0, 6.0, 5.0))
    rows = pd.read_parquet(path / "samples.parquet")
    early = rows.head(3).assign(phase="warmup")
    pd.concat([early, rows]).to_parquet(path / "samples.parquet")
    page = page_of(path)
    strip = page.strip
    assert sum(lane["n"] for lane in strip["lanes"]) == len(rows)
    (fault,) = strip["timeline"]["faults"]
    assert (fault["begin"], fault["end"]) == (5.0, 8.0) and "kill n2" in fault["name"]
    assert [each["name"] for each in strip["timeline"]["phases"]] == ["before", "during", "after"]
    assert {lane["name"] for lane in strip["lanes"]} >= {"reads of victim", "writes of survivor"}
    lane = strip["lanes"][0]
    assert min(lane["at"]) >= 0 and max(lane["at"]) < 15e6 and "wait" in lane
    assert any("urability" in each for each in page.text("li"))


def test_a_matrix_has_the_samples_of_its_points(tmp_path: Path) -> None:
    write_sweep(tmp_path, {"nodes": [1, 2]}, systems=(MINIO,))
    page = page_of(tmp_path)
    lanes = page.strip["lanes"]
    assert len({lane["of"] for lane in lanes}) == 2
    assert all(lane["shown"] == lane["n"] for lane in lanes)
    assert any("2 of 2 complete" in each for each in page.text("dd"))


def test_runs_are_laid_beside_each_other(make_bundle: MakeBundle, tmp_path: Path) -> None:
    one = make_bundle(name="one", n=20, systems=[GARAGE])
    other = make_bundle(
        name="other", n=20, systems=[("garage", "2.6.0"), QUORUM], manifest={"storage": "disk"}
    )
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    beside([one, other], tmp_path / "beside.html", lambda _: None)
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in tmp_path.iterdir()} == {"one", "other", "beside.html"}
    page = checked((tmp_path / "beside.html").read_text())
    figures = [given["data-figure"] for _, given in page.elements if "data-figure" in given]
    assert {"n", "median ms", "p99 ms"} <= set(figures)
    rows = [each for each in page.text("tr") if each.startswith("GaragePutObject")]
    assert len(rows) == len(figures)  # of either version: versions may be what is compared
    assert page.text("tr", class_="trouble") == ["storagememorydisk"]
    assert {lane["of"] for lane in page.strip["lanes"]} == {"A", "B"}


def test_millions_of_samples_are_a_bounded_number() -> None:
    rng = np.random.default_rng(1)
    times = rng.lognormal(size=300_000)
    failed = rng.random(300_000) < 0.3
    kept = thinned(failed, times, 400)
    assert len(kept) == 400 and (np.diff(kept) > 0).all()
    assert set(np.argsort(times)[-SLOWEST:]) <= set(kept)
    assert 100 <= failed[kept].sum() < 280
    gaps = np.diff(np.flatnonzero(~failed[kept]))
    assert gaps.max() < 20  # from all of the run
    few = np.array([True] + [False] * 99)
    assert 0 in thinned(few, np.ones(100), 10)
    assert list(thinned(few, np.ones(100), 100)) == list(range(100))


def test_a_damaged_column_that_only_the_page_reads_is_reported(make_bundle: MakeBundle) -> None:
    path: Any = make_bundle(n=12, systems=[GARAGE])
    rows = pd.read_parquet(path / "samples.parquet")
    rows["connect_ns"] = "soon"
    rows.to_parquet(path / "samples.parquet")
    page = page_of(path)
    assert "connect_ns" in page.text("section", id="samples")[0]
