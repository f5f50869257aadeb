"""Placeholders beside JSON: which reading of the braces was meant."""

from __future__ import annotations

import pytest

from orchestrator.foreign.braces import fill, resolve

VALUES = resolve(
    {
        "model": "org/M",
        "n": 3,
        "names": "one two",
        "max-num-seqs": 4,
        "spec": '{"method":"mtp","n":{n}}',
        "doubled": '{{"a":{{"b":1}}}}',
        "mapping": {"a": True},
        "self": "x{self}",
    }
)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("serve {model} -n {max-num-seqs} {names}", "serve org/M -n 4 one two"),
        ("'{spec}'", '\'{"method":"mtp","n":3}\''),
        ("{spec}", '\'{"method":"mtp","n":3}\''),
        ('--x="{spec}"', '--x=\'{"method":"mtp","n":3}\''),
        ("{mapping}", "'{\"a\": true}'"),
        ("'{doubled}'", '\'{"a":{"b":1}}\''),
        ('\'{{"a":{n}}}\' \'{"a":{"b":{n}}}\'', '\'{"a":3}\' \'{"a":{"b":3}}\''),
        ("'{\"a\": {}}'", "'{\"a\": {}}'"),
        ("{unknown} ${NODE_IP} ${n}", "{unknown} ${NODE_IP} ${n}"),
        ("# don't\n  {n} 'a'", "# don't\n  3 'a'"),
        ("'{{bad}'", "'{{bad}'"),
        ("{self}", "x{self}"),
    ],
)
def test_fill(command: str, text: str) -> None:
    assert fill(command, VALUES).text == text


def test_what_was_left_or_changed_is_said() -> None:
    filled = fill("{unknown} '{{\"a\":1}}' {spec} '{{bad}' {n}", VALUES)

    assert filled.missing == ("unknown",)
    assert filled.is_doubled
    assert filled.requoted == ("spec",)
    assert filled.unclear == ("'{{bad}'",)
    assert filled.used == ("spec", "n")


def test_values_that_name_each_other_in_a_circle_end() -> None:
    assert set(resolve({"a": "{b}", "b": "{a}x"})) == {"a", "b"}
