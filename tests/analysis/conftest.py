"""The fixture that makes synthetic bundles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bundles import MakeBundle, write_bundle


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Make a bundle below tmp_path and return its directory; see `write_bundle`."""

    def make(*, name: str = "bundle", **settings: Any) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        write_bundle(directory, **settings)
        return directory

    return make


@pytest.fixture
def few_resamples() -> Iterator[None]:
    """Intervals from 499 resamples: as true, a little coarser, and made in a tenth of the time."""

    from wanlat.analysis.stats import intervals

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "RESAMPLES", 499)
        yield
