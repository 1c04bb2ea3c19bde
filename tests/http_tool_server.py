"""The tool server of `tests/tool_server.py` over streamable HTTP, written from the protocol alone."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.tool_server import answer


class HttpToolServer:
    """A server on a thread of its own; requests without its key, if it has one, get status 401."""

    HANGS, CUTS, RAVES, FAILS = 50, 98, 77, 78
    """Days for which it never answers, closes the connection, sends no JSON, and sends status 500."""

    def __init__(self, key: str | None = None, port: int = 0) -> None:
        """Listen on a port; 0: any that is free."""
        self.n_requests = 0
        self._key = key
        self._is_over = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner.n_requests += 1
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if owner._key is not None and self.headers["authorization"] != f"Bearer {owner._key}":
                    return self.reply(401, b"")
                day = request.get("params", {}).get("arguments", {}).get("day")
                match day:
                    case _ if "id" not in request:
                        return self.reply(202, b"")
                    case owner.HANGS:
                        owner._is_over.wait()
                        return None
                    case owner.CUTS:
                        self.close_connection = True
                        return None
                    case owner.RAVES:
                        return self.reply(200, b"<html>It works!</html>")
                    case owner.FAILS:
                        return self.reply(500, b"")
                result = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}
                return self.reply(200, json.dumps(result).encode())

            def do_GET(self) -> None:
                self.reply(405, b"")

            def reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def close(self) -> None:
        """Stop listening."""
        self._is_over.set()
        self._server.shutdown()
        self._server.server_close()
