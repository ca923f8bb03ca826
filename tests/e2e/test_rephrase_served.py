"""`corl rephrase` against `transformers serve` with a real checkpoint: SmolLM2-135M-Instruct.

CORL_SMOLLM2 names its directory (docs/contributing.md); `pip install "transformers[serving]"`.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from corl.config import PromptsConfig
from corl.diversity.rephrase import EndpointSettings, rephrase

ROOT = Path(__file__).parents[2]
MODEL = Path(os.environ.get("CORL_SMOLLM2", ROOT / "checkpoints" / "smollm2")).absolute()
SERVE = Path(sys.executable).with_name("transformers")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not MODEL.exists(), reason=f"no checkpoint at {MODEL}"),
    pytest.mark.skipif(
        find_spec("fastapi") is None or find_spec("uvicorn") is None,
        reason="transformers serve needs fastapi and uvicorn",
    ),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log.txt"
    with log.open("w") as stream:
        server = subprocess.Popen(
            [SERVE, "serve", str(MODEL), "--host", "127.0.0.1", "--port", str(port),
             "--device", "cpu"],
            stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def test_every_row_is_asked_answered_and_judged(tmp_path, url):
    prompts = tmp_path / "prompts.jsonl"
    rows = [
        {"id": "a", "prompt": "Tom has 3 apples and buys 4 more. How many apples has he now?"},
        {
            "id": "b",
            "prompt": "A train drives 60 miles in 2 hours. How many miles is that an hour?",
        },
    ]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = EndpointSettings(url=url, model=str(MODEL), max_tokens=64, concurrency=2)
    config = PromptsConfig(file=str(prompts))
    outcome = rephrase(config, tmp_path / "new.jsonl", settings, tries=2)
    written = [json.loads(line) for line in outcome.file.read_text().splitlines()]
    assert [row["id"] for row in written] == ["a", "b"]
    _, *records = [json.loads(line) for line in outcome.journal.read_text().splitlines()]
    assert all(one["reply"] for one in records)
    for row, before in zip(written, rows, strict=True):
        assert row["rephrased"] == (row["prompt"] != before["prompt"])
    # Decided rows need no server.
    nobody = EndpointSettings(url="http://127.0.0.1:9/v1", model=str(MODEL), max_tokens=64)
    assert rephrase(config, outcome.file, nobody, tries=2).replies == outcome.replies
    print(outcome.audit.read_text())
