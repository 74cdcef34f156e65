"""Is what nobody removed still there, and what was removed gone?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from wanlat.experiments.asked import Asked
from wanlat.experiments.missing import is_missing
from wanlat.experiments.prefill.model import BUCKET
from wanlat.probes.load import body_seed_of, key_of
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample

SAMPLE = 50
"""Objects of each kind that are looked for."""
_SAMPLE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Found:
    """Of ``kept`` objects that were to stay ``lost`` could not be read as they were written; of
    ``removed`` ones ``still_there`` could. ``example``: what one of the lost ones answered.
    """

    kept: int
    lost: int
    removed: int
    still_there: int
    example: str | None = None


def verify(
    spawn: Spawn,
    header: Header,
    asked: Asked,
    removed: Sequence[int],
    objects: int,
    object_bytes: int,
) -> Found:
    """Read a sample of both, drawn from the seed. Raises ProbeFailed."""
    goes = frozenset(removed)
    stays = [number for number in range(objects) if number not in goes]
    most = min(SAMPLE, max(1, _SAMPLE_BYTES // max(object_bytes, 1)))
    drawn = random.Random(f"{asked.seed}/reclaim/verify")
    chosen = [
        *((number, True) for number in drawn.sample(stays, min(most, len(stays)))),
        *((number, False) for number in drawn.sample(list(removed), min(most, len(removed)))),
    ]
    requests = [
        _reading(place, asked, number, object_bytes) for place, (number, _) in enumerate(chosen)
    ]
    lost: list[str] = []
    still_there = 0

    def on_sample(request: Request, sample: Sample) -> None:
        nonlocal still_there
        if chosen[request.seq][1]:
            if sample.outcome != "ok":
                lost.append(f"{request.key}: {sample.error or sample.outcome}")
        elif not is_missing(sample):
            still_there += 1

    run_requests(spawn, header, requests, on_sample)
    kept = sum(stays for _, stays in chosen)
    return Found(kept, len(lost), len(chosen) - kept, still_there, lost[0] if lost else None)


def _reading(number: int, asked: Asked, index: int, object_bytes: int) -> Request:
    s3 = asked.api == "s3"
    return Request(
        number,
        "prepare",
        "GetObject" if s3 else "Get",
        BUCKET if s3 else None,
        key_of(asked.seed, BUCKET, index, "s3" if s3 else "bob"),
        object_bytes=object_bytes,
        body_seed=body_seed_of(asked.seed, BUCKET, index),
    )
