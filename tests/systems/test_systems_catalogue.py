"""The list of systems, and installing by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from systems_doubles import plain_reporter

from wanlat.systems.catalogue import install_systems, list_systems, list_tools
from wanlat.systems.engine.cache import Cache, Receipt, sha256_of
from wanlat.topologies.errors import MachineError, UserError

PINNED_MINIO = "v0.0.0-20260212201848-7aac2a2c5b7c"


def pretend_installed(cache: Cache, name: str, version: str) -> Path:
    directory = cache.installed(name, version)
    path = directory / "bin" / name
    path.parent.mkdir(parents=True)
    path.write_text("pretended\n")
    Receipt(name, version, f"bin/{name}", sha256_of(path), 10, "", 0.0, "", [], []).write(directory)
    return path


def test_every_system_is_listed_with_how_to_get_it(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WANLAT_BIN_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    entries = {entry.name: entry for entry in list_systems()}
    assert {name: entry.installed for name, entry in entries.items()} == {
        "quorum": False,
        "garage": False,
        "minio": False,
        "minio-nginx": False,
        "etcd": False,
        "versitygw": False,
        "bob": False,
        "service": False,
    }
    assert entries["garage"].get == "wanlat system install garage"
    assert entries["garage"].pinned == "2.5.0"
    assert entries["minio"].pinned == PINNED_MINIO
    assert entries["quorum"].get == "make build"
    assert "https://github.com/qoollo/bob" in entries["bob"].get
    assert "wanlat system install minio" in entries["minio-nginx"].get
    assert "sudo apt install nginx-light" in entries["minio-nginx"].get
    assert "command" in entries["service"].get
    assert "not on this machine" in (entries["minio"].problem or "")


def test_an_installed_system_is_listed_with_version_path_and_hash(cache: Cache) -> None:
    path = pretend_installed(cache, "minio", PINNED_MINIO)
    entry = next(entry for entry in list_systems() if entry.name == "minio")
    assert entry.installed
    assert (entry.version, entry.path) == (PINNED_MINIO, str(path))
    assert entry.sha256 == sha256_of(path)
    assert entry.problem is None


def test_minio_behind_nginx_is_listed_with_both_of_its_programs_or_with_the_one_that_is_missing(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend_installed(cache, "minio", PINNED_MINIO)
    program = tmp_path / "nginx"
    program.write_text("#!/bin/sh\necho 'nginx version: nginx/1.22.1' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("WANLAT_NGINX_BINARY", str(program))
    entry = next(entry for entry in list_systems() if entry.name == "minio-nginx")
    assert (entry.installed, entry.version) == (True, PINNED_MINIO)
    (front,) = entry.beside
    facts = {"name": "nginx", "version": "1.22.1", "sha256": sha256_of(program)}
    assert front == {**facts, "path": str(program)}
    program.unlink()
    entry = next(entry for entry in list_systems() if entry.name == "minio-nginx")
    assert not entry.installed
    assert "WANLAT_NGINX_BINARY names" in (entry.problem or "")


def test_a_damaged_system_is_listed_as_absent_with_the_problem(cache: Cache) -> None:
    pretend_installed(cache, "garage", "2.5.0").write_text("damaged\n")
    entry = next(entry for entry in list_systems() if entry.name == "garage")
    assert not entry.installed
    assert "was changed since it was built" in (entry.problem or "")


def test_the_list_is_json(cache: Cache) -> None:
    keys = set(json.loads(json.dumps([entry.as_json() for entry in list_systems()]))[0])
    assert keys == {
        "kind",
        "name",
        "title",
        "origin",
        "installed",
        "version",
        "pinned",
        "sha256",
        "path",
        "get",
        "problem",
        "beside",
    }


def test_unknown_names_are_refused_before_anything_is_built(cache: Cache) -> None:
    with pytest.raises(UserError, match="no system `ceph`"):
        install_systems(["minio", "ceph"], plain_reporter())
    assert not cache.root.exists()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("quorum", r"builds garage, .*, versitygw and grpcurl\. To get it: make"),
        ("bob", r"Bob is not installed .*github\.com/qoollo/bob.*--bobd PATH"),
    ],
)
def test_what_this_command_does_not_build_says_where_it_comes_from(
    cache: Cache, name: str, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        install_systems([name], plain_reporter())


def test_a_tool_is_listed_apart_and_installed_likewise(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (absent,) = list_tools()
    assert (absent.kind, absent.name, absent.installed) == ("tool", "grpcurl", False)
    assert (absent.pinned, absent.get) == ("v1.9.4", "wanlat system install grpcurl")
    assert "grpcurl" not in [entry.name for entry in list_systems()]
    with pytest.raises(MachineError, match=r"grpcurl v1\.9\.4 needs `go`"):
        install_systems(["grpcurl"], plain_reporter())
    path = pretend_installed(cache, "grpcurl", "v1.9.4")
    (there,) = list_tools()
    assert (there.version, there.path) == ("v1.9.4", str(path))


def test_without_any_toolchain_every_real_recipe_says_what_is_missing(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"garage 2\.5\.0 needs `cargo`.*rustup"):
        install_systems(["garage"], plain_reporter())
    with pytest.raises(MachineError, match=r"minio .* needs `go`"):
        install_systems(["minio"], plain_reporter())


def test_a_name_given_twice_is_installed_once(
    cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_installed(cache, "garage", "2.5.0")
    assert len(install_systems(["garage", "garage"], plain_reporter())) == 1
    assert capsys.readouterr().out.count("already there") == 1


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"WANLAT_CACHE": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/wanlat"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/wanlat"),
        ({"HOME": "/h"}, "/h/.cache/wanlat"),
        ({"WANLAT_CACHE": "/a", "XDG_CACHE_HOME": "/x"}, "/a"),
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
