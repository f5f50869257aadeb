"""The requests of a cell's file: the fast reader says what a plain one says, and refuses what is no record."""

from __future__ import annotations

import pytest

from orchestrator.records.lines import read_requests
from orchestrator.records.record import RequestRecord

HEAD = '"repeat":0,"index":1,"scheduled_ns":2'


def one(**changes: object) -> RequestRecord:
    return RequestRecord(repeat=0, index=1, scheduled_ns=2, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", one()),
        (',"events":[]', one()),
        (',"events":[[5,1],[7,2]]', one(events=((5, 1), (7, 2)))),
        (',"events":[[5,null],[7,2]]', one(events=((5, None), (7, 2)))),
        (',"events":[[5.9,"2"]]', one(events=((5, 2),))),
        (',"events":[[5,true]]', one(events=((5, 1),))),
        (',"from_a_newer_format":1,"nonce":"n"', one(nonce="n")),
        (',"server":{"ms":NaN_}'.replace("NaN_", "Infinity"), one(server={"ms": float("inf")})),
        (',"error":"half a character \\ud800"', one(error="half a character \ud800")),
        (',"error":"one \u2028 line"', one(error="one \u2028 line")),
    ],
)
def test_a_line_is_a_request(more: str, expected: RequestRecord) -> None:
    found = read_requests(f"{{{HEAD}{more}}}\n\n".encode())

    assert repr(found) == repr((expected,))


@pytest.mark.parametrize(
    "line",
    [
        "{" + HEAD,
        "[1]",
        '{"repeat":0}',
        "{" + HEAD + ',"events":null}',
        "{" + HEAD + ',"events":[[5]]}',
        "{" + HEAD + ',"events":[[null,1]]}',
        "{" + HEAD + ',"events":["ab"]}',
        "{" + HEAD + ',"events":[[5,1],7]}',
    ],
)
def test_what_is_no_request_is_refused(line: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_requests(line.encode())


def test_half_a_character_of_utf_8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        read_requests(b'{"nonce":"\xff"}')
