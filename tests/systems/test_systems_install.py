"""Installing: resumable, once at a time, whole or not at all, and clear when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import systems_doubles
from systems_doubles import fake_recipe, plain_reporter

from wanlat.systems.engine.cache import Cache, sha256_of
from wanlat.systems.engine.install import Damaged, find_installed, install
from wanlat.systems.engine.kinds import TOOLS, Tool
from wanlat.systems.errors import InstallFailed
from wanlat.topologies.errors import MachineError

CHECKOUT = Path(__file__).parents[2]
CRATES = 30
"""Of a build that is interrupted after four: three seconds before its end."""


def start_install(cache: Cache, crates: int = 10) -> subprocess.Popen[str]:
    """A real second process that installs the made-up recipe, a tenth of a second a crate."""
    return subprocess.Popen(
        [sys.executable, systems_doubles.__file__, str(cache.root), str(crates)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def work(cache: Cache) -> Path:
    return cache.build("fake", "1.0") / "work"


def wait_until_compiled(cache: Cache, crates: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(work(cache).glob("crate-*"))) < crates:
        assert time.monotonic() < deadline, "the build does not get on"
        time.sleep(0.01)


def compiled_in_the_last_build(cache: Cache) -> int:
    log = cache.log("fake", "1.0").read_text().splitlines()
    return sum(line.startswith("compiled crate ") for line in log)


def test_an_installed_binary_has_a_receipt_with_its_hash(cache: Cache) -> None:
    (installed,) = install([fake_recipe()], cache, plain_reporter())
    assert installed.path == cache.root / "systems" / "fake" / "1.0" / "bin" / "fake"
    assert subprocess.check_output([installed.path], text=True) == "fake 1.0\n"
    stored = json.loads((installed.path.parents[1] / "receipt.json").read_text())
    assert stored["sha256"] == sha256_of(installed.path)
    assert stored["version"] == "1.0"
    assert stored["bytes"] == installed.path.stat().st_size
    assert stored["command"][0] == sys.executable
    assert stored["built"].endswith("+00:00")


def test_nothing_but_the_result_and_the_log_is_left(cache: Cache) -> None:
    install([fake_recipe()], cache, plain_reporter())
    left = {str(p.relative_to(cache.root)) for p in cache.root.rglob("*") if p.is_file()}
    assert left == {
        "systems/fake/1.0/bin/fake",
        "systems/fake/1.0/receipt.json",
        "logs/fake-1.0.log",
        "locks/fake-1.0.lock",
    }


def test_a_second_install_finds_it_and_builds_nothing(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    built_ns = first.path.stat().st_mtime_ns
    capsys.readouterr()
    (second,) = install([fake_recipe(fails=True)], cache, plain_reporter())
    assert second == first
    assert first.path.stat().st_mtime_ns == built_ns
    assert "already there" in capsys.readouterr().out


def test_a_changed_binary_is_noticed_and_built_again(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    with first.path.open("a") as file:
        file.write("# tampered\n")
    with pytest.raises(Damaged, match="wanlat system install fake"):
        find_installed("fake", fake_recipe().install, cache)
    (again,) = install([fake_recipe()], cache, plain_reporter())
    assert "was changed since it was built" in capsys.readouterr().out
    assert again.receipt.sha256 == sha256_of(again.path)
    assert "tampered" not in again.path.read_text()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 1, "x": 1}'])
def test_without_a_receipt_that_can_be_read_nothing_is_installed(
    cache: Cache, content: str
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    (first.path.parents[1] / "receipt.json").write_text(content)
    assert find_installed("fake", fake_recipe().install, cache) is None
    assert install([fake_recipe()], cache, plain_reporter())[0].path == first.path


def test_two_at_once_build_once(cache: Cache) -> None:
    first = start_install(cache)
    wait_until_compiled(cache, 1)
    first.send_signal(signal.SIGSTOP)  # or it would be done before the second has begun
    second = start_install(cache)
    assert second.stdout is not None
    waiting = f"another install is running (process {first.pid}); waiting for it"
    assert any(waiting in line for line in second.stdout)
    first.send_signal(signal.SIGCONT)
    said_first, said_second = first.communicate(timeout=300)[0], second.communicate(timeout=120)[0]
    assert (first.returncode, second.returncode) == (0, 0), said_first + said_second
    assert "built in" in said_first
    assert "already there" in said_second
    assert "built in" not in said_second


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_goes_on_where_it_was(cache: Cache, how: signal.Signals) -> None:
    interrupted = start_install(cache, crates=CRATES)
    wait_until_compiled(cache, 4)
    interrupted.send_signal(how)
    said = interrupted.communicate(timeout=300)[0]
    assert interrupted.returncode != 0
    assert find_installed("fake", fake_recipe().install, cache) is None
    compiled = {path: path.stat().st_mtime_ns for path in work(cache).glob("crate-*")}
    assert 4 <= len(compiled) < CRATES
    if how == signal.SIGINT:
        assert "the same command goes on from there" in said
    resumed = start_install(cache, crates=CRATES)
    said = resumed.communicate(timeout=300)[0]
    assert resumed.returncode == 0, said
    assert "resuming" in said
    assert compiled_in_the_last_build(cache) == CRATES - len(compiled)


def test_the_build_ends_with_a_killed_installer(cache: Cache) -> None:
    killed = start_install(cache, crates=100)
    wait_until_compiled(cache, 2)
    killed.kill()
    killed.communicate(timeout=300)
    time.sleep(1.0)
    compiled = len(list(work(cache).glob("crate-*")))
    time.sleep(1.0)
    assert len(list(work(cache).glob("crate-*"))) == compiled


def test_a_failed_build_quotes_the_end_of_its_log_and_names_it(cache: Cache) -> None:
    with pytest.raises(InstallFailed) as caught:
        install([fake_recipe(fails=True)], cache, plain_reporter())
    message = str(caught.value)
    assert "exit code 1" in message
    assert "fake error: linker not happy" in message
    log = cache.log("fake", "1.0")
    assert str(log) in message
    assert "compiled crate 0" in log.read_text()
    assert caught.value.exit_code == 3
    assert find_installed("fake", fake_recipe().install, cache) is None


def test_a_failed_build_keeps_what_it_compiled(cache: Cache) -> None:
    with pytest.raises(InstallFailed):
        install([fake_recipe(fails=True)], cache, plain_reporter())
    assert len(list(work(cache).glob("crate-*"))) == 4
    install([fake_recipe()], cache, plain_reporter())
    assert compiled_in_the_last_build(cache) == 0


def test_a_binary_of_another_version_is_not_placed(cache: Cache) -> None:
    with pytest.raises(InstallFailed, match=r"says that it is version 1\.0"):
        install([fake_recipe(version="2.0")], cache, plain_reporter())
    assert not cache.installed("fake", "2.0").exists()


def test_a_missing_tool_is_told_before_anything_is_built(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Tool(("no-such-compiler", "--version"), "Install it from the moon.")
    monkeypatch.setitem(TOOLS, "absent", absent)
    with pytest.raises(MachineError, match=r"no-such-compiler.*Install it from the moon") as caught:
        install(
            [fake_recipe(), fake_recipe(version="2.0", tools=("absent",))], cache, plain_reporter()
        )
    assert caught.value.exit_code == 3
    assert not cache.root.exists() or not cache.installed("fake", "1.0").exists()


def test_too_old_a_tool_is_told_with_both_versions() -> None:
    old = Tool((sys.executable, "--version"), "Get a newer one.")
    with pytest.raises(MachineError, match=r"99\.1 or newer; this machine has: Python 3"):
        old.check("Building", "99.1")


def test_a_tool_that_fails_is_told_with_its_own_words() -> None:
    complaint = (sys.executable, "-c", "import sys; sys.exit('no toolchain is set')")
    with pytest.raises(MachineError, match="no toolchain is set"):
        Tool(complaint, "Set one.").check("Building")


def test_too_little_room_is_told_before_anything_is_built(cache: Cache) -> None:
    with pytest.raises(MachineError, match=r"takes about .* GB .* WANLAT_CACHE"):
        install([fake_recipe(disk_bytes=10**18)], cache, plain_reporter())


def test_a_cache_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MachineError, match="WANLAT_CACHE"):
        install([fake_recipe()], Cache(tmp_path / "file" / "cache"), plain_reporter())
