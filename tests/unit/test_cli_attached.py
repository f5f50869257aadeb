"""`check` and `sweep`: what the command line says of the server is what the gates hold it to, and keys stay unseen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.cli.attached import Attached, attached_profile
from orchestrator.cli.main import main
from orchestrator.pipeline.claims import claims_of
from orchestrator.pipeline.road import Options
from orchestrator.wire.target import base_url_of
from tests.unit.road_fakes import World

CLOSED = "http://127.0.0.1:1"


@pytest.mark.parametrize("tools", [True, False, None])
def test_what_is_said_of_tools_is_what_the_gates_go_by(tools: bool | None, tmp_path: Path) -> None:
    profile = attached_profile(Attached(url=CLOSED, tools=tools))

    job = World(tmp_path, profile=profile, hosts=(), options=Options(tools=tools)).job()

    assert claims_of(job, None).tools is tools


@pytest.mark.parametrize(
    ("flag", "tools"), [(["--tools"], True), (["--no-tools"], False), ([], None)], ids=["yes", "no", "unsaid"]
)
def test_check_hands_on_what_is_said_of_tools(
    flag: list[str], tools: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Options] = []
    monkeypatch.setattr("orchestrator.pipeline.run.travel", lambda road: seen.append(road.job.options))
    monkeypatch.setattr("orchestrator.cli.commands.run.show_roads", lambda *_: None)

    assert main(["check", "--url", CLOSED, *flag, "--results", str(tmp_path)]) == 0

    assert [options.tools for options in seen] == [tools]


@pytest.mark.parametrize("verb", [["check"], ["sweep", "--workload", "quick"]])
def test_an_unknown_engine_is_the_users_mistake_and_the_known_ones_are_named(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*verb, "--url", CLOSED, "--engine", "foo", "--results", str(tmp_path / "results")])

    err = capsys.readouterr().err
    assert code == 2
    assert "engine foo is not installed" in err
    assert "llamacpp, sglang, vllm" in err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("verb", [["check"], ["sweep", "--workload", "quick"]])
def test_a_container_without_a_host_is_not_silently_left_aside(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*verb, "--url", CLOSED, "--container", "box", "--results", str(tmp_path / "results")])

    assert code == 2
    assert "`--container box` is looked for on a host, and none is named" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2x@127.0.0.1:1",
        "http://me:hunter2x@127.0.0.1:1/v1",
        "me:hunter2x@127.0.0.1:1",
        "http://me:hunter2x/y@127.0.0.1:1",
        "http://me:hunter2x@[::1:1",
        "ftp://me:hunter2x@box",
        "http://hunter2x@127.0.0.1:1",
    ],
)
def test_a_password_in_the_address_is_refused_unseen_and_unwritten(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["check", "--url", url, "--results", str(tmp_path / "results")])

    shown = capsys.readouterr()
    assert code == 2
    assert "--api-key NAME" in shown.err
    assert "hunter2x" not in shown.out + shown.err
    assert not (tmp_path / "results").exists()


def test_an_at_sign_in_the_path_is_no_user() -> None:
    assert base_url_of("http://box:80/@cf/model") == "http://box:80/@cf/model/v1"


@pytest.mark.parametrize("key", ["sk-live-0123456789", "0123", "a b", "A" * 65, "sk.live"])
@pytest.mark.parametrize("verb", [["check"], ["sweep", "--workload", "quick"]])
def test_a_key_given_for_its_name_is_not_shown(
    verb: list[str], key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*verb, "--url", CLOSED, "--api-key", key, "--results", str(tmp_path / "results")])

    shown = capsys.readouterr()
    assert code == 2
    assert "name of an environment variable" in shown.err
    assert key not in shown.out + shown.err


def test_a_query_in_the_address_is_refused_unseen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", "--url", "http://box:1/v1?key=hunter2x", "--results", str(tmp_path / "results")])

    shown = capsys.readouterr()
    assert code == 2
    assert "--api-key NAME" in shown.err
    assert "hunter2x" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((401, '{"error": {"message": "who are you"}}'), ("HTTP 401: who are you", "--api-key NAME")),
        ((403, '{"error": {"message": "not you"}}'), ("HTTP 403: not you", "--api-key NAME")),
        ((404, '{"detail": "Not Found"}'), ("HTTP 404", "OpenAI-compatible")),
        ((503, '{"error": {"message": "Loading model"}}'), ("HTTP 503: Loading model", "still loading")),
        ((200, "<html>a page</html>"), ("does not answer GET /v1/models", "OpenAI-compatible")),
    ],
)
def test_a_server_that_lists_no_models_says_why(
    answer: tuple[int, str], told: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(*answer) as url:
        code = main(["sweep", "--url", url, "--workload", "quick", "--results", str(tmp_path)])

    last = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("error: ", "hint: "))]
    assert code == 3
    assert told[0] in last[0]
    assert told[1] in last[1]


def test_a_key_that_the_server_repeats_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "hunter2x-hunter2x")
    with answering(401, '{"error": {"message": "Incorrect API key: hunter2x-hunter2x"}}') as url:
        code = main(["check", "--url", url, "--api-key", "SERVER_KEY", "--results", str(tmp_path)])

    shown = capsys.readouterr()
    assert code == 3
    assert "Incorrect API key: ***" in shown.err
    assert "hunter2x" not in shown.out + shown.err


@pytest.mark.parametrize("words", [["--slots", "0"], ["--slots", "-3"]])
@pytest.mark.parametrize("verb", [["check"], ["sweep", "--workload", "quick"]])
def test_a_server_runs_one_request_at_least(
    verb: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*verb, "--url", CLOSED, *words, "--results", str(tmp_path / "results")])

    assert code == 2
    assert "'--slots'" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_refused_connection_is_told_from_a_wrong_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["sweep", "--url", CLOSED, "--workload", "quick", "--results", str(tmp_path)])

    err = capsys.readouterr().err
    assert code == 3
    assert "Connection refused" in err
    assert "is the server up?" in err


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """A server that says the same to everything."""

    class Same(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Same) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()
