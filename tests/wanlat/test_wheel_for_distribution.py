"""The wheel that a release uploads: built from the sdist, for an old glibc.

In a file of its own, and from a copy of the checkout, so that it is compiled beside the tests of
the other wheel.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.wanlat.test_wheel import CHECKOUT, succeed

pytestmark = pytest.mark.registry

LEFT_OUT = (
    *(".git", "target", ".venv", "results", "share", "dist", "build", "*.egg-info"),
    *(".*_cache", "__pycache__", ".hypothesis"),  # which tests beside this one write
)
"""What is no source: but for docs/results, which no package holds either."""


def test_the_wheel_for_distribution_needs_no_later_glibc_than_its_tag_says(tmp_path: Path) -> None:
    succeed(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    tools = tmp_path / "venv" / "bin"
    pinned = CHECKOUT / "requirements-release.txt"
    succeed(tools / "pip", "install", "-q", "--require-hashes", "-r", pinned, cwd=tmp_path)
    python = Path(sys.executable)
    made = ("make", "--no-print-directory", "-o", "setup", "sdist", f"BIN={python.parent}")
    copy = tmp_path / "checkout"
    shutil.copytree(CHECKOUT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    said = succeed(*made, cwd=copy)
    succeed(
        *(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path),
        copy / "dist" / said.split()[-1],
        cwd=tmp_path,
        within_s=1800,  # everything is compiled once more: not optimized, which no tag hangs on
        CARGO_PROFILE_RELEASE_OPT_LEVEL="0",
        PATH=f"{tools}:{os.environ['PATH']}",
        WANLAT_TARGET="x86_64-unknown-linux-gnu.2.28",
        CARGO_TARGET_DIR=os.environ.get("CARGO_TARGET_DIR", str(CHECKOUT / "target")),
    )
    (built,) = tmp_path.glob("wanlat-*-py3-none-manylinux_2_28_x86_64.whl")
    shown = " ".join(succeed(tools / "auditwheel", "show", built, cwd=tmp_path).split())
    assert 'the following platform tag: "manylinux_2_28_x86_64"' in shown
    assert "PASSED" in succeed(tools / "twine", "check", "--strict", built, cwd=tmp_path)
