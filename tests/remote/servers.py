"""Servers of a shared cache, each as a process: Redis of the system, moto's S3, Azurite; and a slow line to them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

_START = 30.0


@dataclass(kw_only=True, slots=True)
class Server:
    """A server that runs: its port, the URL of an empty cache on it, and what clients need in their environment."""

    port: int
    url: str
    process: subprocess.Popen[bytes]
    environment: dict[str, str] = field(default_factory=dict)

    def behind(self, port: int) -> tuple[str, dict[str, str]]:
        """Return URL and environment of the same cache through another port."""
        old, new = f"127.0.0.1:{self.port}", f"127.0.0.1:{port}"
        environment = {name: value.replace(old, new) for name, value in self.environment.items()}
        return self.url.replace(old, new), environment


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        deadline = time.monotonic() + _START
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            assert process.poll() is None, (folder / "server.log").read_text("utf-8", "replace")
            assert time.monotonic() < deadline, f"{command[0]} does not listen"
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[Server]:
    program = shutil.which("redis-server")
    assert program, "there is no redis-server: apt-get install redis-server"
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *options]
    with _running(command, port, folder) as process:
        yield Server(port=port, url=f"redis://127.0.0.1:{port}/0", process=process)


@contextmanager
def s3_server(folder: Path) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, port, folder) as process:
        given = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        place = {"region_name": "us-east-1", "endpoint_url": f"http://127.0.0.1:{port}"}
        import_module("boto3").client("s3", **given, **place).create_bucket(Bucket="team")
        environment = {name.upper(): value for name, value in given.items()}
        environment |= {"AWS_REGION": place["region_name"], "AWS_ENDPOINT_URL": place["endpoint_url"]}
        yield Server(port=port, url="s3://team/answers", process=process, environment=environment)


# The account that every Azurite has, with its published key.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def azure_server(folder: Path) -> Iterator[Server]:
    program = shutil.which("azurite-blob")
    assert program, "there is no azurite-blob: npm install azurite, and have node_modules/.bin on the PATH"
    port = free_port()
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
    with _running((program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options), port, folder) as process:
        endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        service: Any = import_module("azure.storage.blob").BlobServiceClient
        service(endpoint, credential={"account_name": _ACCOUNT, "account_key": _KEY}).create_container("team")
        environment = {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_ENDPOINT": endpoint,
            "AZURE_ALLOW_HTTP": "true",
        }
        yield Server(port=port, url="az://team/answers", process=process, environment=environment)


class SlowLine:
    """A port whose bytes reach another one, and come back, after a delay in seconds each way."""

    def __init__(self, target: int, delay: float) -> None:
        self.port = 0
        #: How often each connection has asked.
        self.asked: list[int] = []
        self._target, self._delay = target, delay
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._joined, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", self._target)
            self.asked.append(0)
            number = len(self.asked) - 1
            await asyncio.gather(self._passed_on(reader, there[1], number), self._passed_on(there[0], writer))

    async def _passed_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(65_536):
            if number is not None:
                self.asked[number] += 1
            loop.call_later(self._delay, writer.write, data)
        loop.call_later(self._delay, writer.close)


def environment_of(server_environment: dict[str, str], **more: str) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, **server_environment, **more}
