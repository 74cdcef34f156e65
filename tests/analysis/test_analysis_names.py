"""Names are short enough for a legend and never ambiguous."""

from __future__ import annotations

import pytest

from wanlat.analysis.bundle import Series
from wanlat.analysis.names import format_ms, series_labels, short_version, shortened


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("2.5.0", "2.5.0"),
        ("v2.5.0", "2.5.0"),
        ("RELEASE.2026-02-12T20-18-48Z", "2026-02-12"),
        ("v0.0.0-20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v1.2.4-0.20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v1.2.3-rc.1.0.20260212201848-7aac2a2c5b7c", "2026-02-12"),
        ("v3.0.0-beta.12345.dirty+build.99", "3.0.0-be…uild.99"),
        ("unknown", "unknown"),
    ],
)
def test_versions_are_shortened_sensibly(version: str, short: str) -> None:
    assert short_version(version) == short


def test_versions_that_shorten_alike_are_written_out() -> None:
    release = Series("minio", "RELEASE.2026-02-12T20-18-48Z")
    pseudo = Series("minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
    labels = series_labels([release, pseudo])
    assert labels[release] == "MinIO RELEASE.2026-02-12T20-18-48Z"
    assert labels[pseudo] == "MinIO v0.0.0-20260212201848-7aac2a2c5b7c"
    assert shortened([release, pseudo]) == []


def test_what_was_shortened_is_given_in_full() -> None:
    series = [Series("garage", "v2.5.0"), Series("minio", "RELEASE.2026-02-12T20-18-48Z")]
    assert shortened(series) == ["MinIO RELEASE.2026-02-12T20-18-48Z"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0512, "0.051"), (2.345, "2.35"), (99.96, "100.0"), (1106.7, "1107"), (None, "–")],
)
def test_milliseconds_have_about_three_digits(value: float | None, text: str) -> None:
    assert format_ms(value) == text
