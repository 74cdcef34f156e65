"""The tutorial, word for word: S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wanlat.tutorial import follow, parts


@pytest.mark.minutes
def test_it_is_as_the_page_says(tmp_path: Path) -> None:
    follow("S3", tmp_path)


def test_every_part_of_the_page_is_followed() -> None:
    assert [*parts()] == ["S3", "gRPC", "Anything else"]
