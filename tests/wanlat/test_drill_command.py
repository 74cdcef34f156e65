"""``wanlat drill run``: its exit code, and its replicates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command_line import here, ran
from tests.experiments.commands import command
from tests.experiments.drill.drills import SHORTEST, drill
from tests.needs import needs
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


def test_drills_systems_and_replicates_are_points_with_seeds_of_their_own(tmp_path: Path) -> None:
    file = drill(tmp_path, "systems: [quorum]\nfaults: [{stop: victim}]\n", SHORTEST)
    (tmp_path / "other.yaml").write_text(Path(file).read_text().replace("short", "other"))
    out, both = tmp_path / "out", f"{file},{tmp_path / 'other.yaml'}"
    for more in (["--seed", "5", "--out", str(out)], []):
        done = here("drill", "run", both, "--replicates", "3", "--dry-run", "--json", *more)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["drills"]
        directories, seeds = ([each[key] for each in told] for key in ("directory", "seed"))
        assert len({*directories}) == len({*seeds}) == 6
        if more:
            names = {f"{name}-quorum-{n}" for name in ("short", "other") for n in (1, 2, 3)}
            assert {*directories} == {str(out / "points" / name) for name in names}
    part = here("drill", "run", both, "--seed", "5", "--shard", "2/2", "--dry-run", "--json")
    assert json.loads(part.stdout)["drill"] in ("short", "other")


U1 = """name: u1
sites:
  - {name: dca, nodes: [n1]}
  - {name: dcb, nodes: [n2]}
  - {name: dcc, nodes: [n3]}
links: {default: {rtt: 100ms}}
"""


@pytest.mark.parametrize(
    "words",
    [
        "datacenter-lost-3dc --systems quorum --set topology=u1.yaml",
        "datacenter-lost-3dc --systems quorum --topology u1.yaml",
        "one-node-killed --set systems=[quorum] --topology u1.yaml",
        "one-node-killed-3dc --systems nats --set options.nats.replicas=5",
    ],
)
def test_systems_that_are_not_run_are_not_looked_at(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("quorum", "nats")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u1.yaml").write_text(U1)
    done = here("drill", "run", *words.split(), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr


def test_a_system_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u1.yaml").write_text(U1)
    drill = ("drill", "run", "datacenter-lost-3dc", "--topology", "u1.yaml", "--dry-run")
    done = here(*drill, "--systems", "minio")
    assert done.returncode == 2
    assert "MinIO with parity 3" in done.stderr and "systems[" not in done.stderr
    done = here(*drill, "--systems", "quorum", "--set", "options.minio.parity=1")
    assert done.returncode == 2 and "`minio` is not among `systems`: quorum" in done.stderr


@pytest.mark.minutes
def test_several_run_side_by_side_and_are_resumed_by_dask(tmp_path: Path) -> None:
    file = drill(tmp_path, "systems: [quorum]\nfaults: [{stop: victim}]\n", SHORTEST)
    out = tmp_path / "out"
    started_ = command("drill", "run", file, "--replicates", "2", "--jobs", "2", "--out", str(out))
    done = ran(*started_)
    points = json.loads((out / "points.json").read_text())["points"]
    assert [each["status"] for each in points] == ["complete"] * 2, done.stderr
    manifests = [
        json.loads((out / each["directory"] / "manifest.json").read_text()) for each in points
    ]
    assert {each["kind"] for each in manifests} == {"drill"}
    assert points[1]["began"] < points[0]["ended"], "side by side"
    for each in points:
        assert each["name"] in done.stderr
        assert (out / each["directory"] / "charts" / "drill-timeline.png").exists()
    assert len(json.loads((out / "matrix.json").read_text())["cells"][0]["runs"]) == 2
    shutil.rmtree(out / points[0]["directory"])
    again = here("drill", "run", "--resume", str(out), "--engine", "dask", "--json")
    assert again.returncode in (0, 1), again.stderr
    assert len(json.loads(again.stdout)["drills"]) == 2
    kept = json.loads((out / "points.json").read_text())["points"]
    assert [each["attempts"] for each in kept] == [2, 1]
    assert json.loads((out / "manifest.json").read_text())["jobs"][-1]["jobs"] == 1
    assert "drill run --resume" in here("run", "--resume", str(out)).stderr


def test_all_are_those_that_every_system_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    from wanlat.commands.drill import _drills
    from wanlat.commands.measuring import Common

    of = {
        given: {each.name for each in _drills("all", Common(systems=given), 1.0, []).drills}
        for given in ("etcd", "garage", "etcd,garage", "quorum")
    }
    assert of["etcd"] == of["quorum"] == {*of["garage"], "leader-killed"}
    assert of["garage"] == of["etcd,garage"] and len(of["garage"]) > 20
    said = capsys.readouterr().err
    assert said.count("left out: leader-killed, as there is no leader in garage\n") == 2
