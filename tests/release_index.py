"""A package index on the loopback, for what a folder of wheels cannot say: that a release was yanked."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path


@contextlib.contextmanager
def serving(folder: Path, yanked: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Serve a folder's wheels, those in `yanked` with their reason; yield the settings that make pip ask there."""
    handler = _make_handler(folder, yanked or {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/simple/"
            yield {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": url, "PIP_EXTRA_INDEX_URL": ""}
        finally:
            server.shutdown()
            thread.join()


def _make_handler(folder: Path, yanked: Mapping[str, str]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            body = (folder / name).read_bytes() if name.endswith(".whl") else _page(folder, yanked)
            self.send_response(200)
            self.send_header("Content-Type", "application/zip" if name.endswith(".whl") else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _page(folder: Path, yanked: Mapping[str, str]) -> bytes:
    links = []
    for path in sorted(folder.glob("*.whl")):
        mark = f' data-yanked="{escape(yanked[path.name])}"' if path.name in yanked else ""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        links.append(f'<a href="/files/{path.name}#sha256={digest}"{mark}>{path.name}</a>')
    return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()
