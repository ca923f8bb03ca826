"""A real OpenAI-compatible server for tests: rewrites sums truly, and fails as it is told to."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Plan = Callable[[str, int], str]
"""What to do with the n-th request (from 1) of a problem: "good", or the name of a fault."""

_SUM = re.compile(r"Tom has (\d+) red apples and buys (\d+) more\.")
_PROBLEM = re.compile(r"<problem>\n(.*?)\n</problem>", re.S)


def apples(number: int) -> str:
    """The wording of the problem `number`; no two share both numbers."""
    return (
        f"Tom has {100 + number} red apples and buys {300 + 2 * number} more. "
        "How many apples does Tom have now?"
    )


def reworded(problem: str) -> str:
    """A wording that keeps the answer and passes every check."""
    have, buys = _SUM.match(problem).groups()
    return (
        f"Sara starts the week with {have} pears in her basket. At the market she gets another "
        f"{buys}. What is the size of her collection of pears after that?"
    )


class RewritingServer:
    """Counts requests by problem; `url` is what `--endpoint` takes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = self._at_once = 0
        self.release = threading.Event()
        """Ends every "hang"."""
        self._lock = threading.Lock()
        self._server = _QuietServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        problem = _PROBLEM.search(body["messages"][-1]["content"])[1]
        with self._lock:
            self.requests[problem] += 1
            number = self.requests[problem]
            self.bodies.append(body)
            self.headers.append({"path": handler.path, **handler.headers})
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            self._act(handler, self.plan(problem, number), problem)
        finally:
            with self._lock:
                self._at_once -= 1

    def _act(self, handler: BaseHTTPRequestHandler, action: str, problem: str) -> None:
        good = completion(f"<rewritten>\n{reworded(problem)}\n</rewritten>")
        have = _SUM.match(problem)[1]
        if action == "hang":
            self.release.wait(60)
            handler.close_connection = True
        elif action == "reset":
            handler.close_connection = True
        elif action == "cut body":
            content = json.dumps(good).encode()
            send(handler, 200, content[: len(content) // 2], claimed=len(content))
            handler.close_connection = True
        elif action == "drip":
            send(handler, 200, b"{", claimed=10_000)
            while not self.release.wait(0.05):
                try:
                    handler.wfile.write(b" ")
                    handler.wfile.flush()
                except OSError:
                    return
        elif action == "huge":
            send(handler, 200, b'{"choices": "' + b"x" * (3 * 2**20) + b'"}')
        elif action == "no JSON":
            send(handler, 200, json.dumps(good).encode()[:-7] + b"}")
        elif action == "no choices":
            send(handler, 200, b'{"object": "chat.completion"}')
        elif action == "no text":
            send(handler, 200, json.dumps(completion(None)).encode())
        elif action == "compressed":
            send(handler, 200, b"\x1f\x8b\x08", **{"Content-Encoding": "gzip"})
        elif action.startswith("status"):
            _, status, *after = action.split()
            headers = {"Retry-After": after[0]} if after else {}
            message = f"said by the server, who saw {handler.headers.get('Authorization')}"
            send(handler, int(status), json.dumps({"error": {"message": message}}).encode(),
                 **headers)  # fmt: skip
        elif action == "redirect":
            send(handler, 307, b"", Location="http://127.0.0.1:9/elsewhere")
        else:
            texts = {
                "good": good,
                "bare": completion(reworded(problem)),
                "thinking": completion(
                    f"<think>{have} and more...</think>\n<rewritten>{reworded(problem)}</rewritten>"
                ),
                "length": completion(f"<rewritten>{reworded(problem)[:60]}", "length"),
                "untagged end": completion(f"<rewritten>{reworded(problem)[:60]}"),
                "altered": completion(
                    f"<rewritten>{reworded(problem).replace(have, have + '7')}</rewritten>"
                ),
                "copy": completion(f"<rewritten>{problem}</rewritten>"),
                "solved": completion(f"<rewritten>{reworded(problem)} Hint: add both.</rewritten>"),
                "key": completion(f"<rewritten>{handler.headers['Authorization']}</rewritten>"),
            }
            send(handler, 200, json.dumps(texts[action]).encode())


def completion(text: str | None, end: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": end}],
    }


def send(
    handler: BaseHTTPRequestHandler,
    status: int,
    content: bytes,
    claimed: int | None = None,
    **headers: str,
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content) if claimed is None else claimed))
    handler.end_headers()
    handler.wfile.write(content)
    handler.wfile.flush()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that leave are part of the tests


def _handler(server: RewritingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            try:
                server.answer(self)
            except OSError:  # the client has gone
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(plan: Plan = lambda problem, number: "good") -> Iterator[RewritingServer]:
    server = RewritingServer(plan)
    try:
        yield server
    finally:
        server.close()
