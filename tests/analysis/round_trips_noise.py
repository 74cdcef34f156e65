"""Latencies with a known number of round trips and the noise of real requests.

data/noise-quorum.csv was measured: two runs of
`wanlat run round-trips --systems quorum --no-capture`, seeds 1 and 2, with the leaderless protocol,
whose every endpoint takes exactly one round trip from a node of five sites. It was on two cores on
which other programs ran, some of the time ten of them. A row a request: run, endpoint, RTT step
(`visit`), the RTT that was measured at that step, and the latency. What is left of the latency
without that one round trip is the store's own time and all that disturbed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RTTS_MS = (0.0, 25.0, 50.0, 100.0, 200.0)
STEPS = 3
SAMPLES = 15
MEASURED_MS = 0.055
"""So much more than the delays that were set is the RTT that calibration measures."""
MEASURED_SIGMA_MS = 0.02
"""And so much it differs from one RTT to the next."""


def recorded(runs: tuple[str, ...]) -> dict[str, list[tuple[float, Values]]]:
    """For each endpoint its RTT steps: the RTT (ms), and the latencies (ms) without it."""
    import pandas as pd

    rows = pd.read_csv(Path(__file__).parent / "data" / "noise-quorum.csv", dtype={"run": str})
    steps: dict[str, list[tuple[float, Values]]] = {}
    for (endpoint, _, _), step in rows[rows["run"].isin(runs)].groupby(
        ["endpoint", "run", "visit"], sort=False
    ):
        own = (step["latency_ms"] - step["rtt_ms"]).to_numpy()
        steps.setdefault(str(endpoint), []).append((float(step["rtt_ms"].iloc[0]), own))
    return steps


NOISE = recorded(("1", "2"))
QUIET = recorded(("1",))
"""During the first run the machine had less to do: one step in fifteen was disturbed, and not
one in three."""


@dataclass(frozen=True)
class Requests:
    """Arrays as `estimate` takes them, and the endpoint whose noise is in them."""

    rtt_ms: Values
    latency_ms: Values
    step: NDArray[np.int_]
    endpoint: str


def requests(
    rng: np.random.Generator,
    round_trips: float,
    *,
    rtts_ms: tuple[float, ...] = RTTS_MS,
    steps: int = STEPS,
    samples: int = SAMPLES,
    noise: dict[str, list[tuple[float, Values]]] = NOISE,
) -> Requests:
    """A study's requests: each RTT step has the noise of one that was recorded, of its kind of RTT.

    Its latencies are drawn from that step's with replacement. What a step without distance has for
    noise, only steps without distance get.
    """
    name = sorted(noise)[int(rng.integers(len(noise)))]
    pools = {near: [own for rtt, own in noise[name] if (rtt < 2) == near] for near in (True, False)}
    measured = {
        rtt: rtt + MEASURED_MS + MEASURED_SIGMA_MS * rng.standard_normal() for rtt in rtts_ms
    }
    levels = np.repeat(rtts_ms, steps)
    rng.shuffle(levels)
    latencies = []
    for rtt in levels:
        pool = pools[bool(rtt < 2)]
        own = pool[int(rng.integers(len(pool)))]
        latencies.append(rtt * round_trips + rng.choice(own, samples))
    return Requests(
        np.repeat([measured[float(rtt)] for rtt in levels], samples),
        np.concatenate(latencies),
        np.repeat(np.arange(levels.size), samples),
        name,
    )
