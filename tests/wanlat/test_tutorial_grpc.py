"""The tutorial, word for word: gRPC."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wanlat.tutorial import follow


@pytest.mark.minutes
def test_it_is_as_the_page_says(tmp_path: Path) -> None:
    follow("gRPC", tmp_path)
