"""What an application takes for its answers: measured, returned or stored, held to bounds and gates, and compared."""

from __future__ import annotations

from tests.plugin.conftest import MANY, RunPytest

SUITE = """
    import http.client, os, threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            for text in (b"Two ", b"minutes."):
                self.wfile.write(text)
                self.wfile.flush()
        def log_message(self, *args): pass

    @pytest.fixture(scope="session")
    def server():
        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address
        server.shutdown()
        server.server_close()

    def pieces(address):
        connection = http.client.HTTPConnection(*address)
        connection.request("GET", "/")
        response = connection.getresponse()
        while piece := response.read(4):
            yield piece.decode()
        connection.close()

    ROWS = [{"id": f"r{n}", "question": f"{n}?"} for n in range(1, 21)]
    BOUNDS = {"latency": 600, "first_token": 600}

    class TestStream:
        @pytest.fixture
        def rag_respond(self, server):
            def respond(sample):
                yield from pieces(server)
                yield {"contexts": ["It takes two."]}
            return respond
        @pytest.mark.rag_dataset(ROWS[:2], metrics=BOUNDS)
        def test_pieces(self, rag_sample, rag_scores):
            assert (rag_sample.response, rag_sample.retrieved_contexts) == ("Two minutes.", ("It takes two.",))
            assert 0 < rag_scores["first_token"].value <= rag_scores["latency"].value
            assert {it.reason for it in rag_scores.values()} == {"measured around rag_respond"}

    class TestAwaited:
        @pytest.fixture(params=["generator", "returned", "coroutine", "callable"])
        def rag_respond(self, request, server):
            async def stream(sample):
                for piece in pieces(server): yield piece
                yield {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}, "model": "gpt-5.4-mini"}
            async def whole(sample):
                return {"response": "Two minutes.", "cost": 0.0031}
            class Object:
                def __call__(self, sample): return stream(sample)
            return {"generator": stream, "returned": lambda it: stream(it), "coroutine": whole, "callable": Object()}[
                request.param]
        @pytest.mark.rag_dataset(ROWS[:1], metrics=["latency", "cost"])
        def test_cost(self, rag_sample, rag_scores, rag_respond):
            assert rag_sample.response == "Two minutes."
            assert ("first_token" in rag_sample.metadata) == (rag_scores["cost"] != 0.0031)
            assert rag_scores["latency"].reason == "measured around rag_respond"
            assert rag_scores["cost"].reason in ("1,100 tokens of gpt-5.4-mini", "given with the answer")

    class TestOwn:
        @pytest.fixture
        def rag_respond(self):
            slower = float(os.environ.get("SLOWER", 0))
            def respond(sample):
                return {"response": "Two.", "latency": int(sample.user_input[:-1]) / 10 + slower, "cost": 0.002}
            return respond
        @pytest.mark.rag_gate("latency", p95=1.9)
        @pytest.mark.rag_gate("latency", p90=1.7)
        @pytest.mark.rag_gate("latency", p95=3, confidence=0.95)
        @pytest.mark.rag_gate("cost", mean=0.0015)
        @pytest.mark.rag_gate("latency", regression=True)
        @pytest.mark.rag_dataset(ROWS, metrics={"latency": 1.95, "cost": 0.01})
        def test_own(self, rag_sample): pass

    STORED = [{"id": "log", "response": "Two.", "latency": "0.5"}, {"id": "bare", "response": "Two."}]
    @pytest.mark.rag_dataset(STORED, metrics={"latency": 2.0})
    def test_stored(rag_scores):
        assert rag_scores["latency"].reason == "given with the answer"

    TALK = {"id": "talk", "messages": [{"role": "user", "content": text} for text in ("Rain?", "Snow?")]}
    class TestTalk:
        @pytest.fixture
        def rag_respond(self): return lambda sample: {"response": "No.", "latency": float(sample.metadata["turn"])}
        @pytest.mark.rag_dataset([TALK], turns="each", metrics=["latency"])
        def test_turns(self, rag_sample, rag_scores):
            assert rag_scores["latency"].value == rag_sample.metadata["turn"]

    class TestWrong:
        @pytest.fixture
        def rag_respond(self): return lambda sample: iter([7])
        @pytest.mark.rag_dataset(ROWS[:1], metrics=["latency"])
        def test_wrong(self, rag_sample): pass
"""


def test_measured_returned_and_stored(run: RunPytest) -> None:
    first = run("--rag-json=base.json", "--rag-report", "-v", test_it=SUITE)
    first.shows_all(
        "latency 2.00 s > 1.95 s: given with the answer",
        "latency p90 1.80 s > 1.70 s (17 of 20 scores <= 1.7 s): failed",
        "  2.00 s  r20: given with the answer",
        "latency p95 1.90 s <= 3.00 s (20 of 20 scores <= 3 s: 95 % interval 0.83..1.00): inconclusive: too few *",
        "  can never pass: with confidence=0.95 even 20 of 20 gives an interval from 0.83; take 72 rows or p83=",
        "cost mean $0.0020 > $0.0015 (n=20): failed",
        "*row 'bare': latency: latency is missing; rag_respond is timed where it answers the row; give a row that *",
        "*row 'r1': rag_respond yielded an object of type int; it must yield texts, *",
        "latency*s*s*",
        "gate: 95th percentile of latency 1.900 s, needed <= 1.9 s: passed (n 20), *test_own[[]gate-latency-p95-1.9[]]",
        "gate: 95th percentile of latency 1.900 s, needed <= 3 s: inconclusive*interval of the share within it 0.8*",
        "gate: mean cost $0.0020, needed <= $0.0015: failed (n 20), *",
        passed=2 + 4 + 19 + 1 + 1 + 2,
        failed=1 + 3 + 1,
        errors=1,
        skipped=1,
    )
    page = first.text("rag-report.html")
    assert "needs ≤ 1.95 s" in page
    assert "90th percentile of latency</bdi>" in page
    assert "1.800 s" in page or "1.800 s" in page
    # Costs of 0.002 have an axis of their own.
    assert '<span class="ends" aria-hidden="true"><span>$0</span><span>$0.0' in page
    options = ("--rag-baseline=base.json", "--rag-json=out.json", "-k", "TestOwn or TestStream")
    later = run(*MANY, *options, env={"SLOWER": "0.5"})
    later.shows_all(
        "latency (lower is better) 1.05 s -> 1.55 s: 20 of 20 rows got worse, 0 better; *",
        "    +0.50 s  0.10 s -> 0.60 s  *",
        "gate: latency (lower is better) against the baseline 1.050 s -> 1.550 s, needed no proven drop: failed *",
    )
    assert {test["outcome"] for name, test in later.named.items() if "test_pieces" in name} == {"passed"}
