"""`corl rephrase` against a real HTTP server that fails in every way a server can."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from corl.config import PromptsConfig
from corl.data.prompts import align, load_prompts
from corl.diversity.rephrase import EndpointError, EndpointSettings, rephrase
from corl.errors import CheckpointError, PromptError

KEY = "sk-very-secret"


def problem(place: int) -> str:
    return f"A farmer has {place + 10} cows and buys 7 more of them. How many does he own now?"


def rewritten(place: int) -> str:
    return (
        f"After getting 7 further animals, what is the size of a herd that had {place + 10} cows?"
    )


class Server:
    """Answers prompt N by `plan(N, attempt)`: a name of a fault, or a text."""

    def __init__(self, plan, *, delay: float = 0.0) -> None:
        self.asked: Counter[int] = Counter()
        self.keys: set[str | None] = set()
        self.most_at_once = self._at_once = 0
        self._plan, self._delay, self._lock = plan, delay, threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server._answer(self, body)

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request, client_address) -> None:
                pass  # clients that leave are part of the tests

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def _answer(self, handler, body) -> None:
        said = body["messages"][-1]["content"]
        place = int(said.partition("has ")[2].split()[0]) - 10
        with self._lock:
            self.asked[place] += 1
            attempt = self.asked[place]
            self.keys.add(handler.headers.get("Authorization"))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            time.sleep(self._delay)
            self._send(handler, self._plan(place, attempt), place)
        except OSError:
            pass  # the client has left
        finally:
            with self._lock:
                self._at_once -= 1

    def _send(self, handler, fault: str, place: int) -> None:
        content = json.dumps(
            {
                "choices": [
                    {
                        "message": {"content": f"<rewritten>{rewritten(place)}</rewritten>"},
                        "finish_reason": "length" if fault == "length" else "stop",
                    }
                ]
            }
        ).encode()
        status, headers, declared = 200, {}, None
        if fault == "slow":
            time.sleep(1.5)
        elif fault == "429":
            status, headers, content = 429, {"Retry-After": "0.2"}, b'{"error": "too many"}'
        elif fault == "500":
            status, content = 500, b"oops"
        elif fault == "400":
            status, content = 400, json.dumps({"error": {"message": f"no {KEY} here"}}).encode()
        elif fault == "401":
            status, content = 401, b'{"error": "wrong key"}'
        elif fault == "not json":
            content = b'{"choices": [{"message": '
        elif fault == "other json":
            content = b'{"choices": []}'
        elif fault == "cut":
            declared, content = len(content), content[: len(content) // 2]
        elif fault == "wrong number":
            content = content.replace(b" 7 further", b" 8 further")
        elif fault == "copy":
            content = json.dumps(
                {"choices": [{"message": {"content": problem(place)}, "finish_reason": "stop"}]}
            ).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(declared or len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        if declared:
            handler.close_connection = True

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def serve():
    """Start servers by their plan; they end with the test."""
    started: list[Server] = []

    def start(plan=lambda place, attempt: "fine", **options) -> Server:
        started.append(Server(plan, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def prompts(tmp_path):
    """Write a prompt file of so many rows with ids, labels and a field of their own."""

    def write(rows: int) -> PromptsConfig:
        lines = [
            {"id": f"p{place}", "prompt": problem(place), "answer": str(place + 17), "level": place}
            for place in range(rows)
        ]
        file = tmp_path / "prompts.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return PromptsConfig(file=str(file))

    return write


def settings(server: Server, **changes) -> EndpointSettings:
    return EndpointSettings(
        **{"url": server.url, "model": "m", "timeout": 1.0, "first_backoff": 0.02, "key": KEY,
           "concurrency": 4, **changes}
    )  # fmt: skip


def output(tmp_path: Path) -> list[dict]:
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


FAULTS = ("slow", "429", "500", "not json", "other json", "cut", "length", "wrong number", "copy")


def test_no_fault_loses_a_row_and_the_order_stays(tmp_path, prompts, serve):
    """Every row meets one fault at its first attempt."""
    server = serve(lambda place, attempt: FAULTS[place % 9] if attempt == 1 else "fine")
    config = prompts(27)
    outcome = rephrase(config, tmp_path / "out.jsonl", settings(server))
    rows = output(tmp_path)
    assert [row["id"] for row in rows] == [f"p{place}" for place in range(27)]
    assert [row["prompt"] for row in rows] == [rewritten(place) for place in range(27)]
    assert [row["level"] for row in rows] == list(range(27))
    assert [row["answer"] for row in rows] == [str(place + 17) for place in range(27)]
    assert {row["rephrased"] for row in rows} == {True}
    assert outcome.rewritten == outcome.rows == 27
    assert all(count == 2 for count in server.asked.values())
    files = [load_prompts(config), load_prompts(PromptsConfig(file=str(outcome.file)))]
    aligned = align({"left": files[0], "right": files[1]})
    assert aligned["right"].rows[3].text == rewritten(3)


def test_a_row_that_never_passes_keeps_its_words_and_says_so(tmp_path, prompts, serve):
    server = serve(lambda place, attempt: {1: "wrong number", 2: "400"}.get(place, "fine"))
    outcome = rephrase(prompts(4), tmp_path / "out.jsonl", settings(server), tries=3)
    rows = output(tmp_path)
    assert [row["rephrased"] for row in rows] == [True, False, False, True]
    assert rows[1]["prompt"] == problem(1)
    assert server.asked[1] == 3
    page = outcome.audit.read_text()
    assert "4 prompts, 2 rewritten, 2 kept" in page and "numbers" in page
    with pytest.raises(PromptError, match="2 of 4 prompts have no rewrite"):
        rephrase(prompts(4), tmp_path / "all.jsonl", settings(server), require_all=True)
    assert not (tmp_path / "all.jsonl").exists()


def test_a_second_start_asks_for_nothing(tmp_path, prompts, serve):
    server = serve(delay=0.05)
    rephrase(prompts(5), tmp_path / "out.jsonl", settings(server, concurrency=2))
    assert server.most_at_once == 2
    before, first = server.asked.total(), output(tmp_path)
    rephrase(prompts(5), tmp_path / "out.jsonl", settings(server, concurrency=4))
    assert server.asked.total() == before == 5
    assert output(tmp_path) == first


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_what_was_recorded_is_never_asked_again(tmp_path, prompts, serve, signal_number):
    server = serve(delay=0.15)
    config = prompts(24)
    command = [
        sys.executable, "-m", "corl.cli", "rephrase", config.file,
        "--to", str(tmp_path / "out.jsonl"), "--endpoint", server.url, "--model", "m",
        "--api-key-env", "TEST_KEY", "--concurrency", "3",
    ]  # fmt: skip
    journal = tmp_path / "out.journal.jsonl"
    environment = {**os.environ, "TEST_KEY": KEY}
    job = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not journal.exists() or journal.read_bytes().count(b"\n") < 8:
        assert job.poll() is None, job.stdout.read()
        time.sleep(0.01)
    job.send_signal(signal_number)
    job.wait()
    if signal_number == signal.SIGKILL:
        with journal.open("ab") as stream:
            stream.write(b'{"row": 3, "id": "p3", "try"')  # a line that the kill cut short
    recorded = {
        json.loads(line)["row"]
        for line in journal.read_bytes().split(b"\n")[1:]
        if line.endswith(b"}")
    }
    assert 0 < len(recorded) < 24 and not (tmp_path / "out.jsonl").exists()
    before = dict(server.asked)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "24 of 24 prompts rewritten" in done.stdout
    assert {place: server.asked[place] for place in recorded} == {
        place: before[place] for place in recorded
    }
    # What was under way at the kill, and no more, is asked twice; Ctrl-C waits for it.
    twice = sum(count > 1 for count in server.asked.values())
    assert twice <= (3 if signal_number == signal.SIGKILL else 0)
    assert [row["prompt"] for row in output(tmp_path)] == [rewritten(place) for place in range(24)]


def test_the_key_is_sent_and_stands_nowhere(tmp_path, prompts, serve):
    server = serve(lambda place, attempt: "400" if place == 0 else "fine")
    rephrase(prompts(3), tmp_path / "out.jsonl", settings(server))
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in repr(settings(server))
    for file in tmp_path.iterdir():
        assert KEY not in file.read_text()


@pytest.mark.parametrize("fault", ["401", "500"])
def test_an_endpoint_that_answers_nobody_is_an_error_and_no_verdict(
    tmp_path, prompts, serve, fault
):
    server = serve(lambda place, attempt: fault)
    config = prompts(30)
    with pytest.raises(EndpointError, match="status"):
        rephrase(config, tmp_path / "out.jsonl", settings(server, attempts=2))
    assert not (tmp_path / "out.jsonl").exists()
    healthy = serve()
    rephrase(config, tmp_path / "out.jsonl", settings(healthy))
    assert {row["rephrased"] for row in output(tmp_path)} == {True}


def test_retry_after_is_honoured_and_the_rate_is_kept(tmp_path, prompts, serve):
    server = serve(lambda place, attempt: "429" if attempt == 1 and place == 0 else "fine")
    started = time.monotonic()
    rephrase(prompts(4), tmp_path / "out.jsonl", settings(server, concurrency=1, per_minute=600))
    assert time.monotonic() - started >= 0.2 + 4 * 0.1 - 0.1
    assert server.asked == {0: 2, 1: 1, 2: 1, 3: 1}


def test_a_journal_of_another_job_is_refused(tmp_path, prompts, serve):
    server = serve()
    rephrase(prompts(3), tmp_path / "out.jsonl", settings(server))
    with pytest.raises(CheckpointError, match="rewriter"):
        rephrase(prompts(3), tmp_path / "out.jsonl", settings(server, model="other"))
    with pytest.raises(CheckpointError, match="rows"):
        rephrase(prompts(4), tmp_path / "out.jsonl", settings(server))
    with pytest.raises(PromptError, match="overwrite"):
        rephrase(prompts(3), tmp_path / "prompts.jsonl", settings(server))


@pytest.mark.parametrize("url", ["ftp://x/v1", "http://", "http://user:pass@host/v1", "nothing"])
def test_a_url_that_is_none_is_refused(tmp_path, prompts, url):
    with pytest.raises(EndpointError):
        rephrase(prompts(1), tmp_path / "o.jsonl", EndpointSettings(url=url, model="m"))


def test_a_local_checkpoint_rewrites_what_it_can(tmp_path, prompts):
    """The shipped model only reckons: every row keeps its words, and none is lost."""
    from corl.diversity.rephrase import LocalSettings
    from tiny_models import build_checkpoint

    model = build_checkpoint(tmp_path / "model", "llama")
    local = LocalSettings(model=Path(model), max_tokens=8)
    outcome = rephrase(prompts(3), tmp_path / "out.jsonl", local, tries=2)
    assert [row["prompt"] for row in output(tmp_path)] == [problem(place) for place in range(3)]
    assert outcome.replies == 6 and outcome.rewritten == 0
