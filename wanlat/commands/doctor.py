"""``wanlat doctor``: what this machine lets wanlat do."""

from __future__ import annotations

from dataclasses import asdict

import typer

from wanlat import options as o
from wanlat.output import emit, inform


def doctor(as_json: o.Json = False) -> None:
    """Check this machine, with the fix for what is missing."""
    from wanlat.emulator.doctor import examine

    checks = []
    for check in examine():
        checks.append(check)
        bad, style = ("FAIL", "red") if check.required else ("note", "yellow")
        mark = "ok  " if check.ok else bad
        inform(f"{mark} {check.name}: {check.detail}", style=None if check.ok else style)
        if not check.ok and check.remedy:
            inform(f"     {check.remedy}")
    passed = all(check.ok for check in checks if check.required)
    if as_json:
        verdict = "pass" if passed else "fail"
        emit({"checks": [asdict(check) for check in checks], "verdict": verdict})
    raise typer.Exit(0 if passed else 3)
