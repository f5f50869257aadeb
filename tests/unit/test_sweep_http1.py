"""HTTP/1.1 without I/O: what is sent, and how an answer is taken apart afterwards."""

from __future__ import annotations

import pytest

from orchestrator.errors import InputError
from orchestrator.sweep.body import OUTPUT_TOK, BodyShape, body_bytes
from orchestrator.sweep.http1 import Exchange, endpoint_of, post_bytes, read_response, response_of
from orchestrator.values import Secret
from orchestrator.wire.parse import load_json

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("url", "authority", "prefix", "is_tls"),
    [
        ("http://spark01:8000/v1", "spark01:8000", "/v1", False),
        ("http://spark01/v1/", "spark01", "/v1", False),
        ("https://spark01/v1", "spark01", "/v1", True),
        ("https://spark01:8443/llm/v1", "spark01:8443", "/llm/v1", True),
        ("http://[fd00::1]:8000/v1", "[fd00::1]:8000", "/v1", False),
        ("http://10.0.0.1:80", "10.0.0.1", "", False),
    ],
)
def test_url_comes_apart(url: str, authority: str, prefix: str, is_tls: bool) -> None:
    endpoint = endpoint_of(url)

    assert (endpoint.authority, endpoint.prefix, endpoint.is_tls) == (authority, prefix, is_tls)


@pytest.mark.parametrize("url", ["spark01:8000", "ftp://spark01", "http://", "http://spark01:99999/v1", ""])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InputError) as refused:
        endpoint_of(url)

    assert refused.value.hint == "expected http://HOST:PORT/v1"


def test_request_is_whole_and_carries_the_key_once() -> None:
    request = post_bytes(endpoint_of("http://h:1/v1"), "/chat/completions", b"{}", api_key=Secret("KEY", "s3cret"))

    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: h:1\r\n")
    assert head.count(b"Authorization: Bearer s3cret") == 1
    assert b"Content-Length: 2" in head
    assert body == b"{}"


@pytest.mark.parametrize("key", ["a\r\nX-Evil: 1", "a\nb", "schlüssel"])
def test_key_that_breaks_a_header_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InputError) as refused:
        post_bytes(endpoint_of("http://h:1/v1"), "/x", b"", api_key=Secret("KEY", key))

    assert "KEY" in str(refused.value)
    assert key not in str(refused.value)


def test_chunked_body_is_the_same_wherever_reads_end() -> None:
    for cut in range(1, len(CHUNKED)):
        response = read_response([(10, CHUNKED[:cut]), (20, CHUNKED[cut:])])

        assert (response.status, response.body, response.is_whole) == (200, b"hello, world", True)


def test_piece_of_a_body_has_the_stamp_of_its_read() -> None:
    at = CHUNKED.index(b"7\r\n")

    response = read_response([(10, CHUNKED[:at]), (20, CHUNKED[at:])])

    assert response.pieces == ((10, b"hello"), (20, b", world"))
    assert response.headers_ns == 10


def test_body_without_its_last_chunk_is_not_whole() -> None:
    assert not read_response([(10, CHUNKED[:-5])]).is_whole


def test_body_of_known_length_is_whole_when_it_is_all_there() -> None:
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\n"

    assert read_response([(1, head + b"oops")]).is_whole
    assert not read_response([(1, head + b"oop")]).is_whole


def test_body_that_ends_with_the_connection_is_whole() -> None:
    response = read_response([(1, b"HTTP/1.1 200 OK\r\n\r\n"), (2, b"abc")])

    assert (response.body, response.is_whole) == (b"abc", True)


def test_interim_answer_is_not_the_answer() -> None:
    response = read_response([(1, b"HTTP/1.1 100 Continue\r\n\r\n"), (2, CHUNKED)])

    assert (response.status, response.headers_ns, response.body) == (200, 2, b"hello, world")


def test_bytes_behind_the_end_are_not_the_answer() -> None:
    for behind in (b"HTTP", b"HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx", b"!"):
        response = read_response([(1, CHUNKED + behind)])

        assert (response.status, response.headers_ns, response.body) == (200, 1, b"hello, world")
        assert response.is_whole


def test_answer_of_a_backend_that_reads_itself_is_taken_as_it_is() -> None:
    own = Exchange(scheduled_ns=0, chunks=[(10, CHUNKED)])
    ready = read_response([(20, CHUNKED)])

    assert response_of(own) == read_response([(10, CHUNKED)])
    assert response_of(Exchange(scheduled_ns=0, response=ready)) is ready


def test_bytes_that_are_not_http_give_no_status() -> None:
    response = read_response([(1, b"SSH-2.0-OpenSSH_9.2\r\n")])

    assert (response.status, response.is_whole) == (0, False)


def test_no_bytes_give_no_status() -> None:
    assert read_response([]).status == 0


SHAPE = BodyShape(endpoint="chat", model="m", length_fields={"ignore_eos": True, "min_tokens": OUTPUT_TOK})


def test_length_fields_pin_the_length_asked_for() -> None:
    body = load_json(body_bytes(SHAPE, [("user", "hi")], 32))

    assert isinstance(body, dict)
    assert (body["max_tokens"], body["ignore_eos"], body["min_tokens"]) == (32, True, 32)
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_natural_length_sends_no_length_fields() -> None:
    shape = BodyShape(endpoint="completions", model="m", ignore_eos=False, length_fields={"ignore_eos": True})

    body = load_json(body_bytes(shape, [("user", "hi")], 32))

    assert isinstance(body, dict)
    assert "ignore_eos" not in body
    assert body["prompt"] == "hi"


def test_stream_options_are_joined_and_the_workloads_fields_win() -> None:
    shape = BodyShape(
        endpoint="chat",
        model="m",
        stream_fields={"stream_options": {"continuous_usage_stats": True}},
        extra={"temperature": 0.7},
    )

    body = load_json(body_bytes(shape, [("user", "hi")], 32))

    assert isinstance(body, dict)
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body["temperature"] == 0.7
