"""What a build's output says about its progress, and how that is shown."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wanlat.systems.engine.kinds import KINDS, Step
from wanlat.systems.engine.progress import LiveReporter, PlainReporter, elapsed, reporter

CARGO, GO = KINDS["cargo"].progress, KINDS["go"].progress
NOTHING = Step(None, None, "starting")


def test_cargo_counts_its_own_units() -> None:
    line = "    Building [===========>               ] 120/367: tokio, libsodium-sys(build)"
    step = CARGO(line, NOTHING)
    assert step == Step(120, 367, "compiling tokio, libsodium-sys(build)")


def test_cargo_tells_what_it_downloads() -> None:
    step = CARGO("  Downloaded garage v2.5.0", NOTHING)
    assert step == Step(None, None, "downloaded garage v2.5.0")


@pytest.mark.parametrize("line", ["", "   Compiling tokio v1.52.0", "warning: unused"])
def test_other_lines_of_cargo_are_no_news(line: str) -> None:
    assert CARGO(line, NOTHING) is None


def test_go_packages_are_counted_as_they_are_compiled() -> None:
    first = GO("internal/unsafeheader", NOTHING)
    assert first == Step(1, None, "compiling internal/unsafeheader")
    assert first is not None
    second = GO("github.com/klauspost/compress/zstd", first)
    assert second == Step(2, None, "compiling github.com/klauspost/compress/zstd")


def test_go_downloads_are_told_and_not_counted() -> None:
    step = GO("go: downloading github.com/x/y v1.2.3", Step(3, None, ""))
    assert step == Step(3, None, "downloading github.com/x/y v1.2.3")


@pytest.mark.parametrize("line", ["# github.com/minio/minio/cmd", "main.go:3:1: syntax error"])
def test_errors_of_go_are_no_packages(line: str) -> None:
    assert GO(line, NOTHING) is None


def test_plain_lines_come_at_most_once_an_interval() -> None:
    now = [0.0]
    out = io.StringIO()
    plain = PlainReporter(Console(file=out, width=200), every_s=10, clock=lambda: now[0])
    with plain.building("garage 2.5.0") as show:
        for second in range(25):
            now[0] = second
            show(Step(second, 367, "compiling x"))
    assert out.getvalue().splitlines() == [
        "garage 2.5.0: 0 s: 0 of 367, compiling x",
        "garage 2.5.0: 10 s: 10 of 367, compiling x",
        "garage 2.5.0: 20 s: 20 of 367, compiling x",
    ]


def test_a_terminal_gets_a_bar_that_is_gone_afterwards() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    live = reporter(console)
    assert isinstance(live, LiveReporter)
    with live.building("garage 2.5.0") as show:
        show(Step(120, 367, "compiling [tokio]"))
    live.note("done: [x]")
    assert "120/367" in out.getvalue()
    assert "compiling [tokio]" in out.getvalue()
    assert out.getvalue().endswith("done: [x]\n")


def test_a_long_text_leaves_the_count_readable() -> None:
    out = io.StringIO()
    with LiveReporter(Console(file=out, force_terminal=True, width=80)).building("garage") as show:
        show(Step(120, 367, "compiling " + "a-crate-with-a-long-name, " * 10))
    assert "garage" in out.getvalue()
    assert "120/367" in out.getvalue()


def test_no_terminal_gets_plain_lines() -> None:
    assert isinstance(reporter(Console(file=io.StringIO())), PlainReporter)


def test_elapsed_time_is_readable() -> None:
    assert [elapsed(4.4), elapsed(65), elapsed(600)] == ["4 s", "1 min 05 s", "10 min 00 s"]
