"""Kinds of studies: each is listed once, and nothing else has to know of it."""

from __future__ import annotations

from typing import Any

import pytest

from wanlat.experiments.config.study import Study
from wanlat.experiments.kinds import KINDS
from wanlat.experiments.kinds.base import SINGLE_REQUESTS
from wanlat.experiments.resume import BATCHES
from wanlat.experiments.run import WORKLOADS
from wanlat.experiments.workloads.requests import Workload

KEYS: dict[str, Any] = {"name": "mine", "topology": "five-sites", "endpoints": ["PutObject"]}


@pytest.mark.parametrize("key", KINDS)
def test_a_key_makes_a_study_one_of_its_kind(key: str) -> None:
    more: dict[str, Any] = {"prefill": {"objects": 5}} if key == "load" else {}
    study = Study.model_validate({**KEYS, **more, key: {}})
    assert type(study.kind) is KINDS[key]
    assert Study.model_fields[key].description == KINDS[key].purpose
    assert Study.model_validate(study.to_dict()) == study
    assert issubclass(WORKLOADS[KINDS[key]], Workload)


def test_a_study_without_such_a_key_is_of_single_requests() -> None:
    assert Study.model_validate(KEYS).kind is SINGLE_REQUESTS


def test_bundles_with_points_are_resumed_by_the_command_that_made_them() -> None:
    assert {kind: batch.command for kind, batch in BATCHES.items()} == {
        "matrix": "run",
        "drills": "drill run",
    }
