"""What is said at the end of a run that is not complete, or whose report is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from wanlat.experiments.session import Outcome
from wanlat.running import incomplete, reporting, run_with_progress
from wanlat.systems.engine.progress import elapsed


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (0, "The manifest and the logs are in mine."),
        (3, "What was measured is kept in mine; `wanlat report mine` shows it."),
    ],
)
def test_a_report_is_offered_only_of_what_was_measured(
    measured: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(Path("mine"), measured=measured, planned=9)
    document = incomplete(outcome, f"{measured} of 9. ")
    assert capsys.readouterr().err == f"{measured} of 9. {says}\n"
    assert document["bundle"]["directory"] == "mine"


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
