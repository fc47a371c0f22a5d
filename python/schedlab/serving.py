"""Serves one page to this computer: a fixed answer behind a path that cannot be guessed, and nothing else."""

from __future__ import annotations

import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page holds its own scripts and loads nothing from anywhere."""


class PageServer(ThreadingHTTPServer):
    """Listens on the loopback interface only; `url` is the one address that answers."""

    daemon_threads = True

    def __init__(self, page: str, port: int = 0) -> None:
        self.body = page.encode("utf-8", "backslashreplace")
        self.path = f"/{secrets.token_urlsafe(24)}/"
        super().__init__((HOST, port), _Handler)

    @property
    def names(self) -> tuple[str, ...]:
        """What a browser may call this server; any other name is a foreign page that resolved to this computer."""
        return (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")

    @property
    def url(self) -> str:
        return f"http://{self.names[0]}{self.path}"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "schedlab", ""
    timeout = 30

    def do_GET(self) -> None:
        known = self.headers.get("Host", "") in self.server.names
        if not known or not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            self.send_error(404)
            return
        self.send_response(200)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(self.server.body))),
            ("Content-Security-Policy", POLICY),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the address is a secret."""
