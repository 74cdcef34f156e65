"""``wanlat doctor``: what this machine lets wanlat do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from wanlat.options import Json
from wanlat.output import emit

if TYPE_CHECKING:
    from wanlat.emulator.doctor import Check


def _show(check: Check) -> None:
    from rich.markup import escape

    from wanlat.output import people

    bad = "[red]FAIL[/]" if check.required else "[yellow]note[/]"
    mark = "[green]ok  [/]" if check.ok else bad
    people.print(f"{mark} {escape(check.name)}: {escape(check.detail)}", soft_wrap=True)
    if not check.ok and check.remedy:
        people.print(f"     {escape(check.remedy)}", soft_wrap=True)


def doctor(as_json: Json = False) -> None:
    """Check this machine, and say how to fix what is missing."""
    from wanlat.emulator.doctor import examine

    checks = []
    for check in examine():
        checks.append(check)
        _show(check)
    passed = all(check.ok for check in checks if check.required)
    if as_json:
        emit(
            {
                "checks": [asdict(check) for check in checks],
                "verdict": "pass" if passed else "fail",
            }
        )
    raise typer.Exit(0 if passed else 3)
