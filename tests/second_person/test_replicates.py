"""Pages and the script beside them work with several clusters a point as well.

The stored bundles of some have one. Here each point gets a second cluster, which was slower and
took more space, and every test of the page is to agree with what is then made of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.second_person import raw, test_pages
from tools.results.pages import rendered
from wanlat.analysis.report import report

MORE = {"samples": ("total_ns",), "load": ("elapsed_100us",), "resources": ("space_bytes",)}
"""Columns of tables that are a tenth greater in the second cluster."""


def with_a_second_cluster(bundle: Path) -> None:
    """Make a bundle with one cluster a point one with two."""
    manifest = raw.document(bundle / "manifest.json")
    inner = bundle.with_name(f"{bundle.name}-of-one")
    bundle.rename(inner)
    if manifest["kind"] == "matrix":
        points = raw.document(inner / "points.json")["points"]
    else:
        (system,) = (each["name"] for each in manifest["systems"])
        points = [{"name": system, "system": system, "values": {}, "directory": "."}]
    written = []
    for number, point in enumerate(points * 2):
        replicate = number // len(points) + 1
        name = f"{point['name']}-replicate-{replicate}"
        copy = bundle / "points" / name
        ignored = shutil.ignore_patterns("points*", "charts", "summary.json", "tables.md")
        shutil.copytree(inner / point["directory"], copy, ignore=ignored)
        if replicate == 2:
            _slower(copy)
        known = {"status": "complete", "reason": None, "attempts": 1, **point}
        known |= {"began": manifest["started"], "ended": manifest["ended"], "point": number}
        values = {**point["values"], "replicate": replicate}
        written.append(known | {"name": name, "values": values, "directory": f"points/{name}"})
    parameters = [*manifest.get("parameters", []), {"name": "replicate", "values": [1, 2]}]
    topologies = manifest.get("topologies") or {
        manifest["topology"]["name"]: manifest.get("topology")
    }
    whole = {"kind": "matrix", "parameters": parameters, "topologies": topologies, "attempts": 1}
    kept = {key: each for key, each in manifest.items() if key in MATRIX}
    for name, found in (
        ("manifest.json", kept | whole),
        ("points.json", {"parameters": parameters, "points": written}),
    ):
        (bundle / name).write_text(json.dumps(found), "utf-8")
    report(bundle)


MATRIX = {"schema_version", "status", "reason", "warnings", "study", "systems", "seed", "command"}
MATRIX |= {"requested", "started", "ended", "wanlat", "kernel", "cpu", "memory_bytes", "claims"}


def _slower(directory: Path) -> None:
    for name, columns in MORE.items():
        path = directory / f"{name}.parquet"
        if not path.exists():
            continue
        frame = pd.read_parquet(path)
        for column in set(columns) & set(frame):
            frame[column] = (frame[column] * 1.1).round().astype(frame[column].dtype)
        frame.to_parquet(path)


Checks = Sequence[Callable[[], Any]]
PAGES: dict[str, tuple[Sequence[str], Checks]] = {
    "disk-reclaim": (
        ("bob", "garage", "minio"),
        (test_pages.test_disk_space, test_pages.test_idle_nodes),
    ),
    "at-scale": (
        ("cluster-growth", "bucket-growth"),
        (
            partial(test_pages.test_at_scale, "cluster-growth", "nodes"),
            partial(test_pages.test_at_scale, "bucket-growth", "objects"),
            test_pages.test_what_filling_a_bucket_takes,
        ),
    ),
    "mixed-load": (("study",), (test_pages.test_mixed_load,)),
    "object-sizes": (("one-key",), (test_pages.test_one_key_again_and_again,)),
}


@pytest.mark.parametrize("page", ["disk-reclaim"])
def test_a_page_of_several_clusters(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles, checks = PAGES[page]
    for each in PAGES:
        if each != page:
            (tmp_path / each).symlink_to(raw.RESULTS / each)
    shutil.copytree(raw.RESULTS / page, tmp_path / page)
    if page == "mixed-load":  # the shorter one of its bundles
        shutil.rmtree(tmp_path / page / "study")
        shutil.copytree(raw.RESULTS / page / "two-minutes", tmp_path / page / "study")
    for name in bundles:
        with_a_second_cluster(tmp_path / page / name)
    made = tmp_path / page / "README.md"
    made.write_text(rendered(made.with_name("README.md.j2")), "utf-8")
    assert "2 clusters" in made.read_text("utf-8")
    monkeypatch.setattr(test_pages, "RESULTS", tmp_path)
    for check in checks:
        check()
