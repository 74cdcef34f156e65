"""Bringing programs here: resumable, once at a time, whole or not at all; and finding them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import systems_doubles
from systems_doubles import fake_recipe, plain_reporter

from tests.command_line import CHECKOUT, ran, write_program
from tests.needs import needs
from tests.processes import alive, descendants
from wanlat.emulator.own_directories import mark
from wanlat.systems import registry
from wanlat.systems.base import Binary
from wanlat.systems.catalogue import install_systems, list_systems, list_tools
from wanlat.systems.engine.cache import (
    RECEIPT,
    Cache,
    Receipt,
    contents_of,
    demand_building,
    demand_installed,
    exclusive,
    sha256_of,
)
from wanlat.systems.engine.defined import recipe_of
from wanlat.systems.engine.definition import Install, Program, Version
from wanlat.systems.engine.install import Damaged, find_installed, install
from wanlat.systems.engine.kinds import KINDS, TOOLS, Place, check_tool, unpinned
from wanlat.systems.engine.program import find, go_version, label, read_version
from wanlat.systems.errors import InstallFailed, SystemMissing
from wanlat.topologies.errors import MachineError, UserError

FAKE = fake_recipe().install
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
    return cache.build("fake", FAKE) / "work"


def wait_until_compiled(cache: Cache, crates: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(work(cache).glob("crate-*"))) < crates:
        assert time.monotonic() < deadline, "the build does not get on"
        time.sleep(0.01)


def compiled_in_the_last_build(cache: Cache) -> int:
    log = cache.log("fake", FAKE).read_text().splitlines()
    return sum(line.startswith("compiled crate ") for line in log)


def test_an_installed_binary_has_a_receipt_and_is_built_once_and_again_when_it_was_changed(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    assert subprocess.check_output([first.path], text=True) == "fake 1.0\n"
    stored = json.loads((first.path.parents[1] / "receipt.json").read_text())
    assert (stored["sha256"], stored["version"]) == (sha256_of(first.path), "1.0")
    left = {str(p.relative_to(cache.root)) for p in cache.root.rglob("*") if p.is_file()}
    key = FAKE.key
    names = ("bin/fake", "lib/part", "receipt.json")
    kept = {f"systems/fake/{key}/{name}" for name in names}
    assert left == kept | {f"logs/fake-{key}.log", f"locks/fake-{key}.lock"}
    assert stored["files"].keys() == {"bin/fake", "lib/part"}
    (second,) = install([fake_recipe(fails=True)], cache, plain_reporter())
    assert second == first
    with first.path.open("a") as file:
        file.write("# tampered\n")
    with pytest.raises(Damaged, match="wanlat system install fake"):
        find_installed("fake", fake_recipe().install, cache)
    (again,) = install([fake_recipe()], cache, plain_reporter())
    said = capsys.readouterr().out
    assert "already there" in said and "was changed since it was built" in said
    assert "tampered" not in again.path.read_text()


@pytest.mark.parametrize("content", ["", "[]", '{"format": 3}', '{"format": 2, "x": 1}'])
def test_without_a_receipt_that_can_be_read_nothing_is_installed(
    cache: Cache, content: str
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    (first.path.parents[1] / "receipt.json").write_text(content)
    assert find_installed("fake", fake_recipe().install, cache) is None
    with pytest.raises(MachineError, match="Move it away"):  # it may be a user's own directory
        install([fake_recipe()], cache, plain_reporter())
    assert first.path.exists()


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
    assert "built in" in said_first and "built in" not in said_second


def test_another_package_of_the_same_version_is_another_program(cache: Cache) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    other = fake_recipe(crate="fake-fork")
    assert find_installed("fake", other.install, cache) is None
    (second,) = install([other], cache, plain_reporter())
    assert first.path != second.path and find_installed("fake", FAKE, cache) == first
    for key, value in {"also": ["more"], "features": ["more"], "needs": ["cc"]}.items():
        assert find_installed("fake", FAKE.model_copy(update={key: value}), cache) is None
    for key in ("minutes", "path_too"):  # they change nothing of what is built
        assert find_installed("fake", FAKE.model_copy(update={key: 7}), cache) == first


@pytest.mark.parametrize("change", ["changed", "same size and time", "added", "removed", "linked"])
def test_a_change_of_any_installed_file_is_noticed(cache: Cache, change: str) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    assert set(first.receipt.files) == {"bin/fake", "lib/part"}
    assert find_installed("fake", FAKE, cache) is not None
    part = first.path.parents[1] / "lib" / "part"
    was = part.stat()
    if change == "added":
        part.with_name("another").touch()
    elif change in ("removed", "linked"):
        part.unlink()
        if change == "linked":
            part.symlink_to("/dev/null")
    else:
        part.write_text("fast" if change == "same size and time" else "slower")
        os.utime(part, ns=(was.st_atime_ns, was.st_mtime_ns))
    with pytest.raises(Damaged, match=r"(part|another) was changed.*system install fake"):
        find_installed("fake", FAKE, cache)


def test_installed_files_are_read_again_only_where_they_may_have_changed(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    find_installed("fake", FAKE, cache)
    read = list[Path]()

    def noted(path: Path) -> str:
        read.append(path)
        return sha256_of(path)

    monkeypatch.setattr("wanlat.systems.engine.cache.sha256_of", noted)
    assert find_installed("fake", FAKE, cache) == first
    assert read == []
    first.path.chmod(0o755)  # the content is the same, and only the kernel's time of it is new
    assert find_installed("fake", FAKE, cache) == first
    assert read == [first.path]


def test_what_python_compiles_is_no_change(cache: Cache) -> None:
    (first,) = install([fake_recipe()], cache, plain_reporter())
    compiled = first.path.parent / "__pycache__" / "fake.pyc"
    compiled.parent.mkdir()
    compiled.touch()
    assert find_installed("fake", FAKE, cache) == first


def test_packages_that_a_definition_does_not_pin_are_named() -> None:
    came = {"Store": "1", "dns_python": "2", "idna": "3"}
    pinned = Install(pypi="store[fast]", version="1", also=["dns-python==2", "idna"])
    assert unpinned(pinned, came) == ["idna==3"]
    assert unpinned(Install(debian="store", version="15.*"), {"store": "15", "libx": "5"}) == []


def test_an_install_waits_for_what_a_killed_one_has_started(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = start_install(cache, crates=CRATES)
    wait_until_compiled(cache, 2)
    family = descendants(killed.pid)
    compiling = family[-1]
    os.kill(compiling, signal.SIGSTOP)  # so that it does not end when it is asked to
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(60)
    install([fake_recipe()], cache, plain_reporter())
    assert f"process {killed.pid}) is still ending; waiting for it" in capsys.readouterr().out
    assert not alive(family)


def test_an_install_that_is_stopped_holds_up_another_no_longer_than_patience(cache: Cache) -> None:
    lock = cache.lock("fake", FAKE)
    first = start_install(cache)
    wait_until_compiled(cache, 1)
    first.send_signal(signal.SIGSTOP)
    with pytest.raises(MachineError, match=f"kill -CONT {first.pid}"), exclusive(lock, str, 0.3):
        pass
    first.send_signal(signal.SIGCONT)
    assert first.communicate(timeout=300) and first.returncode == 0


@pytest.mark.parametrize("where", [Cache.installed, Cache.build])
def test_what_a_user_keeps_where_a_build_would_be_stays(
    cache: Cache, where: Callable[[Cache, str, Install], Path]
) -> None:
    """A cache may be named that is a directory of the user's own."""
    mine = where(cache, "fake", FAKE) / "out" / "thesis"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(MachineError, match="Move it away"):
        install([fake_recipe()], cache, plain_reporter())
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("where", [Cache.log, Cache.lock])
def test_a_link_where_a_build_writes_leads_nowhere(
    cache: Cache, tmp_path: Path, where: Callable[[Cache, str, Install], Path]
) -> None:
    mine, link = tmp_path / "mine", where(cache, "fake", FAKE)
    mine.write_text("mine")
    link.parent.mkdir(parents=True)
    link.symlink_to(mine)
    with suppress(MachineError):
        install([fake_recipe()], cache, plain_reporter())
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_ends_and_goes_on_where_it_was(
    cache: Cache, how: signal.Signals
) -> None:
    interrupted = start_install(cache, crates=CRATES)
    wait_until_compiled(cache, 4)
    build = descendants(interrupted.pid)
    interrupted.send_signal(how)
    interrupted.communicate(timeout=300)
    assert interrupted.returncode != 0
    assert find_installed("fake", fake_recipe().install, cache) is None
    latest = time.monotonic() + 10
    while alive(build):
        assert time.monotonic() < latest, "the build ends with its installer"
        time.sleep(0.05)
    compiled = set(work(cache).glob("crate-*"))
    assert 4 <= len(compiled) < CRATES
    resumed = start_install(cache, crates=CRATES)
    said = resumed.communicate(timeout=300)[0]
    assert resumed.returncode == 0, said
    assert compiled_in_the_last_build(cache) == CRATES - len(compiled)


def test_a_failed_build_quotes_the_end_of_its_log_and_keeps_what_it_compiled(cache: Cache) -> None:
    with pytest.raises(InstallFailed) as caught:
        install([fake_recipe(fails=True)], cache, plain_reporter())
    log = cache.log("fake", FAKE)
    for part in ("exit code 1", "fake error: linker not happy", str(log)):
        assert part in str(caught.value)
    assert "compiled crate 0" in log.read_text()
    assert find_installed("fake", fake_recipe().install, cache) is None
    install([fake_recipe()], cache, plain_reporter())
    assert compiled_in_the_last_build(cache) == 0


def test_what_cannot_be_built_is_said_before_anything_is(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(TOOLS, "no-such-compiler", "Install it from the moon.")
    monkeypatch.setitem(TOOLS, sys.executable, "Get a newer one.")
    needy = fake_recipe(version="2.0", tools=("no-such-compiler",))
    with pytest.raises(MachineError, match=r"no-such-compiler.*Install it from the moon"):
        install([fake_recipe(), needy], cache, plain_reporter())
    with pytest.raises(MachineError, match=r"99\.1 or newer; this machine has: Python 3"):
        check_tool(sys.executable, "Building", "99.1")
    with pytest.raises(MachineError, match=r"takes about 9000000\.0 GB"):
        install([fake_recipe(disk_bytes=9 * 10**15)], cache, plain_reporter())
    assert not cache.installed("fake", FAKE).exists()
    with pytest.raises(InstallFailed, match=r"says that it is version 1\.0"):
        install([fake_recipe(version="2.0")], cache, plain_reporter())
    assert not cache.installed("fake", fake_recipe(version="2.0").install).exists()
    with pytest.raises(UserError, match="no system `ceph`"):
        install_systems(["minio", "ceph"], plain_reporter())
    with pytest.raises(
        UserError, match=r"builds garage, .*, zookeeper and grpcurl\. To get it: make"
    ):
        install_systems(["quorum"], plain_reporter())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"garage 2\.5\.0 needs `cargo`.*rustup"):
        install_systems(["garage"], plain_reporter())


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"WANLAT_CACHE": "/a", "XDG_CACHE_HOME": "/x"}, "/a"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/wanlat"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/wanlat"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], root: str
) -> None:
    for name in ("WANLAT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Cache.from_environment().root == Path(root)


@pytest.mark.registry
@pytest.mark.parametrize(
    ("kind", "source", "version", "run", "says"),
    [
        ("pypi", "cowsay", "6.1", ["{}", "--text", "42"], "| 42 |"),
        (
            *("maven", "com.h2database:h2", "2.2.224"),
            [
                "java",
                "-cp",
                "{}",
                "org.h2.tools.Shell",
                "-url",
                "jdbc:h2:mem:",
                "-sql",
                "select 42",
            ],
            "42\n(1 row",
        ),
    ],
)
def test_a_package_of_an_index_is_installed_and_runs_from_the_cache(
    cache: Cache, tmp_path: Path, kind: str, source: str, version: str, run: list[str], says: str
) -> None:
    needs(*["mvn"] * (kind == "maven"))
    program = Program(
        name="small",
        install=Install.model_validate({kind: source, "version": version, "disk": "10MB"}),
    )
    recipe = recipe_of(program, "small")
    assert recipe is not None
    (made,) = install([recipe], cache, plain_reporter())
    found = find(program, tmp_path)
    assert (found.path, found.version, found.sha256) == (made.path, version, sha256_of(made.path))
    words, where = (word.format(found.path) for word in run), os.environ | dict(found.environment)
    done = ran(*words, env=where)
    assert says in done.stdout


# -- finding ---------------------------------------------------------------------------------


def script(path: Path, prints: str) -> Path:
    return write_program(path, f"echo '{prints}' >&2")


def pretend_installed(cache: Cache, name: str) -> Path:
    pinned = program_of(name).install
    assert pinned is not None
    directory = cache.installed(name, pinned)
    made, version = script(directory / "bin" / name, ""), pinned.version
    facts = name, version, f"bin/{name}", sha256_of(made), 1, "", 0.0, "", [], []
    Receipt(*facts, files=contents_of(directory), packages={}).write(directory)
    return made


def program_of(name: str) -> Program:
    front = registry.get("minio-nginx").definition.front
    assert front is not None
    known = {**registry.tools(), "nginx": front.program}
    return known[name] if name in known else registry.get(name).definition


@pytest.mark.parametrize(
    ("name", "prints", "version", "short"),
    [
        ("garage", "garage cargo:2.5.0 [features: k2v]", "2.5.0", "2.5.0"),
        ("garage", "garage git:v2.1.0-3-gabc [features: k2v]", "2.1.0", "2.1.0"),
        (
            *("minio", "minio version RELEASE.2025-09-07T16-13-09Z (commit-id=07c3a429)"),
            *("RELEASE.2025-09-07T16-13-09Z", "2025-09-07"),
        ),
        ("minio", "minio version DEVELOPMENT.GOGET", None, None),
        ("quorum", "", None, None),
        ("bob", "bobd 2.1.0-alpha.12", "2.1.0-alpha.12", "2.1.0-alpha.12"),
        ("nginx", "nginx version: nginx/1.22.1 (Ubuntu)", "1.22.1", "1.22.1"),
        ("nginx", "nginx version: nginx/1.10.3", None, None),  # too old
        ("grpcurl", "curl 8", None, None),
    ],
)
def test_a_program_is_told_by_what_it_prints(
    tmp_path: Path, name: str, prints: str, version: str | None, short: str | None
) -> None:
    program, path = program_of(name), script(tmp_path / name, prints)
    if version is None:
        with pytest.raises(SystemMissing, match=r"does not look like|is the oldest that will do"):
            read_version(program, path)
        return
    assert (read_version(program, path), label(program, version)) == (version, short)


def test_the_environment_comes_first_then_the_path_then_the_cache(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(SystemMissing, match="wanlat system install grpcurl"):
        registry.find_tool("grpcurl")
    cached = pretend_installed(cache, "grpcurl")
    assert registry.find_tool("grpcurl") == Binary(cached, "v1.9.4", sha256_of(cached))
    on_path = script(tmp_path / "bin" / "grpcurl", "grpcurl v1.9.3")
    assert registry.find_tool("grpcurl").path == on_path
    named = script(tmp_path / "mine", "grpcurl 1.8.0")
    monkeypatch.setenv("WANLAT_GRPCURL_BINARY", str(named))
    assert registry.find_tool("grpcurl") == Binary(named, "1.8.0", sha256_of(named))
    monkeypatch.setenv("WANLAT_GRPCURL_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match=r"WANLAT_GRPCURL_BINARY names .*nothing"):
        registry.find_tool("grpcurl")
    for where in (Install(path="mine"), Install(path="no-such", also=[str(named)])):
        found = find(Program(name="mine", install=where), tmp_path)
        assert found == Binary(named, "1.8.0", sha256_of(named))


def test_a_program_that_others_may_have_changed_is_not_run(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    made = pretend_installed(cache, "grpcurl")
    assert registry.find_tool("grpcurl").path == made
    for place in (made, made.parent, cache.root):
        mode = place.stat().st_mode
        place.chmod(mode | 0o002)
        with pytest.raises(MachineError, match=r"any user may change.* WANLAT_CACHE"):
            registry.find_tool("grpcurl")
        place.chmod(mode)
    assert registry.find_tool("grpcurl").path == made
    if os.geteuid() == 0:
        os.chown(made, 12345, 12345)
        with pytest.raises(MachineError, match=r"user 12345's.* WANLAT_CACHE"):
            registry.find_tool("grpcurl")
        os.chown(cache.root, 12345, 12345)  # a cache of theirs, which its reader named
        assert registry.find_tool("grpcurl").path == made


def test_a_lock_that_cannot_be_opened_is_named(cache: Cache) -> None:
    lock = cache.lock("fake", FAKE)
    lock.mkdir(parents=True)
    with pytest.raises(MachineError, match=f"{lock}.* WANLAT_CACHE"), exclusive(lock, print):
        pass


@pytest.mark.parametrize("variable", ["WANLAT_CACHE", "HOME"])
def test_without_a_home_the_cache_has_a_way_out(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: int) -> None:
        raise KeyError("no such user")

    for name in ("HOME", "XDG_CACHE_HOME", "WANLAT_CACHE"):
        monkeypatch.delenv(name, raising=False)
    if variable == "WANLAT_CACHE":
        monkeypatch.setenv(variable, "~/cache")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(MachineError, match="WANLAT_CACHE"):
        Cache.from_environment()


def test_the_list_says_what_is_there_and_what_is_the_matter(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    pinned = program_of("minio").install
    assert pinned is not None
    pretend_installed(cache, "minio")
    pretend_installed(cache, "garage").write_text("damaged\n")
    nginx = script(tmp_path / "nginx", "nginx version: nginx/1.22.1")
    monkeypatch.setenv("WANLAT_NGINX_BINARY", str(nginx))
    found = {each.name: each.as_json() for each in [*list_systems(), *list_tools()]}
    json.dumps(found)
    assert (found["minio"]["version"], found["minio"]["pinned"]) == (pinned.version,) * 2
    (front,) = found["minio-nginx"]["beside"]
    facts = {"name": "nginx", "version": "1.22.1", "sha256": sha256_of(nginx)}
    assert front == {**facts, "path": str(nginx)}
    assert "was changed since it was built" in found["garage"]["problem"]
    assert "no `bobd` on PATH" in found["bob"]["problem"]
    assert (found["grpcurl"]["kind"], found["grpcurl"]["installed"]) == ("tool", False)
    nginx.unlink()
    missing = next(each for each in list_systems() if each.name == "minio-nginx")
    assert "WANLAT_NGINX_BINARY names" in (missing.problem or "")


@pytest.mark.parametrize("name", ["minio-nginx", "gridfs-http-nginx"])
def test_the_nginx_before_a_cluster_is_the_one_that_is_installed(
    name: str, cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("wanlat.systems.engine.program._NOT_ON_PATH", str(tmp_path))
    front, own = registry.get(name).definition.front, registry.get("nginx").definition
    assert front is not None and front.program.install is not None and own.install is not None
    said = front.program.install.model_dump(exclude={"path_too"})
    assert said == own.install.model_dump(exclude={"path_too"})
    with pytest.raises(SystemMissing, match=r"Build it .*: wanlat system install nginx"):
        find(front.program, registry.get(name).directory)
    made = pretend_installed(cache, "nginx")
    assert find(front.program, registry.get(name).directory).path == made


def test_what_stands_before_a_cluster_is_installed_with_it() -> None:
    recipe, front = registry.get("minio-nginx").recipe, registry.get("minio-nginx").front_recipe
    assert recipe is not None and front is not None
    assert (recipe.name, front.name) == ("minio", "nginx")


def test_the_program_of_a_service_is_the_first_word_of_its_command(tmp_path: Path) -> None:
    service, program = registry.get("service"), tmp_path / "greeter"
    program.write_text("#!/bin/sh\n")
    options = service.parse_options({"command": [str(program)]})
    with pytest.raises(SystemMissing, match=r"greeter`, is not a program"):
        service.binary_for(options)
    program.chmod(0o755)
    assert service.binary_for(options) == Binary(program, "greeter", sha256_of(program))


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("example.org/x", "v1.2.3"),
        ("example.org/x/deeper", "v0.4.0"),  # a module of its own, which the first requires
        ("example.org/xyz", None),
        ("example.org/other", None),
    ],
)
def test_the_go_linker_s_record_is_read(tmp_path: Path, module: str, version: str | None) -> None:
    record = b"path\texample.org/x\nmod\texample.org/x\tv1.2.3\th1:abc=\n"
    record += b"dep\texample.org/x/deeper\tv0.4.0\th1:abc=\n"
    binary = tmp_path / "go-program"
    binary.write_bytes(b"\0" * 24 + b"\xff Go buildinf:" + bytes(20) + record + bytes(16))
    assert go_version(binary, f"{module}/cmd") == version
    assert go_version(Path(sys.executable).resolve(), "example.org/x") is None


def test_a_debian_package_of_which_the_beginning_is_pinned_has_its_exact_version(
    tmp_path: Path,
) -> None:
    (tmp_path / "packages").write_text(
        "Package: libx\nVersion: 9\nPackage: store\nVersion: 5:7.0.15-1~deb12u10\n"
    )
    pinned = Install(debian="store", version="5:7.0.*")
    assert KINDS["debian"].exact(pinned, tmp_path) == "5:7.0.15-1~deb12u10"
    # LD_LIBRARY_PATH has colons between its directories.
    assert ":" not in str(Cache(tmp_path).installed("store", pinned))


def test_a_program_that_cannot_tell_its_version_has_the_one_that_is_written(tmp_path: Path) -> None:
    silent = write_program(tmp_path / "silent", "exit 2")
    its = Program(name="silent", install=Install(path=str(silent)))
    with pytest.raises(SystemMissing, match=r"does not tell its version: .*`is:` says it"):
        find(its, tmp_path)
    named = its.model_copy(update={"version": Version.model_validate({"is": "7"})})
    assert find(named, tmp_path).version == "7"


def test_how_to_get_a_program_of_one_s_own_names_its_directory(
    cache: Cache, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    text = "schema: 1\nname: mine\nprotocol: http\nports: {http: 80}\ninstall: "
    (mine / "system.yaml").write_text(f"{text}{{cargo: mine, version: 1.0.0, features: [a, b]}}\n")
    system = registry.get(registry.adopt(f"{mine}/"))
    with pytest.raises(SystemMissing, match=f"wanlat system install {mine}$"):
        system.find()
    assert system.recipe is not None
    (command,) = KINDS["cargo"].commands(system.recipe.install, Place(tmp_path, tmp_path))
    assert command[command.index("--features") + 1] == "a,b"
    path = Program(name="mine", install=Install(path="no-such-program"))
    with pytest.raises(SystemMissing, match=f"put it on PATH or into {mine}, or name it with WAN"):
        find(path, mine)


MODULES = {
    "tool": (
        "module example.org/tool\ngo 1.20\nrequire example.org/dep v1.0.0\n"
        "replace example.org/dep => example.org/fork v1.0.0\nreplace example.org/b => ./b\n",
        'package main\nimport "example.org/dep"\nfunc main() { println(dep.Said) }\n',
    ),
    "dep": ("module example.org/dep\n", 'package dep\nconst Said = "what was replaced"\n'),
    "fork": ("module example.org/dep\n", 'package dep\nconst Said = "the replacement"\n'),
}


@pytest.mark.programs
def test_a_go_command_that_go_install_refuses_is_built_with_its_replacements(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed (https://go.dev/dl)")
    for name, (module, source) in MODULES.items():
        versions = tmp_path / "proxy" / "example.org" / name / "@v"
        versions.mkdir(parents=True)
        (versions / "v1.0.0.info").write_text('{"Version": "v1.0.0"}')
        (versions / "v1.0.0.mod").write_text(module)
        with zipfile.ZipFile(versions / "v1.0.0.zip", "w") as archive:
            archive.writestr(f"example.org/{name}@v1.0.0/go.mod", module)
            archive.writestr(f"example.org/{name}@v1.0.0/main.go", source)
    for key, value in (
        *(("GOPROXY", f"file://{tmp_path}/proxy"), ("GOSUMDB", "off"), ("GOTOOLCHAIN", "local")),
        *(("GOMODCACHE", str(tmp_path / "modules")), ("GOFLAGS", "-modcacherw")),
    ):
        monkeypatch.setenv(key, value)
    pinned = Program(name="tool", install=Install(go="example.org/tool", version="v1.0.0"))
    recipe = recipe_of(pinned, "tool")
    assert recipe is not None
    (made,) = install([recipe], cache, plain_reporter())
    said = ran(made.path, check=True)
    assert said.stderr == "the replacement\n"
    assert "go install` refuses it" in cache.log("tool", recipe.install).read_text()


@pytest.mark.parametrize("text", ["mine", "{}", '{"format": 2, "name": "another"}'])
def test_a_receipt_of_something_else_makes_no_directory_ours(tmp_path: Path, text: str) -> None:
    (tmp_path / RECEIPT).write_text(text)
    with pytest.raises(MachineError, match="not made by wanlat"):
        demand_installed(tmp_path, "fake")


def test_a_build_whose_directories_are_links_is_not_gone_on_with(tmp_path: Path) -> None:
    demand_building(tmp_path / "new")
    mark(tmp_path)
    demand_building(tmp_path)
    (tmp_path / "work").symlink_to(tmp_path.parent)
    with pytest.raises(MachineError, match="not made by wanlat"):
        demand_building(tmp_path)
