#!/usr/bin/env bash
# nats-server reads `sync_interval: 2m` as two million seconds (23 days), and "2m" as two minutes.
#
# 29 November 2026. Versions: nats-server 2.15.2, Go from PATH.
#
# Guess:   both are two minutes, as Go reads `2m`, or the one without quotes is refused.
# Happens: in its configuration files `m` after a number without quotes is a million, as in sizes;
#          a whole number where a duration belongs is seconds. It prints a line ("should be
#          converted to a duration") and starts with 23 days, as /varz says; only `-t`, its check of
#          a configuration, refuses it.
#
# Output seen:
#   "2m"  checked: valid     in effect: 120 s
#   2m    checked: refused   in effect: 2000000 s
set -euo pipefail
here=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; chmod -R u+w "$here"; rm -rf "$here"' EXIT
GOPATH="$here/go" GOBIN="$here/bin" GOFLAGS=-modcacherw go install github.com/nats-io/nats-server/v2@v2.15.2
port=18231
seen() {
    printf 'listen: "127.0.0.1:-1"\nhttp: "127.0.0.1:%s"\njetstream {\n  store_dir: "%s"\n  sync_interval: %s\n}\n' \
        "$port" "$here/store" "$1" >"$here/nats.conf"
    checked=refused
    "$here/bin/nats-server" -t -c "$here/nats.conf" >"$here/log" 2>&1 && checked=valid
    "$here/bin/nats-server" -c "$here/nats.conf" >"$here/log" 2>&1 &
    server=$!
    python3 - "$port" "$1" "$checked" <<'PYTHON'
import json
import sys
import time
import urllib.request

for _ in range(100):
    try:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/varz", timeout=5)
        break
    except OSError:
        time.sleep(0.1)
interval = json.load(answer)["jetstream"]["config"]["sync_interval"]
print(f"{sys.argv[2]:5} checked: {sys.argv[3]:7}   in effect: {interval / 1e9:.0f} s")
PYTHON
    kill "$server"
    wait "$server" || true
    server=
    port=$((port + 1))
}
for written in '"2m"' 2m; do seen "$written"; done | tee "$here/output"
printf '"2m"  checked: valid     in effect: 120 s\n2m    checked: refused   in effect: 2000000 s\n' | diff - "$here/output"
