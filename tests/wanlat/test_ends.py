"""What is said at the end of a run that is not complete, or whose report is not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.command_line import here
from wanlat import running
from wanlat.experiments.manifest import beginning
from wanlat.experiments.session import Outcome, Recording
from wanlat.running import (
    exit_code,
    heed_interruptions,
    incomplete,
    reporting,
    run_with_progress,
)
from wanlat.systems.engine.progress import elapsed


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (0, "The manifest and the logs are in my own."),
        (3, "What was measured is kept in my own; `wanlat report 'my own'` shows it."),
    ],
)
def test_a_report_is_offered_only_of_what_was_measured(
    measured: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(Path("my own"), measured=measured, planned=9)
    document = incomplete(outcome, f"{measured} of 9. ")
    assert capsys.readouterr().err == f"{measured} of 9. {says}\n"
    assert document["bundle"]["directory"] == "my own"


ENDS = [
    (signal.SIGINT, 130, "interrupted by the user"),
    (signal.SIGTERM, 143, "ended by SIGTERM"),
    (signal.SIGHUP, 129, "ended by SIGHUP"),
]


@pytest.fixture
def handlers() -> Iterator[None]:
    """What this process does on signals is again what it was."""
    before = {number: signal.getsignal(number) for number, _, _ in ENDS}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have started the tests
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    running._received.clear()


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("number", "code", "says"), ENDS)
def test_each_signal_is_called_what_it_is(
    number: int, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = Recording(tmp_path / "mine", {**beginning("study", 1), "study": {"name": "mine"}})
    heed_interruptions()
    ended = run_with_progress(lambda _: recording.run(lambda: os.kill(os.getpid(), number)))
    assert exit_code(ended) == code
    assert says in str(recording.bundle.manifest["reason"])
    incomplete(ended)
    printed = capsys.readouterr().err
    assert f"{says[0].upper()}{says[1:]}" in printed
    assert "the same command begins it again" in printed


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(("number", "code", "says"), ENDS)
def test_so_it_is_where_nothing_was_measured(
    number: int, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Server:
        def serve_forever(self) -> None:
            os.kill(os.getpid(), number)

        def server_close(self) -> None:
            pass

    serve = "wanlat.analysis.view.server.serve"
    monkeypatch.setattr(serve, lambda *_: (Server(), "http://"))
    done = here("view", str(tmp_path))
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_ctrl_c_in_a_report_says_how_to_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, reporting(Path("mine")):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert "All is measured and kept in mine; `wanlat report mine`" in capsys.readouterr().err


def test_a_run_that_failed_names_its_section_of_the_documentation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reason = "The store does not become ready: not ready after 60 s."
    run_with_progress(lambda _: Outcome(Path("mine"), status="failed", reason=reason))
    said = capsys.readouterr().err
    assert f"The run failed: {reason}\nMore: " in said
    assert "fix-it.md#the-store-does-not-become-ready" in said


@pytest.mark.parametrize(
    ("seconds", "said"), [(48, "48 s"), (65, "1 min 05 s"), (13_900, "3 h 51 min")]
)
def test_hours_are_said_as_hours(seconds: float, said: str) -> None:
    assert elapsed(seconds) == said
