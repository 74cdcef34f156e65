"""After a removal: what is gone, what is lost, and what nobody has answered."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments.workloads import reclaim
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import Request

THERE = {"outcome": "ok", "sha256": "right", "error": None}
GONE = {"outcome": "fail", "status": 404, "error": "http 404 NoSuchKey"}
WRONG = {"outcome": "fail", "sha256": "other", "error": "checksum mismatch"}
DOWN = {"outcome": "fail", "error": "refused"}
SILENT = {"outcome": "unknown", "error": "timeout (first byte)"}


@pytest.mark.parametrize(
    ("stays", "goes", "lost", "still_there"),
    [
        ([THERE], [GONE], 0, 0),
        ([GONE], [GONE], 1, 0),
        ([WRONG], [GONE], 1, 0),
        ([THERE], [THERE], 0, 1),
        ([THERE], [WRONG], 0, 1),
        ([SILENT, DOWN, THERE], [DOWN, SILENT, GONE], 0, 0),  # it answers the third time
        ([SILENT] * 3, [SILENT] * 3, 1, 0),  # what nobody answered is not "still there"
    ],
)
def test_only_an_answer_says_that_an_object_is_lost_or_still_there(
    stays: list[Any], goes: list[Any], lost: int, still_there: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {0: iter(stays), 1: iter(goes)}

    def answered(_spawn: Any, _header: Any, requests: Iterable[Request], on_sample: Any) -> None:
        for request in requests:
            fields = {"status": None, "grpc_status": None, "sha256": None}
            on_sample(request, SimpleNamespace(**fields | next(answers[request.seq])))

    monkeypatch.setattr(reclaim, "run_requests", answered)
    monkeypatch.setattr(reclaim, "_PAUSE_S", 0.0)
    workload: Any = SimpleNamespace(
        _result=SimpleNamespace(object_bytes=64),
        prepared=SimpleNamespace(seed=1),
        _api=ObjectApi.over("s3"),
    )
    unused: Any = None
    found = reclaim.ReclaimWorkload._read_samples(workload, unused, unused, removed=[1], kept=[0])
    assert (found.kept, found.removed) == (1, 1)
    assert (found.lost, found.still_there) == (lost, still_there)
    assert (found.example is not None) == bool(lost)
