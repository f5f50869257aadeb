"""What must hold in a profile beyond its schema, whatever the engine's version: each rule yields where and what.

Rules read the document, not the model, so that they also run on a file whose schema has problems, and all problems are
shown at once. A value of the wrong type is the schema's business: rules then keep quiet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.errors import Problem
from orchestrator.profile.scalars import boolean_hint, is_ambiguous, number_hint
from orchestrator.profile.short_forms import mount_from, port_from, words_from
from orchestrator.profile.steps import dotted
from orchestrator.profile.yaml_lines import Document, Node, Steps

Finding = tuple[Steps, str]

_TOKEN = re.compile(r"(?:hf_|sk-|ghp_|github_pat_|nvapi-|xox[a-z]-)[A-Za-z0-9_-]{16,}")
_STARTS_NOTHING = ("image", "pull", "runtime", "binary", "command", "args", "flags", "env", "container", "port")


def broken_rules(document: Document) -> tuple[Problem, ...]:
    """Problems by rule, each on the line of what it is about."""
    found = [finding for rule in _RULES for finding in rule(_Given(document))]
    return tuple(_problem(document, steps, message) for steps, message in found)


class _Given:
    """The document's values, absent and null alike None."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def has(self, *steps: str) -> bool:
        node = self.document.find(steps)
        return node is not None and node.content is not None

    def text(self, *steps: str) -> str | None:
        value = self._scalar(steps)
        return value if isinstance(value, str) else None

    def number(self, *steps: str) -> float | None:
        value = self._scalar(steps)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def items(self, *steps: str) -> tuple[Node, ...]:
        node = self.document.find(steps)
        return node.content if node is not None and isinstance(node.content, tuple) else ()

    def entries(self, *steps: str) -> Mapping[str, Node]:
        node = self.document.find(steps)
        return node.content if node is not None and isinstance(node.content, Mapping) else {}

    def at(self, *steps: str) -> str:
        """Where it was written, `file:line`."""
        return str(self.document.place_of(steps))

    @property
    def engine(self) -> str | None:
        return self.text("engine")

    @property
    def is_process(self) -> bool:
        return self.text("runtime") == "process"

    def _scalar(self, steps: tuple[str, ...]) -> Any:
        node = self.document.find(steps)
        return None if node is None or isinstance(node.content, tuple | Mapping) else node.content


def _engine_is_named(given: _Given) -> Iterator[Finding]:
    if not given.has("engine"):
        yield ("engine",), "missing: expected vllm, sglang, llamacpp, generic, endpoint or an installed plugin"


def _what_generic_needs(given: _Given) -> Iterator[Finding]:
    if given.engine != "generic":
        if given.has("command"):
            yield ("command",), "only engine `generic` takes a command of its own: use `flags` or `args`"
        return
    if not given.has("command"):
        yield ("command",), "missing: engine `generic` needs the words that start the server"
    if given.is_process and not given.has("binary"):
        yield ("binary",), "missing: engine `generic` with `runtime: process` needs the program to start"


def _what_endpoint_needs(given: _Given) -> Iterator[Finding]:
    if given.engine != "endpoint":
        for key in ("attach", "attach_container"):
            if given.has(key):
                yield (key,), "only engine `endpoint` attaches to a server that is already there"
        return
    if not given.has("attach"):
        yield ("attach",), "missing: engine `endpoint` needs the URL of the server"
    for key in _STARTS_NOTHING:
        if given.has(key):
            yield (key,), "engine `endpoint` starts nothing, so this has no effect: remove it"
    if given.text("serve", "api_key") == "generate":
        yield ("serve", "api_key"), "a running server's key cannot be generated: write `{secret: NAME}`"
    if given.number("nodes") == 2:
        yield ("nodes",), "engine `endpoint` is one URL: remove it"
    if given.text("expose") == "loopback":
        yield ("expose",), "engine `endpoint` starts nothing, so this has no effect: remove it"


def _what_runtimes_need(given: _Given) -> Iterator[Finding]:
    if given.is_process:
        for key in ("image", "pull", "container"):
            if given.has(key):
                yield (key,), f"`runtime: process` ({given.at('runtime')}) runs without Docker: remove it"
        return
    if given.has("binary") and given.engine != "endpoint":
        yield ("binary",), "only `runtime: process` starts a binary; in an image use `container.entrypoint`"
    if not given.has("image") and given.engine not in {None, "endpoint"}:
        yield ("image",), "missing: expected the Docker image to run (or `runtime: process` for a native binary)"


def _one_memory_setting(given: _Given) -> Iterator[Finding]:
    if given.has("serve", "memory_fraction") and given.has("serve", "memory_gib"):
        other = given.at("serve", "memory_fraction")
        yield ("serve", "memory_gib"), f"memory is given twice, `serve.memory_fraction` at {other}: keep one"


def _room_for_the_prompt(given: _Given) -> Iterator[Finding]:
    longest, output = given.number("serve", "max_model_len"), given.number("serve", "max_output")
    if longest is not None and output is not None and output >= longest:
        other = given.at("serve", "max_model_len")
        what = f"expected less than `serve.max_model_len` ({longest}, {other}), got `{output}`"
        yield ("serve", "max_output"), what


def _whole_speculation(given: _Given) -> Iterator[Finding]:
    if given.entries("serve", "speculative"):
        for key, what in (("method", "how tokens are guessed"), ("num_tokens", "how many tokens are guessed")):
            if not given.has("serve", "speculative", key):
                yield ("serve", "speculative", key), f"missing: expected {what}"
    if given.text("serve", "speculative", "method") == "draft_model" and not given.has("serve", "speculative", "model"):
        yield ("serve", "speculative", "model"), "missing: `draft_model` needs the small model's repository or path"


def _whole_checkpoint(given: _Given) -> Iterator[Finding]:
    if not given.has("serve", "prefix_checkpoint"):
        return
    if not given.has("serve", "prefix_checkpoint", "match_unit"):
        yield ("serve", "prefix_checkpoint", "match_unit"), "missing: expected a number of tokens"
    caching = given.document.find(("serve", "prefix_caching"))
    if caching is not None and caching.content is False:
        yield ("serve", "prefix_checkpoint"), f"prefix caching is off ({caching.place}): remove one of them"


def _one_model(given: _Given) -> Iterator[Finding]:
    model = given.entries("model")
    if given.has("model", "repo") and given.has("model", "path"):
        yield ("model", "path"), f"either `repo` ({given.at('model', 'repo')}) or `path`, not both"
    if model and not given.has("model", "repo"):
        if not given.has("model", "path"):
            yield ("model",), "expected `repo` or `path`"
        for key in ("revision", "file"):
            if given.has("model", key):
                yield ("model", key), "belongs to a hub repository: give `model.repo`"


def _container_agrees(given: _Given) -> Iterator[Finding]:
    if given.has("container", "shm_gib") and given.text("container", "ipc") == "host":
        other = given.at("container", "ipc")
        yield ("container", "shm_gib"), f"has no effect beside `ipc: host` ({other}): remove one of them"
    if given.items("container", "ports") and given.text("container", "network") in {"host", "none"}:
        network, other = given.text("container", "network"), given.at("container", "network")
        yield ("container", "ports"), f"nothing is published with `network: {network}` ({other}): remove one of them"


def _short_forms(given: _Given) -> Iterator[Finding]:
    for index, node in enumerate(given.items("container", "mounts")):
        is_long = {"source", "target"} <= {key for key, _ in _children(node)}
        if is_long or isinstance(node.content, str):
            yield from _tried(("container", "mounts", index), node, mount_from)
    for index, node in enumerate(given.items("container", "ports")):
        if isinstance(node.content, str):
            yield from _tried(("container", "ports", index), node, port_from)
    command = given.document.find(("command",))
    if command is not None and isinstance(command.content, str):
        yield from _tried(("command",), command, words_from)


def _tried(steps: Steps, node: Node, read: Callable[[Any], object]) -> Iterator[Finding]:
    try:
        read(node.plain())
    except ValueError as exc:
        yield steps, str(exc)


def _loopback_is_possible(given: _Given) -> Iterator[Finding]:
    if given.engine != "generic" or given.text("expose") != "loopback" or given.items("container", "ports"):
        return
    command = given.document.find(("command",))
    if command is not None and not re.search(r"127\.0\.0\.1|localhost|\[?::1", str(command.plain())):
        yield ("expose",), "the command does not name 127.0.0.1: gate0 cannot make this server listen there"


def _no_secrets_in_the_open(given: _Given) -> Iterator[Finding]:
    for name, node in given.entries("env").items():
        if isinstance(node.content, str) and _TOKEN.search(node.content):
            yield ("env", name), f"looks like a secret: write `{{secret: {name}}}` and keep the value out of the file"
        reference = node.child("secret")
        if reference is not None and isinstance(reference.content, str) and _TOKEN.fullmatch(reference.content):
            yield ("env", name, "secret"), "looks like the secret itself: expected the name of a variable"
    for key in ("flags", "args", "command"):
        yield from _tokens_below((key,), given.document.find((key,)))


def _tokens_below(steps: Steps, node: Node | None) -> Iterator[Finding]:
    if node is None:
        return
    if isinstance(node.content, str) and _TOKEN.search(node.content):
        yield steps, "looks like a secret: command lines are visible to all; use `env` with `{secret: NAME}`"
    for step, inner in _children(node):
        yield from _tokens_below((*steps, step), inner)


def _clear_json(given: _Given) -> Iterator[Finding]:
    """Inside a JSON-valued flag a word that other YAML readers take for a number or a boolean must be made clear."""
    for name, node in given.entries("flags").items():
        if isinstance(node.content, Mapping):
            yield from _unclear_below(("flags", name), node)


def _unclear_below(steps: Steps, node: Node) -> Iterator[Finding]:
    if node.is_plain and node.written is not None and is_ambiguous(node.written):
        hint = number_hint(node.written) or boolean_hint(node.written) or "write what is meant"
        yield steps, f'`{node.written}` is unclear inside a JSON value: {hint}; as text "{node.written}"'
    for step, inner in _children(node):
        yield from _unclear_below((*steps, step), inner)


def _children(node: Node) -> Iterator[tuple[str | int, Node]]:
    if isinstance(node.content, Mapping):
        yield from node.content.items()
    elif isinstance(node.content, tuple):
        yield from enumerate(node.content)


def _problem(document: Document, steps: Steps, message: str) -> Problem:
    place = document.place_of(steps)
    return Problem(file=place.file, line=place.line, path=dotted(steps), message=message)


_RULES: tuple[Callable[[_Given], Iterator[Finding]], ...] = (
    _engine_is_named,
    _what_generic_needs,
    _what_endpoint_needs,
    _what_runtimes_need,
    _one_memory_setting,
    _room_for_the_prompt,
    _whole_speculation,
    _whole_checkpoint,
    _one_model,
    _container_agrees,
    _short_forms,
    _loopback_is_possible,
    _no_secrets_in_the_open,
    _clear_json,
)
