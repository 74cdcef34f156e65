"""Finding a program: where it is looked for, which version it is, and what is said without it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wanlat.systems import registry
from wanlat.systems.base import Binary
from wanlat.systems.engine.cache import Cache, Receipt, sha256_of
from wanlat.systems.engine.definition import Install, Program
from wanlat.systems.engine.program import find, go_version, label, read_version
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.errors import MachineError


def program_of(name: str) -> Program:
    if name in registry.tools():
        return registry.tools()[name]
    front = registry.get("minio-nginx").definition.front
    assert front is not None
    return front.program if name == "nginx" else registry.get(name).definition


def script(path: Path, prints: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "prints", "version", "short"),
    [
        ("garage", "garage cargo:2.5.0 [features: k2v]", "2.5.0", "2.5.0"),
        ("garage", "garage git:v2.1.0-3-gabc [features: k2v]", "2.1.0", "2.1.0"),
        ("garage", "a shop for cars", None, None),
        (
            *("minio", "minio version RELEASE.2025-09-07T16-13-09Z (commit-id=07c3a429)"),
            *("RELEASE.2025-09-07T16-13-09Z", "2025-09-07"),
        ),
        ("minio", "minio version DEVELOPMENT.GOGET", None, None),
        ("minio", "hello", None, None),
        ("quorum", "quorum 0.1.0", "0.1.0", "0.1.0"),
        ("quorum", "", None, None),
        ("bob", "bobd 2.1.0-alpha.12", "2.1.0-alpha.12", "2.1.0-alpha.12"),
        ("bob", "hello", None, None),
        ("nginx", "nginx version: nginx/1.22.1 (Ubuntu)", "1.22.1", "1.22.1"),
        ("nginx", "Apache/2.4", None, None),
        ("grpcurl", "grpcurl v1.9.3", "v1.9.3", "v1.9.3"),
        ("grpcurl", "curl 8", None, None),
    ],
)
def test_a_program_is_told_by_what_it_prints(
    tmp_path: Path, name: str, prints: str, version: str | None, short: str | None
) -> None:
    program, path = program_of(name), script(tmp_path / name, prints)
    if version is None:
        with pytest.raises(SystemMissing, match=f"does not look like {program.title}"):
            read_version(program, path)
        return
    assert read_version(program, path) == version
    assert label(program, version) == short


def test_what_is_too_old_or_no_program_is_refused(tmp_path: Path) -> None:
    old = script(tmp_path / "nginx", "nginx version: nginx/1.10.3")
    with pytest.raises(SystemMissing, match=r"1\.15\.3 is the oldest"):
        read_version(program_of("nginx"), old)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(SystemMissing, match="does not tell its version"):
        read_version(program_of("minio"), broken)


def test_a_chart_names_minio_by_its_date() -> None:
    assert label(program_of("minio"), "v0.0.0-20260212201848-7aac2a2c5b7c") == "2026-02-12"


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("garage", "wanlat system install garage"),
        ("minio", "wanlat system install minio"),
        ("quorum", "make build"),
        ("bob", r"no `bobd` on PATH.*github.com/qoollo/bob.*--bobd PATH or WANLAT_BOB_BINARY"),
        ("minio-nginx", "wanlat system install minio"),
        ("service", "name your program in the study"),
        ("grpcurl", "wanlat system install grpcurl"),
    ],
)
def test_an_absent_one_says_how_to_get_it(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way_out: str
) -> None:
    monkeypatch.setenv("WANLAT_BIN_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemMissing, match=way_out) as caught:
        registry.find_tool(name) if name == "grpcurl" else registry.get(name).find()
    assert caught.value.exit_code == 3


def test_the_environment_comes_first_then_the_path_then_the_cache(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    directory = cache.installed("grpcurl", "v1.9.4")
    cached = script(directory / "bin" / "grpcurl", "")
    receipt = Receipt("grpcurl", "v1.9.4", "bin/grpcurl", sha256_of(cached), 1, "", 0, "", [], [])
    receipt.write(directory)
    assert registry.find_tool("grpcurl") == Binary(cached, "v1.9.4", sha256_of(cached))
    on_path = script(tmp_path / "bin" / "grpcurl", "grpcurl v1.9.3")
    assert registry.find_tool("grpcurl").path == on_path
    named = script(tmp_path / "mine", "grpcurl 1.8.0")
    monkeypatch.setenv("WANLAT_GRPCURL_BINARY", str(named))
    assert registry.find_tool("grpcurl") == Binary(named, "1.8.0", sha256_of(named))
    monkeypatch.setenv("WANLAT_GRPCURL_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match=r"WANLAT_GRPCURL_BINARY names .*nothing"):
        registry.find_tool("grpcurl")


def test_a_program_may_lie_beside_its_definition_or_where_it_is_said_to(tmp_path: Path) -> None:
    mine = script(tmp_path / "mine", "mine 1.2.3")
    for install in (Install(path="mine"), Install(path="no-such", also=[str(mine)])):
        found = find(Program(name="mine", install=install), tmp_path)
        assert found == Binary(mine, "1.2.3", sha256_of(mine))


def counted(text: bytes) -> bytes:
    assert len(text) < 128
    return bytes([len(text)]) + text


@pytest.mark.parametrize(
    ("module", "version"), [("example.org/x", "v1.2.3"), ("example.org/other", None)]
)
def test_the_go_linker_s_record_is_read(tmp_path: Path, module: str, version: str | None) -> None:
    record = b"path\texample.org/x\nmod\texample.org/x\tv1.2.3\th1:abc=\n"
    sentinel = b"0123456789abcdef"
    header = b"\xff Go buildinf:" + bytes([8, 2]) + bytes(16)
    binary = tmp_path / "go-program"
    wrong_alignment = b"\xff Go buildinf:" + bytes(3)
    binary.write_bytes(
        (b"\0" * 24 + wrong_alignment).ljust(64, b"\0")
        + header
        + counted(b"go1.26.0")
        + counted(sentinel + record + sentinel)
    )
    assert go_version(binary, f"{module}/cmd") == version


@pytest.mark.parametrize("content", [b"", b"no go here", b"\xff Go buildinf:" + bytes(40)])
def test_a_program_without_that_record_has_no_module_version(
    tmp_path: Path, content: bytes
) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    assert go_version(other, "example.org/x") is None
    assert go_version(Path(sys.executable).resolve(), "example.org/x") is None
