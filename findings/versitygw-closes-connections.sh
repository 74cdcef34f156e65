#!/usr/bin/env bash
# versitygw closes the connection after every answer, also to a client of HTTP/1.1 that keeps it.
#
# 29 November 2026. Versions: versitygw 1.8.0, Go from PATH, http.client of Python 3.11.
#
# Guess:   HTTP/1.1 keeps connections unless somebody asks for another thing (RFC 9112, 9.3), and an
#          S3 server does so above all: SDKs have pools for it.
# Happens: each answer has `Connection: close`, and every request of a client far away begins with
#          a handshake: one round trip more, two with TLS. Its flag --keep-alive keeps them.
#
# Output seen:
#   as it comes    3 requests, 3 connections
#   --keep-alive   3 requests, 1 connections
set -euo pipefail
here=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null || true; chmod -R u+w "$here"; rm -rf "$here"' EXIT
GOPATH="$here/go" GOBIN="$here/bin" GOFLAGS=-modcacherw go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
mkdir "$here/data"
port=18241
seen() {
    name=$1
    shift
    ROOT_ACCESS_KEY=key ROOT_SECRET_KEY=secretsecret "$here/bin/versitygw" "$@" --port "127.0.0.1:$port" \
        posix "$here/data" >"$here/log" 2>&1 &
    server=$!
    python3 - "$port" "$name" <<'PYTHON'
import http.client
import sys
import time

connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=5)
connects = 0
connect = connection.connect


def counted() -> None:
    global connects
    connect()
    connects += 1


connection.connect = counted
for _ in range(100):
    try:
        connection.connect()
        break
    except OSError:
        time.sleep(0.1)
for _ in range(3):
    connection.request("GET", "/")  # unsigned: it answers that access is denied
    connection.getresponse().read()
print(f"{sys.argv[2]:14} 3 requests, {connects} connections")
PYTHON
    kill "$server"
    wait "$server" || true
    server=
    port=$((port + 1))
}
{ seen "as it comes"; seen --keep-alive --keep-alive; } | tee "$here/output"
printf 'as it comes    3 requests, 3 connections\n--keep-alive   3 requests, 1 connections\n' | diff - "$here/output"
