"""The mock's switches: documented in one place, read from JSON and from the command line, near names for wrong ones."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.errors import InputError
from orchestrator.mock.presets import PRESETS
from orchestrator.mock.reading import as_text, with_texts, with_values
from orchestrator.mock.settings import Cached, Fault, Flavour, MockSettings, switches
from orchestrator.values import Secret

PLAIN = MockSettings()
NAMES = [f.name for f in fields(MockSettings)]


def test_every_switch_says_what_it_does() -> None:
    assert list(switches()) == NAMES
    assert all(len(says) > 10 for says in switches().values())


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("step_s=1", "step_s", 1.0),
        ("slots=3", "slots", 3),
        ("is_crlf=true", "is_crlf", True),
        ("flavour=sglang", "flavour", Flavour.SGLANG),
        ("fault=hang", "fault", Fault.HANG),
        ("fault=null", "fault", None),
        ("cached=true", "cached", Cached.TRUE),
        ("cached=null", "cached", Cached.NULL),
        ("tokens_pattern=1,4,2", "tokens_pattern", (1, 4, 2)),
        ("tokens_pattern=[1,4]", "tokens_pattern", (1, 4)),
        ("refused_fields=seed,min_tokens", "refused_fields", ("seed", "min_tokens")),
        ("model=42", "model", "42"),
        ("keepalive_text=", "keepalive_text", ""),
        ("prefill_tok_per_s=null", "prefill_tok_per_s", None),
        ("api_key=a=b", "api_key", Secret("api_key", "a=b")),
    ],
)
def test_a_word_of_the_command_line_is_a_switch(text: str, name: str, value: Any) -> None:
    found = getattr(with_texts(PLAIN, [text]), name)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_listed_can_be_set(name: str) -> None:
    text = as_text(getattr(PLAIN, name))

    assert getattr(with_texts(PLAIN, [f"{name}={text.strip(chr(34))}"]), name) == getattr(PLAIN, name)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("stepp_s=1", "no switch 'stepp_s'", "did you mean 'step_s'?"),
        ("step_s", "expected KEY=VALUE", "tokens_per_event=4"),
        ("step_s=soon", "'soon' is not a number", switches()["step_s"]),
        ("slots=2.5", "2.5 is not a whole number", switches()["slots"]),
        ("slots=0", "0 is below 1", switches()["slots"]),
        ("slots=true", "True is not a whole number", switches()["slots"]),
        ("is_crlf=1", "1 is not true or false", switches()["is_crlf"]),
        ("fault=hangs", "'hangs' is none of its words", "did you mean 'hang'?"),
        ("tokens_pattern=1,0", "0 is below 1", switches()["tokens_pattern"]),
        ("ttft_s=-1", "-1.0 is below 0", switches()["ttft_s"]),
        ("ttft_s=null", "None is not a number", switches()["ttft_s"]),
    ],
)
def test_a_wrong_word_is_the_users_mistake(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        with_texts(PLAIN, [text])

    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_is_a_server_unlike_the_plain_one(name: str) -> None:
    assert with_values(PLAIN, PRESETS[name][1]) != PLAIN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "reasonin_tok=4"], "did you mean 'reasoning_tok'?"),
        (["--preset", "thinkin"], "did you mean 'thinking'?"),
        (["--slots", "0"], "slots"),
        (["--port", "99999"], "'--port'"),
        (["--port", "-1"], "'--port'"),
        (["--set", "slots"], "KEY=VALUE"),
    ],
)
def test_the_verb_ends_with_2_and_the_nearest_name(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mock", *words]) == 2

    assert said in capsys.readouterr().err


def test_the_list_has_every_switch_and_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mock", "--list"]) == 0

    lines = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.split()}
    assert lines >= {*NAMES, *PRESETS}


def test_an_address_of_another_machine_is_told_from_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["mock", "--port", str(taken.getsockname()[1])]) == 3
        assert "choose another --port" in capsys.readouterr().err

    assert main(["mock", "--host", "192.0.2.1", "--port", "0"]) == 3
    assert "--host is an address of this machine" in capsys.readouterr().err


def test_ctrl_c_is_how_the_mock_is_meant_to_end() -> None:
    # Where the tests run in the background of a shell, SIGINT is ignored, and children inherit that.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from orchestrator.cli.main import run; run()"
    )
    argv = (sys.executable, "-c", code, "mock", "--port", "0")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            first = serving.stderr.readline()
            serving.send_signal(signal.SIGINT)
            _, rest = serving.communicate(timeout=60)
        finally:
            serving.kill()

    assert first.startswith("mock vllm on http://127.0.0.1:")
    assert (serving.returncode, rest) == (0, "")
