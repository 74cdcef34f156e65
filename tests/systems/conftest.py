"""Fixtures of the systems' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from systems_doubles import StandInLab, plan_of

from wanlat.systems.engine.cache import Cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """An empty cache that is also the one the environment names."""
    monkeypatch.setenv("WANLAT_CACHE", str(tmp_path / "cache"))
    for name in ("GARAGE", "MINIO", "QUORUM", "BOB", "GRPCURL"):
        monkeypatch.delenv(f"WANLAT_{name}_BINARY", raising=False)
    return Cache.from_environment()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[StandInLab]:
    """Three nodes in one site, without namespaces."""
    made = StandInLab(plan_of(3), tmp_path / "nodes")
    yield made
    made.close()
