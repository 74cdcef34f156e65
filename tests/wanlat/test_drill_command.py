"""``wanlat drill run``: its exit code, and its replicates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import here
from tests.experiments.drill.drills import SHORTEST, drill
from wanlat.experiments import session


def test_a_claim_that_does_not_hold_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "system: quorum\nclaims:\n  - {id: mine, claim: it answers when stopped, source: nobody, "
        "drill: short, availability: {of: reads, client: victim, at_least: 90%}}\n"
    )
    file = drill(tmp_path, "faults: [{stop: victim}]\n", SHORTEST)
    out = tmp_path / "b"
    phases = ("phases.before=5s", "phases.during=8s", "phases.after=5s")
    short = (*phases, "interval=500ms", "deadline=450ms", "objects=5")
    set_ = [word for each in short for word in ("--set", each)]
    done = here("drill", "run", file, *set_, "--claims", str(claims), "--out", str(out), "--json")
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    (claim,) = summary["drill"]["claims"]
    assert claim["verdict"] == "does not hold"
    assert summary["drill"]["durability"]["verdict"] == "pass"
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["drill"]["objects"] == 5 and manifest["drill"]["phases"]["during"] == "8s"
    assert "failed: “it answers when stopped” does not hold" in done.stderr


def test_replicates_are_drills_of_their_own(tmp_path: Path) -> None:
    file = drill(tmp_path, "systems: [quorum]\nfaults: [{stop: victim}]\n", SHORTEST)
    out = tmp_path / "out"
    for more in (["--seed", "5", "--out", str(out)], []):
        done = here("drill", "run", file, "--replicates", "3", "--dry-run", "--json", *more)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["drills"]
        directories, seeds = ([each[key] for each in told] for key in ("directory", "seed"))
        assert len({*directories}) == len({*seeds}) == 3
        if more:
            assert directories == [str(out / f"replicate-{n}") for n in (1, 2, 3)]
