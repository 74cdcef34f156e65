"""What a machine that refuses namespaces is told: which setting does, and each way out."""

from __future__ import annotations

import os
import sys

import pytest

from wanlat.emulator import machine

REFUSED = PermissionError(1, "Operation not permitted")


def told(monkeypatch: pytest.MonkeyPatch, uid: int, **settings: str) -> str:
    monkeypatch.setattr(machine, "_sysctl", lambda name: settings.get(name.split(".")[1], ""))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    return machine.explain_sandbox_failure(REFUSED)


def test_ubuntu_has_two_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(monkeypatch, 1000, apparmor_restrict_unprivileged_userns="1")
    assert "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0;" in said
    python = os.path.realpath(sys.executable)
    assert f"profile wanlat {python} flags=(unconfined) {{\\n  userns,\\n}}" in said
    assert "apparmor_parser --replace /etc/apparmor.d/wanlat" in said


@pytest.mark.parametrize(("uid", "value"), [(0, "1"), (1000, "0")])
def test_a_setting_that_forbids_nothing_is_not_named(
    monkeypatch: pytest.MonkeyPatch, uid: int, value: str
) -> None:
    said = told(monkeypatch, uid, apparmor_restrict_unprivileged_userns=value)
    assert "apparmor" not in said and "seccomp" in said


def test_other_settings_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(monkeypatch, 1000, max_user_namespaces="0")
    assert said.endswith("Allow it: sudo sysctl -w user.max_user_namespaces=15000")
