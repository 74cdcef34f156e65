"""Ctrl-C while the command line is still being imported."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from wanlat import start


def test_an_interrupt_during_the_imports_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    importing = builtins.__import__

    def interrupted(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "wanlat":
            raise KeyboardInterrupt
        return importing(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        start.main()
    monkeypatch.undo()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
