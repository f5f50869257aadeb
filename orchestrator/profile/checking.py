"""Check a document against a JSON Schema: every problem at once, on its own line, in our words.

Works for each of our schemas (profile, workload, suite, hosts). jsonschema does the judging; nothing of its wording is
shown. A union (`oneOf`, `anyOf`) is reported by the branch that the value was most likely meant for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from orchestrator.errors import InvalidFile, Problem
from orchestrator.profile.schemas import Schema, inline
from orchestrator.profile.steps import dotted
from orchestrator.profile.wording import did_you_mean, expected, kinds_of, shown, type_hint, unknown_key
from orchestrator.profile.yaml_lines import Document, Steps


def check(document: Document, schema: Schema, file: str) -> tuple[Problem, ...]:
    """All that is wrong with the document, by file and line; empty when it fits.

    Args:
        file: The name for problems of the document as a whole; others name the file that they were written in.
    """
    if document.root.content is None:
        return (Problem(file=file, line=None, path="", message="the file is empty"),)
    errors = _Validator(inline(schema)).iter_errors(document.value)
    found = [problem for error in errors for problem in _problems(error, document)]
    return tuple(in_order(found))


def require(document: Document, schema: Schema, file: str) -> None:
    """
    Raises:
        InvalidFile: `check` found something.
    """
    if problems := check(document, schema, file):
        raise InvalidFile(problems)


def in_order(problems: list[Problem]) -> list[Problem]:
    """Without repetition; by file in order of appearance, then by line."""
    unique = list(dict.fromkeys(problems))
    appearance = {name: index for index, name in enumerate(dict.fromkeys(p.file for p in unique))}
    return sorted(unique, key=lambda p: (appearance[p.file], p.line or 0))


def _whole_number(_checker: object, instance: object) -> bool:
    return isinstance(instance, int) and not isinstance(instance, bool)


def _matches(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    # Python's `$` also matches before a final newline; the manual's patterns do not mean that.
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError("pattern")


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={"pattern": _matches},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _whole_number),
)


def _problems(error: ValidationError, document: Document) -> Iterator[Problem]:
    steps: Steps = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        key = str(error.instance)
        yield _at(document, (*steps, key), f"a name that does not fit: expected {expected(_schema_of(error))}")
    elif error.validator == "additionalProperties":
        for key in _unknown(error):
            yield _at(document, (*steps, key), unknown_key(key, _schema_of(error).get("properties", {})))
    elif error.validator == "required":
        yield from _missing(error, document, steps)
    elif error.validator in {"oneOf", "anyOf"}:
        yield from _union(error, document, steps)
    else:
        yield _at(document, steps, _message(error, document, steps))


def _missing(error: ValidationError, document: Document, steps: Steps) -> Iterator[Problem]:
    properties = _schema_of(error).get("properties", {})
    given: Any = error.instance
    for key in _schema_of(error)["required"]:
        # jsonschema reports each missing key as an error of its own, but names it only in its message.
        if key not in given:
            what = expected(properties[key]) if key in properties else "a value"
            yield _at(document, (*steps, key), f"missing: expected {what}")


def _union(error: ValidationError, document: Document, steps: Steps) -> Iterator[Problem]:
    branch = _meant_branch(error)
    if branch:
        for inner in branch:
            yield from _problems(inner, document)
    else:
        yield _at(document, steps, _type_message(error, document, steps))


def _meant_branch(error: ValidationError) -> list[ValidationError]:
    """Errors of the branch whose type the value has: the one that got furthest, then the one with the fewest errors."""
    ordered = sorted(error.context or (), key=_branch_index)
    branches = [list(group) for _, group in groupby(ordered, key=_branch_index)]
    fitting = [b for b in branches if not any(e.validator in {"type", "const"} and not e.relative_path for e in b)]
    return min(fitting, key=lambda b: (-max(len(e.relative_path) for e in b), len(b))) if fitting else []


def _branch_index(error: ValidationError) -> int:
    return int(error.relative_schema_path[0])


def _message(error: ValidationError, document: Document, steps: Steps) -> str:
    keyword = str(error.validator)
    wanted = _BOUNDS[keyword](error.validator_value) if keyword in _BOUNDS else None
    given: Any = error.instance
    is_count = keyword in {"minItems", "maxItems", "minProperties"} and bool(given)
    found = str(len(given)) if is_count else shown(document.find(steps), _schema_of(error))
    if keyword == "uniqueItems":
        return "an entry is there twice"
    if wanted is not None:
        return f"expected {wanted}, got {found}"
    return _type_message(error, document, steps)


def _type_message(error: ValidationError, document: Document, steps: Steps) -> str:
    schema, node = _schema_of(error), document.find(steps)
    message = f"expected {expected(schema)}, got {shown(node, schema)}"
    if schema.get("x-secret") and not (node is not None and isinstance(node.content, bool)):
        return message
    if error.validator == "enum" and isinstance(error.instance, str):
        near = did_you_mean(error.instance, [str(v) for v in schema["enum"] if v is not None])
        return message + near
    hint = type_hint(node, _kinds(schema))
    return f"{message}: {hint}" if hint else message


def _kinds(schema: Schema) -> tuple[str, ...]:
    branches = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
    return (*kinds_of(schema), *(kind for branch in branches for kind in kinds_of(branch)))


def _unknown(error: ValidationError) -> Iterator[str]:
    schema = _schema_of(error)
    given: Any = error.instance
    for key in given:
        if key not in schema.get("properties", {}) and not any(re.search(p, key) for p in _patterns(schema)):
            yield key


def _patterns(schema: Schema) -> Iterator[str]:
    yield from schema.get("patternProperties", {})


def _schema_of(error: ValidationError) -> Schema:
    return error.schema if isinstance(error.schema, Mapping) else {}


def _at(document: Document, steps: Steps, message: str) -> Problem:
    place = document.place_of(steps)
    return Problem(file=place.file, line=place.line, path=dotted(steps), message=message)


def _or_more(value: Any, thing: str) -> str:
    return f"at least {value} {thing if value == 1 else f'{thing}s'}"


_BOUNDS: Mapping[str, Callable[[Any], str]] = {
    "minimum": lambda v: f"at least {v}",
    "maximum": lambda v: f"at most {v}",
    "exclusiveMinimum": lambda v: f"more than {v}",
    "exclusiveMaximum": lambda v: f"less than {v}",
    "minLength": lambda v: _or_more(v, "character"),
    "maxLength": lambda v: f"at most {v} characters",
    "minItems": lambda v: "at least one entry" if v == 1 else f"at least {v} entries",
    "maxItems": lambda v: f"at most {v} entries",
    "minProperties": lambda v: "at least one entry" if v == 1 else f"at least {v} entries",
}
