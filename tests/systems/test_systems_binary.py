"""Finding a store's program: the installed one, or the one the environment names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from wanlat.systems import registry
from wanlat.systems.binary import Binary
from wanlat.systems.cache import Cache
from wanlat.systems.errors import SystemMissing
from wanlat.systems.garage import read_version as garage_version
from wanlat.systems.gobuildinfo import main_module_version
from wanlat.systems.minio import label
from wanlat.systems.minio import read_version as minio_version
from wanlat.systems.quorum import read_version as quorum_version
from wanlat.systems.receipt import sha256_of
from wanlat.topologies.errors import MachineError


def script(path: Path, prints: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["garage", "minio"])
def test_an_absent_store_says_how_to_install_it(cache: Cache, name: str) -> None:
    with pytest.raises(SystemMissing, match=f"wanlat system install {name}") as caught:
        registry.get(name).find()
    assert caught.value.exit_code == 3


def test_the_reference_store_says_how_to_build_it(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANLAT_BIN_DIR", str(tmp_path))
    with pytest.raises(SystemMissing, match="make build"):
        registry.get("quorum").find()


def test_the_environment_may_name_another_binary(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = script(tmp_path / "mine", "garage v1.3.1 [features: k2v]")
    monkeypatch.setenv("WANLAT_GARAGE_BINARY", str(mine))
    found = registry.get("garage").find()
    assert found == Binary(mine, "1.3.1", sha256_of(mine), "1.3.1")


def test_a_wrong_setting_is_told_by_its_name(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANLAT_MINIO_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match=r"WANLAT_MINIO_BINARY names .*nothing"):
        registry.get("minio").find()


@pytest.mark.parametrize(
    ("prints", "version"),
    [
        ("garage cargo:2.5.0 [features: bundled-libs, k2v]", "2.5.0"),
        ("garage git:v2.1.0-3-gabc [features: k2v]", "2.1.0"),
    ],
)
def test_garage_version_from_what_it_prints(tmp_path: Path, prints: str, version: str) -> None:
    assert garage_version(script(tmp_path / "garage", prints)) == version


def test_something_else_under_the_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemMissing, match="does not look like Garage"):
        garage_version(script(tmp_path / "garage", "a shop for cars"))
    with pytest.raises(SystemMissing, match="does not look like MinIO"):
        minio_version(script(tmp_path / "minio", "hello"))
    with pytest.raises(SystemMissing, match="does not look like Quorum"):
        quorum_version(script(tmp_path / "quorum", ""))
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(SystemMissing, match="does not tell its version"):
        minio_version(broken)


def test_a_minio_release_says_its_own_version(tmp_path: Path) -> None:
    says = "minio version RELEASE.2025-09-07T16-13-09Z (commit-id=07c3a429)"
    assert minio_version(script(tmp_path / "minio", says)) == "RELEASE.2025-09-07T16-13-09Z"


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("v0.0.0-20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("RELEASE.2025-09-07T16-13-09Z", "2025-09-07"),
        ("DEVELOPMENT.GOGET", "DEVELOPMENT.GOGET"),
    ],
)
def test_a_chart_names_minio_by_its_date(version: str, short: str) -> None:
    assert label(version) == short


def test_the_go_linker_s_record_is_read(tmp_path: Path) -> None:
    def counted(text: bytes) -> bytes:
        assert len(text) < 128
        return bytes([len(text)]) + text

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
    assert main_module_version(binary) == "v1.2.3"


@pytest.mark.parametrize("content", [b"", b"no go here", b"\xff Go buildinf:" + bytes(40)])
def test_a_program_without_that_record_has_no_module_version(
    tmp_path: Path, content: bytes
) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    assert main_module_version(other) is None


@pytest.mark.programs
def test_a_program_of_the_go_toolchain_has_no_module_version() -> None:
    found = shutil.which("gofmt")
    if found is None:
        missing = "Go is not installed (https://go.dev/dl; Debian, Ubuntu: apt-get install golang)"
        assert "go" not in os.environ.get("WANLAT_REQUIRE", "").split(), missing
        pytest.skip(missing)
    assert main_module_version(Path(found)) is None
