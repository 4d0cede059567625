"""The shared cache against Redis, the S3 server of moto and Azurite, with processes that have folders of their own.

Run by `.ci/remote`, which installs what it takes; not collected with the other tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_ragmetrics.cache.remote import backend_of, open_remote
from tests import backend_contract
from tests.fake_openai import FakeOpenAI
from tests.remote.servers import Server, SlowLine, azure_server, environment_of, free_port, redis_server, s3_server

WORKER = Path(__file__).with_name("worker.py")
KINDS = ("redis", "s3")
ALL = (*KINDS, "azure")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    make, folder = {"redis": redis_server, "s3": s3_server, "azure": azure_server}, tmp_path_factory.mktemp
    with ExitStack() as stack:
        yield {kind: stack.enter_context(start(folder(kind))) for kind, start in make.items()}


@pytest.fixture
def server(servers: dict[str, Server], kind: str, request: pytest.FixtureRequest) -> Server:
    found, name = servers[kind], str(abs(hash(request.node.nodeid)))
    url = found.url if kind == "redis" else f"{found.url}/{name}"
    if kind == "redis":
        asyncio.run(_emptied(url))
    return Server(port=found.port, url=url, process=found.process, environment=found.environment)


async def _emptied(url: str) -> None:
    from redis.asyncio import Redis

    client = Redis.from_url(url)
    await client.flushall()
    await client.aclose()


def start(
    folder: Path,
    server: Server,
    count: int,
    seconds: float = 0.02,
    *,
    url: str = "",
    environment: dict[str, str] | None = None,
    **options: str,
) -> subprocess.Popen[str]:
    """Start a process that asks."""
    given = [f"{name}={value}" for name, value in options.items()]
    command = [sys.executable, str(WORKER), str(folder), url or server.url, str(count), str(seconds), *given]
    found = environment_of(server.environment if environment is None else environment)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=found)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what a process took; it says nothing else, also not at its end."""
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def paid(folder: Path) -> list[str]:
    till = folder / "till"
    return till.read_text("utf-8").splitlines() if till.exists() else []


def await_paid(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    while len(paid(folder)) < count and process.poll() is None:
        time.sleep(0.05)


def forgotten(server: Server) -> dict[str, Any]:
    url, environment = server.behind(free_port())
    return {"url": url, "environment": environment}


@pytest.mark.parametrize("kind", ALL)
def test_servers_do_what_is_agreed(server: Server, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    asyncio.run(backend_contract.parcels(backend_of(server.url)))


@pytest.mark.parametrize("kind", ALL)
def test_two_machines_share_500_prompts(server: Server, kind: str, tmp_path: Path) -> None:
    processes = [start(tmp_path / name, server, 500) for name in "ab"]
    found = [result(process) for process in processes]
    assert [each["right"] for each in found] == [500, 500]
    assert sum(each["asked"] for each in found) == len(paid(tmp_path)) >= len(set(paid(tmp_path))) == 500
    assert sum(each["added"] for each in found) == 500
    assert not any(each["warned"] for each in found)
    third = result(start(tmp_path / "c", server, 500))
    assert (third["asked"], third["found"], third["right"]) == (0, 500, 500)


@pytest.mark.parametrize("kind", KINDS)
def test_read_mode_and_a_server_that_dies(server: Server, kind: str, tmp_path: Path) -> None:
    reading = result(start(tmp_path / "a", server, 5, url_mode="read"))
    assert (reading["asked"], reading["added"], reading["warned"]) == (5, 0, [])
    assert result(start(tmp_path / "b", server, 5))["added"] == 5
    nowhere = forgotten(server)
    lost = result(start(tmp_path / "c", server, 200, 0.0, hasty="yes", **nowhere))
    assert (lost["asked"], lost["right"], len(lost["warned"])) == (200, 200, 1)
    assert "this run goes on with the local cache alone" in lost["warned"][0]


@pytest.mark.parametrize("make", [redis_server, s3_server])
def test_a_server_that_is_killed_in_the_middle(make: Any, tmp_path: Path) -> None:
    with make(tmp_path) as server:
        process = start(tmp_path / "a", server, 400, 0.1, hasty="yes")
        await_paid(tmp_path, 100, process)
        server.process.kill()
        found = result(process)
    assert (found["asked"], found["right"], len(found["warned"])) == (400, 400, 1)
    assert result(start(tmp_path / "a", server, 400))["asked"] == 0


def test_a_wrong_bucket_is_no_endless_miss(servers: dict[str, Server], tmp_path: Path) -> None:
    for mode in ("read", "readwrite"):
        found = result(start(tmp_path / mode, servers["s3"], 20, url="s3://nobody/x", url_mode=mode))
        assert found["asked"] == found["right"] == 20
        assert [text.partition(";")[0] for text in found["warned"]] == [
            "shared cache s3://nobody/x: there is no such bucket or container"
        ]


def test_credentials_that_only_read_read_on(tmp_path: Path) -> None:
    """A Redis user without the right to write finds what is there; one without a password or a full server is said."""
    acl = "--user default on nopass ~* +@all --user fork on >hidden ~* +@read +@connection"
    with redis_server(tmp_path, *acl.split()) as server:
        assert result(start(tmp_path / "a", server, 5))["added"] == 5
        fork = server.url.replace("redis://", "redis://fork:hidden@")
        found = result(start(tmp_path / "b", server, 10, url=fork))
        assert (found["asked"], found["found"], found["added"]) == (5, 5, 0)
        shown = f"shared cache {server.url}"
        assert found["warned"] == [f"{shown}: writing is forbidden; this run goes on and adds nothing to it"]
        wrong = result(start(tmp_path / "c", server, 3, url=fork.replace("hidden", "hiding")))
        (warning,) = wrong["warned"]
        assert warning.startswith(f"{shown}: the server refuses the user or the password; this run goes on")
    with redis_server(tmp_path, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction") as full:
        found = result(start(tmp_path / "d", full, 20))
        said = [text.partition(";")[0] for text in found["warned"]]
        assert (found["right"], said) == (20, [f"shared cache {full.url}: it is full"])
    with redis_server(tmp_path, "--requirepass", "secret") as closed:
        assert "refuses the user or the password" in result(start(tmp_path / "e", closed, 3))["warned"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_run_reads_many_keys_a_request(server: Server, kind: str, tmp_path: Path) -> None:
    result(start(tmp_path / "a", server, 500, 0.0))
    with SlowLine(server.port, 0.01) as line:
        url, environment = server.behind(line.port)
        far = result(start(tmp_path / "b", server, 500, url=url, environment=environment))
        assert (far["asked"], far["found"]) == (0, 500)
        assert 0 < max(line.asked) < 500 / 2
        asked = sum(line.asked)
        local = result(start(tmp_path / "b", server, 500, url=url, environment=environment))
        assert (local["asked"], local["found"], sum(line.asked)) == (0, 0, asked)


SUITE = """
import pytest
from pytest_ragmetrics import assert_faithful

@pytest.mark.parametrize("number", range(12))
def test_it(number):
    assert_faithful(f"The pump needs {number} minutes.", [f"The pump needs {number} minutes to fill."], min=0.0)
"""


def pytest_run(folder: Path, *options: str, environment: dict[str, str]) -> str:
    folder.mkdir()
    (folder / "test_pump.py").write_text(SUITE, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "ragmetrics", "-p", "xdist", "-p", "no:cacheprovider", *options]
    both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=folder, env=environment, timeout=120, check=False, **both)
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


def test_suites_of_two_machines_share(servers: dict[str, Server], tmp_path: Path) -> None:
    url = servers["redis"].url
    asyncio.run(_emptied(url))
    with FakeOpenAI() as judge:
        keys = {"RAGMETRICS_CACHE_SECRET": "hidden", "OPENAI_API_KEY": "sk-fake", "OPENAI_BASE_URL": judge.base_url}
        environment = environment_of(keys)
        environment.pop("PYTEST_ADDOPTS", None)
        options = ["--rag-judge=openai:fake", f"--rag-cache-url={url}"]
        first = pytest_run(tmp_path / "a", "-n2", *options, environment=environment)
        calls = len(judge.requests)
        assert calls > 0
        assert f"shared cache {url}: 0 answers found, {calls} added" in first
        second = pytest_run(tmp_path / "b", "-n2", *options, environment=environment)
        assert len(judge.requests) == calls
        assert f"shared cache {url}: {calls} answers found, 0 added" in second
        pytest_run(tmp_path / "c", *options, "--rag-cache=refresh", environment=environment)
        assert len(judge.requests) == 2 * calls
        gone = f"redis://me:hidden@127.0.0.1:{free_port()}/0"
        lost = pytest_run(tmp_path / "d", "--rag-judge=openai:fake", f"--rag-cache-url={gone}", environment=environment)
        assert "the run went on with the local cache alone" in lost
        assert not any("hidden" in said for said in (first, second, lost))


def test_nothing_is_said_after_the_end(servers: dict[str, Server], tmp_path: Path) -> None:
    """A loop that ends while requests are under way leaves no error of a thread behind."""
    server = servers["s3"]
    for name, value in server.environment.items():
        os.environ[name] = value

    async def main() -> None:
        with SlowLine(server.port, 0.3) as line:
            url, environment = server.behind(line.port)
            os.environ.update(environment)
            remote = open_remote(url)
            asking = asyncio.ensure_future(remote.look([f"{number:064x}" for number in range(64)], lambda _: None))
            await asyncio.sleep(0.1)
            asking.cancel()
            await remote.aclose()

    asyncio.run(main())
