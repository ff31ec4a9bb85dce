"""A git server on the loopback that can misbehave: the first part of a path says how."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

GUARD = f"Basic {b64encode(b'me:se:cret/').decode()}"
PATH = "/usr/local/bin:/usr/bin:/bin"


class GitServer:
    """Serves the repositories below a folder over HTTPS; `address("half", "x")` is one that is cut off half-way.

    Ways: `smart` (as it should be), `old` (gives out branches only), `dumb` (files only), `half`, `silent`, a status
    such as `403`, `guarded` (wants the user `me` with `se:cret/`), `away` (redirects to plain HTTP), and `other`, which
    answers with `stand_ins[commit]`.
    """

    def __init__(self, root: Path, certificate: Path, key: Path) -> None:
        self.root = root
        self.certificate = certificate
        self.stand_ins: dict[str, str] = {}
        self.requests: list[str] = []
        self.commands: list[bytes] = []
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def address(self, way: str, name: str) -> str:
        return f"https://127.0.0.1:{self._server.server_port}/{way}/{name}"

    @property
    def env(self) -> Mapping[str, str]:
        """What a client needs to trust the server."""
        return {"PATH": PATH, "GIT_SSL_CAINFO": str(self.certificate)}

    @contextlib.contextmanager
    def running(self) -> Iterator[GitServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *words: object) -> None:
                """Say nothing: `requests` has them."""

            def do_GET(self) -> None:
                server.answer(self, b"")

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                server.answer(self, self.rfile.read(length) if length else _read_chunks(self))

        return Handler

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        self.requests.append(request.path)
        self.commands += _commands_below(os.getpid())
        way, _, path = urlsplit(request.path).path.lstrip("/").partition("/")
        with contextlib.suppress(OSError):  # The client may have left.
            if way == "silent":
                self.ended.wait()
            elif way.isdigit():
                request.send_error(int(way))
            elif way == "away":
                request.send_response(302)
                request.send_header("Location", f"http://127.0.0.1:1/{path}")
                request.send_header("Content-Length", "0")
                request.end_headers()
            elif way == "guarded" and request.headers.get("Authorization") != GUARD:
                request.send_response(401)
                request.send_header("WWW-Authenticate", 'Basic realm="x"')
                request.send_header("Content-Length", "0")
                request.end_headers()
            elif way == "dumb":
                self._send_file(request, self.root / path)
            else:
                self._run_backend(request, way, path, body)

    def _send_file(self, request: BaseHTTPRequestHandler, path: Path) -> None:
        if not path.is_file():
            request.send_error(404)
            return
        content = path.read_bytes()
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _run_backend(self, request: BaseHTTPRequestHandler, way: str, path: str, body: bytes) -> None:
        for commit, other in self.stand_ins.items() if way == "other" else ():
            body = body.replace(commit.encode(), other.encode())
        env = {
            "PATH": PATH, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": f"/{path}",
            "QUERY_STRING": urlsplit(request.path).query, "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": "" if way == "old" else request.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        printed = subprocess.run(
            ["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=env, check=True
        ).stdout  # fmt: skip
        head, _, content = printed.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        request.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        cut = way == "half" and request.command == "POST" and b"packfile" in content
        request.wfile.write(content[: len(content) // 2] if cut else content)
        request.close_connection = True


def _commands_below(process: int) -> list[bytes]:
    """Return the command lines of what a process has started, and of what that has: other tests' are none of ours."""
    children: dict[int, list[Path]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if words := _read(folder / "stat").rpartition(b")")[2].split():
            children.setdefault(int(words[1]), []).append(folder)
    found, parents = [], [process]
    while parents:
        for folder in children.get(parents.pop(), []):
            found.append(_read(folder / "cmdline"))
            parents.append(int(folder.name))
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # Its process has ended.
        return b""


def _read_chunks(request: BaseHTTPRequestHandler) -> bytes:
    found = b""
    while size := int(request.rfile.readline() or b"0", 16):
        found += request.rfile.read(size)
        request.rfile.readline()
    return found


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for the loopback, with its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
