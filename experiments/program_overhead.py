"""What a program that makes the requests adds to each: its own share, without a network.

It has to do nothing, as often as that takes to know it, before anything is measured.
"""

from __future__ import annotations

from dataclasses import replace

from wanlat.bundle.documents import ProgramOverhead
from wanlat.bundle.write import BundleWriter
from wanlat.probes.header import Header
from wanlat.probes.oneshot import ProbeFailed, run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.protocols.exec import ExecHeader
from wanlat.probes.records import Sample

_WARMUP, _REQUESTS = 20, 200


def note_overhead(spawn: Spawn, header: Header, bundle: BundleWriter, system: str) -> None:
    """Measure it, and write it into the manifest; nothing where no program makes the requests.

    Raises ProbeFailed where the program does not answer.
    """
    if not isinstance(header, ExecHeader):
        return
    took_ns: list[int] = []

    def take(_: Request, sample: Sample) -> None:
        if sample.total_ns is None or sample.outcome != "ok":
            raise ProbeFailed(f"The program of system {system}, told to do nothing: {sample.error}")
        took_ns.append(sample.total_ns)

    idle = (Request(seq, "warmup", "nothing", request={}) for seq in range(_WARMUP + _REQUESTS))
    run_requests(spawn, replace(header, connection="keep-alive"), idle, take)
    counted = sorted(took_ns[_WARMUP:])
    overhead = ProgramOverhead(
        command=header.command,
        n=len(counted),
        median_ms=counted[len(counted) // 2] / 1e6,
        p99_ms=counted[len(counted) * 99 // 100] / 1e6,
    )
    before = bundle.manifest.get("program_overhead", {})
    bundle.write_manifest(program_overhead={**before, system: overhead.model_dump()})
