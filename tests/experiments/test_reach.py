"""A bundle that is resumed decides neither what runs here nor which files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wanlat.bundle.documents import Manifest
from wanlat.experiments import resume
from wanlat.experiments.config.study import Study
from wanlat.experiments.resume import Unfinished, read_unfinished
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load

COMMAND = ["/bin/sh", "-c", "id > pwned"]
PROTO = "/any/service.proto"


def unfinished(topologies: dict[str, Any] | None = None, **study: Any) -> Unfinished:
    """A matrix that somebody made, and that names no program that ran."""
    made = Study.model_validate(
        {
            "name": "mine",
            "topology": "one-site",
            "systems": ["quorum"],
            "endpoints": ["GetObject"],
            "samples": 5,
            "replicates": 2,
        }
        | study
    )
    known = {"one-site": load("one-site").to_dict()} if topologies is None else topologies
    keys = {"kind": "matrix", "study": made.to_dict(), "topologies": known, "schema_version": 2}
    return Unfinished(Path("bundle"), Manifest.model_validate(keys))


def test_a_matrix_of_shipped_things_needs_no_trust() -> None:
    assert unfinished().outside == []
    assert unfinished(systems=["garage"], options={"garage": {"db_engine": "sqlite"}}).outside == []


def test_what_a_service_runs_and_reads_needs_trust() -> None:
    options = {"service": {"command": COMMAND, "protos": [PROTO]}}
    outside = " ".join(unfinished(systems=["service"], options=options).outside)
    assert "service.command" in outside and "id > pwned" in outside and PROTO in outside


def test_so_does_a_command_that_an_axis_of_the_matrix_brings() -> None:
    axis = {"options.service.command": [COMMAND, ["other"]]}
    outside = " ".join(unfinished(systems=["service"], matrix=axis).outside)
    assert "id > pwned" in outside and "other" in outside


def test_a_topology_that_the_bundle_does_not_hold_needs_trust() -> None:
    assert "/any.yaml" in " ".join(unfinished(topology="/any.yaml").outside)
    assert "near.yaml" in " ".join(unfinished(topology="near.yaml").outside)
    held = {"/any.yaml": load("one-site").to_dict()}
    assert unfinished(held, topology="/any.yaml").outside == []


def test_resuming_is_refused_unless_the_user_trusts_the_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = unfinished(systems=["service"], options={"service": {"command": COMMAND}}).manifest
    monkeypatch.setattr(resume, "read_manifest", lambda _: made)
    with pytest.raises(UserError, match=r"id > pwned.*--trust"):
        read_unfinished(tmp_path, "run")
    assert read_unfinished(tmp_path, "run", is_trusted=True).manifest == made
