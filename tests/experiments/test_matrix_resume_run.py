"""Runs that are cut short, each in a way of its own, and what `--resume` makes of them: for real.

On one node, without a network to prove, so that a run takes a second.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests.command_line import here
from tests.experiments.commands import manifest_of, samples_of
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import begin, is_measuring, points, statuses, study


def test_a_matrix_that_is_interrupted_and_killed_measures_every_point_once(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    file = study(tmp_path, 500, "matrix: {object_size: [1KiB, 2KiB, 4KiB]}")

    run = begin(str(file), "--out", str(bundle))
    await_that(lambda: is_measuring(bundle, 0), run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=180)
    assert run.returncode == 130
    assert f"`wanlat run --resume {bundle}` resumes it" in said
    assert statuses(bundle) == ["interrupted", "planned", "planned"]
    assert manifest_of(bundle)["status"] == "interrupted"

    run = begin("--resume", str(bundle))
    await_that(lambda: is_measuring(bundle, 1), run)
    run.send_signal(signal.SIGSTOP)  # so that it is there, however long the other one takes
    refused = here("run", "--resume", str(bundle))
    assert (refused.returncode, "Another run is writing to" in refused.stderr) == (2, True)
    run.kill()
    run.communicate()
    assert statuses(bundle) == ["complete", "running", "planned"]
    first = bundle / points(bundle)[0]["directory"] / "samples.parquet"
    was = first.stat()

    resumed = here("run", "--resume", str(bundle))
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert [point["attempts"] for point in points(bundle)] == [2, 2, 1]
    now = first.stat()
    assert (now.st_ino, now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
    for point in points(bundle):
        measured = samples_of(bundle / point["directory"]).query("phase == 'measure'")
        assert len(measured) == 1000
        assert set(measured.object_bytes) == {int(point["values"]["object_size"][0]) * 1024}
    aside = sorted(path.name for path in (bundle / "points").glob("*.attempt-*"))
    assert len(aside) == 2
    assert manifest_of(bundle)["attempts"] == 3


def test_a_matrix_goes_on_only_with_the_definition_that_it_was_begun_with(tmp_path: Path) -> None:
    bundle, own = tmp_path / "bundle", tmp_path / "own" / "system.yaml"
    text = "schema: 1\nname: own\nextends: quorum\n"
    own.parent.mkdir()
    own.write_text(text)
    file = study(tmp_path, 5, "replicates: 2")
    given = ("--systems", f"{own.parent}/")
    assert here("run", str(file), *given, "--out", str(bundle)).returncode == 0
    (system,) = manifest_of(bundle)["systems"]
    assert system["definition"]["system.yaml"] == text
    assert "quorum/hooks.py" in system["definition"]
    point = bundle / points(bundle)[0]["directory"]
    assert manifest_of(point)["systems"][0]["files"] == system["files"]

    shutil.rmtree(point)
    own.write_text(f"{text}environment: {{SLOWER: '1'}}\n")
    refused = here("run", "--resume", str(bundle), *given)
    assert (refused.returncode, point.exists()) == (2, False)
    assert "own: `system.yaml`, line 4" in refused.stderr and "SLOWER" in refused.stderr
    own.write_text(text)
    assert here("run", "--resume", str(bundle), *given).returncode == 0
    assert statuses(bundle) == ["complete"] * 2
