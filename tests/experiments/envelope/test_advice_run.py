"""`--advise` on real clusters of the reference store, whose patience is its limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.experiments.commands import document_of, run, study
from wanlat.bundle.documents import Envelopes, Points

pytestmark = pytest.mark.minutes

# The first node that is there leads: so that one takes over, which the reference store has not got.
ELECTED = """schema: 1
name: elected
extends: quorum
leader:
  name: leader
  http: {port: "{ports.health}", path: /healthz}
  where: >-
    not answer.peers | dictsort | selectattr(1) | map('first') | select('lt', node.name) | list
"""
QUICK = """
endpoints: [GetObject, PutObject]
resources: false
max_network_error: 25ms
envelope:
  promise: {deadline: 400ms, rate: 10, share: 80%, window: 400ms, cut: 0ms, recovery: 400ms}
  rtt: {low: 80ms, high: 160ms, precision: 100%}
  settle: 100ms
  fails: 10%
  error: 10%
  kills: 1
"""


def test_a_longer_timeout_holds_farther_and_its_price_is_measured(tmp_path: Path) -> None:
    store, bundle = tmp_path / "elected", tmp_path / "bundle"
    store.mkdir()
    (store / "system.yaml").write_text(ELECTED)
    wanted = ("--systems", f"{store}/", "--advise", "patience=120ms,5s", "--jobs", "2")
    done = run(study(tmp_path, QUICK, rtt="80ms"), *wanted, out=bundle)
    assert done.returncode == 0, done.stderr
    points = document_of(bundle, Points)
    for point in points.points:
        document = document_of(bundle / point.directory, Envelopes)
        (mine,) = document.systems
        assert mine.leads
        assert mine.is_complete
        assert mine.price is not None
        (kill,) = mine.price.kills
        assert (kill.killed, kill.led) == ("n1", "n2")
        assert kill.led_s is not None
        assert kill.answered_s is not None
        assert 0 < kill.led_s < kill.waited_s
        assert 0 < kill.answered_s < kill.waited_s
        assert mine.price.idle_bytes > 0
        assert mine.price.written > 0
        assert (mine.price.lost, mine.price.unread) == (0, 0)
    summary = json.loads((bundle / "summary.json").read_text())["advice"]
    short, usual = summary["choices"]
    assert [short["value_ms"], usual["value_ms"]] == [120, 5000]
    (limit,), (beyond,) = short["limits"], usual["limits"]
    assert (limit["inside"], limit["outside"]) == (80, 160)
    assert (beyond["inside"], beyond["outside"]) == (160, None)
    assert [short["rule_ms"], usual["rule_ms"]] == [120, 5000]
    assert (bundle / "charts" / "advice.png").exists()
