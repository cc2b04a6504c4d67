"""A web server of this machine: files with ETag and Range, which can break off or lie."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Site:
    """`asked`: the Range of every request. `cut`: bytes after which an answer breaks off, once.

    `shift`: by how much a part that is sent is another than the one asked for.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    cut: int | None = None
    tags: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    shift: int = 0
    port: int = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def served(files: dict[str, bytes]) -> Iterator[Site]:
    site = Site(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, site)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def answer(request: BaseHTTPRequestHandler, site: Site) -> None:
    name = request.path.lstrip("/")
    wanted = request.headers.get("Range")
    site.asked.append(wanted)
    if name not in site.files:
        request.send_error(404)
        return
    body, tag = site.files[name], site.tags.get(name, f'"{name}"')
    first = 0
    if wanted and site.ranges and request.headers.get("If-Range", tag) == tag:
        first = int(wanted.removeprefix("bytes=").partition("-")[0]) + site.shift
    if first and first >= len(body):
        request.send_response(416)
        request.send_header("Content-Range", f"bytes */{len(body)}")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    request.send_response(206 if first else 200)
    if first:
        request.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
    request.send_header("ETag", tag)
    request.send_header("Content-Length", str(len(body) - first))
    request.end_headers()
    end = len(body) if site.cut is None else site.cut
    site.cut = None
    request.wfile.write(body[first:end])
