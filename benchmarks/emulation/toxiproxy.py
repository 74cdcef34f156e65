"""toxiproxy: a TCP proxy with a `latency` toxic in each direction, on a loopback of its own.

python -m benchmarks.emulation.toxiproxy BINARY RTT_MS COUNT SECONDS      inside namespaces
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.emulation import contender
from wanlat.topologies.errors import RunFailed

_API_PORT = 8474
_PROXY_PORT = 9000


def _inside(binary: str, rtt_ms: float, count: int, seconds: int) -> None:
    """Serve behind the proxy, ask through it; print what the asking program printed."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    port = contender.PORT if count else contender.IPERF_PORT
    serving = contender.SERVE if count else contender.iperf_server()
    proxy = subprocess.Popen(
        [binary, "-host", "127.0.0.1", "-port", str(_API_PORT)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = subprocess.Popen(serving, stdout=subprocess.DEVNULL)
    try:
        _set_up(port, rtt_ms)
        asking = (
            contender.ask("127.0.0.1", _PROXY_PORT, count)
            if count
            else contender.iperf_client("127.0.0.1", _PROXY_PORT, seconds)
        )
        done = subprocess.run(asking, capture_output=True, text=True, check=False)
    finally:
        for process in (server, proxy):
            process.kill()
            process.wait()
    if done.returncode != 0:
        raise RunFailed(f"{asking[0]} failed: {done.stderr[-500:] or done.stdout[-500:]}")
    sys.stdout.write(done.stdout)


def _set_up(port: int, rtt_ms: float) -> None:
    proxy = {
        "name": "path",
        "listen": f"127.0.0.1:{_PROXY_PORT}",
        "upstream": f"127.0.0.1:{port}",
        "enabled": True,
    }
    _post("/proxies", proxy)
    # Whole milliseconds are all that it takes: an odd RTT is split unevenly, with the same sum.
    there_ms = round(rtt_ms) // 2
    for stream, delay_ms in (("upstream", there_ms), ("downstream", round(rtt_ms) - there_ms)):
        toxic = {"type": "latency", "stream": stream, "attributes": {"latency": delay_ms}}
        _post("/proxies/path/toxics", toxic)


def _post(path: str, body: dict[str, Any]) -> None:
    for attempt in range(100):
        connection = http.client.HTTPConnection("127.0.0.1", _API_PORT, timeout=5)
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            if answer.status >= 300:
                raise RunFailed(f"toxiproxy refused {path}: {answer.read()[:300]!r}")
            return
        except ConnectionRefusedError:
            if attempt == 99:
                raise
            time.sleep(0.05)
        finally:
            connection.close()


if __name__ == "__main__":
    _inside(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
