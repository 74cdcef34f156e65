"""The local server of `wanlat view`: bundles below one directory, for one reader on this machine.

It listens on the loopback alone, on a port that the kernel chooses, and answers only who knows the
token in its address, and requests it by that address: a page of somebody else that guesses the port
has neither the token nor the right Host and Origin. It only reads. Pages are made of the bundles'
data, never taken from them, and run no script but ours.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from wanlat.analysis.report import page_of
from wanlat.analysis.report.html import bundles_page, live_page
from wanlat.analysis.view.live import LATEST, Live
from wanlat.bundle import beneath
from wanlat.bundle.errors import BundleError, refusing
from wanlat.bundle.read import read_manifest
from wanlat.bundle.run import MessagesOf

HOST = "127.0.0.1"
DEEPEST = 4
"""So many directories below the given one bundles are looked for."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass
class Shelf:
    """The bundles below a directory, and what was made of them."""

    directory: Path
    messages_of: MessagesOf
    address: str = ""
    """Host and port that readers use."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _pages: dict[Path, tuple[tuple[float, ...], str]] = field(default_factory=dict)
    _lives: dict[Path, Live] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def entries(self) -> list[dict[str, Any]]:
        """Every bundle, the latest first: how a list has it. A damaged one has what is wrong."""
        entries: list[dict[str, Any]] = []
        for path in self._manifests(self.directory, DEEPEST):
            place = path.relative_to(self.directory).as_posix()
            try:
                manifest = read_manifest(path)
            except BundleError as error:
                damage = {"why": str(error), "started": "", "status": "damaged"}
                entries.append({"place": place, **damage})
                continue
            entry = {
                "place": place,
                "why": None,
                "kind": manifest.kind,
                "name": (manifest.subject and manifest.subject.name) or "",
                "systems": ", ".join(system.name for system in manifest.systems or ()),
                "started": manifest.started or "",
                "status": manifest.status,
            }
            entries.append(entry)
        return sorted(entries, key=lambda entry: str(entry["started"]), reverse=True)

    def bundle(self, place: str) -> Path | None:
        """The bundle at a path below the directory; None where there is none, or it leads out."""
        root = self.directory.resolve()
        try:
            path = (root / place).resolve()
            inside = path.is_relative_to(root) and beneath.is_file(path / "manifest.json")
        except (BundleError, OSError, RuntimeError, ValueError):
            return None  # no name of a file, or links in a circle
        return path if inside else None

    def page(self, bundle: Path) -> str:
        """The report of a bundle, made once for each state of its files. Raises BundleError."""
        files = [file for file in bundle.iterdir() if file.is_file()]
        state = tuple(sorted(file.lstat().st_mtime for file in files))
        with self._lock:  # one drawing at a time: a run may be measuring beside us
            if self._pages.get(bundle, ((), ""))[0] != state:
                self._pages[bundle] = (state, page_of(bundle, self.messages_of))
            return self._pages[bundle][1]

    def look(self, bundle: Path) -> dict[str, Any]:
        """How far a run is. Raises BundleError."""
        with self._lock:
            return self._lives.setdefault(bundle, Live(bundle)).look()

    def _manifests(self, directory: Path, depth: int) -> list[Path]:
        if (directory / "manifest.json").is_file():
            return [directory]  # a matrix's points are in its own report
        inner: list[Path] = []
        with suppress(OSError):  # what may not be read holds nothing for us
            inner = [path for path in sorted(directory.iterdir()) if path.is_dir()] if depth else []
        return [
            path
            for child in inner
            if not child.is_symlink()
            for path in self._manifests(child, depth - 1)
        ]


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = "wanlat", ""
    protocol_version = "HTTP/1.1"

    def __init__(self, shelf: Shelf, *given: Any) -> None:
        self.shelf = shelf
        super().__init__(*given)

    def do_GET(self) -> None:
        """Answer, or refuse."""
        token, _, rest = unquote(urlsplit(self.path).path).removeprefix("/").partition("/")
        if (why := self._why_not(token)) is not None:
            return self._refuse(HTTPStatus.FORBIDDEN, why)
        shelf, (what, _, place) = self.shelf, rest.partition("/")
        if what == "":
            return self._answer("text/html", bundles_page(shelf.directory, shelf.entries()))
        report = f"/{token}/report/{quote(place)}"
        routes: Mapping[str, Callable[[Path], tuple[str, str]]] = {
            "report": lambda bundle: ("text/html", shelf.page(bundle)),
            "live": lambda bundle: ("text/html", live_page(bundle, report, LATEST)),
            "look": lambda bundle: ("application/json", json.dumps(shelf.look(bundle))),
        }
        bundle = shelf.bundle(place) if what in routes else None
        if bundle is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such bundle here")
        try:
            with refusing(bundle):
                made = routes[what](bundle)
        except BundleError as error:
            return self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ImportError, MemoryError, OSError) as error:  # of this machine, not of the bundle
            why = f"{type(error).__name__}: {error}"
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, why)
        return self._answer(*made)

    def _why_not(self, token: str) -> str | None:
        """Why this request gets nothing; None for one of our reader's."""
        origins = (None, f"http://{self.shelf.address}")
        if (
            self.headers.get("Host") != self.shelf.address
            or self.headers.get("Origin") not in origins
        ):
            return "this server answers to its own address only"
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "another page asked for it"
        is_known = compare_digest(token.encode(), self.shelf.token.encode())
        return None if is_known else "the token is missing or wrong"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the address has the token in it."""

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer("text/plain", f"{status.phrase}: {why}\n", status)

    def _answer(self, kind: str, text: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    """Answers each reader in a thread of its own."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing of a reader who has left, as browsers do in the middle of a page."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def serve(directory: Path, messages_of: MessagesOf) -> tuple[ThreadingHTTPServer, str]:
    """A server of the bundles below `directory`, which is not running yet, and its address."""
    shelf = Shelf(directory, messages_of)
    server = _Server((HOST, 0), partial(_Handler, shelf))
    shelf.address = f"{HOST}:{server.server_port}"
    return server, f"http://{shelf.address}/{shelf.token}/"
