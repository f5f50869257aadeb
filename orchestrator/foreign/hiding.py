"""Which names stand for secrets, and texts with their values hidden."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.values import Json, read_json

MASK = "***"
MIN_SECRET = 4
"""Shorter values (`1`, `no`) stand elsewhere too: replacing them would hide nothing."""
_VARIABLE_NAME = re.compile(r"(?:^|_)(?:KEY|ACCESS_?KEY)(?:_ID)?$", re.I)
"""What a variable, other than a flag or a JSON key, may not be called openly: `MY_KEY`."""
_SECRET_NAME = re.compile(
    r"(?:password|passwd|passphrase|secret)s?$"
    r"|(?:^|_)(?:pass|pwd|credentials?|authorization)(?:_id)?$"
    r"|(?:^|_)(?:api|secret|access|private|auth|account|encryption|signing)_?keys?(?:_id)?$"
    r"|(?:^|_)(?:hf|hub|api|auth|access|bearer|refresh|session)_?tokens$|(?:^|_)hft$"
)
_TOKEN = re.compile(r"(?:^|_)([a-z0-9]*)_?token(?:_id)?$")
_VOCABULARY = re.compile(
    "bos|eos|pad|unk|sep|cls|mask|image|img|video|audio|vision|start|end|stop|special|new|max|min|per|thinking"
    "|reasoning|think|begin|first|last|next|prev|draft|from|tool|sot|eot|eom|boi|eoi|noise|placeholder"
)
"""Before `token` these tell of text, not of keys: `pad_token`, `max_new_token`."""
_SWITCH = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off", "null", "none"})
_KEY_WORD = re.compile(r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{16,})")
_PASSWORD = r"(?:[^\s/?#\"']{0,400}|(?!\d{1,5}[/?#])[^\s@\"']{0,400})"
"""To the last `@` before the path; without one there a slash in it, where no port stands. Bounded: time is linear."""
_USERINFO = re.compile(
    rf"\b((?:[a-z][a-z0-9+.-]{{0,20}}\+)?https?://)([^\s/@:?#\"']{{1,400}}(?::{_PASSWORD})?|:{_PASSWORD})@"
    rf"|\b([a-z][a-z0-9+.-]{{0,20}}://)([^\s/@:?#\"']{{0,400}}:{_PASSWORD})@",
    re.I,
)
_ASSIGNED = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)=(\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_FLAGGED = re.compile(r"(?<![\w-])(-{1,2}[A-Za-z][\w.-]*)(=|[\"']?,?\s+[\"']?(?!-))(\"[^\"]*\"|'[^']*'|[^\s\"']+)")
_KEYED = re.compile(r"(\\{0,8}[\"'])([\w.-]+)(\1\s*:\s*)((\\{0,8}[\"']).*?(?<!\\)\5|[^\s\"'{\[,}\\]+)")
_LED = re.compile(r"^([ \t-]*)([A-Za-z_][\w.-]*)(:[ \t]+)([^\s{].*)$", re.MULTILINE)
_IN_FLOW = re.compile(r"([{,]\s*)([A-Za-z_][\w.-]*)(:\s+)([^\s\"'{\[,}]+)")


def is_secret_key(name: str) -> bool:
    """True for a flag or a JSON key that by its name holds a secret: `--hf-token`, `redis.password`, `apiKey`.

    `max_num_batched_tokens`, `tokenizer`, `pad_token`, `key` and `api_key_file` hold none.
    """
    last = name.lstrip("-").rstrip("+").rpartition(".")[2].replace("-", "_")
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    token = _TOKEN.search(plain)
    return _SECRET_NAME.search(plain) is not None or (token is not None and _VOCABULARY.fullmatch(token[1]) is None)


def is_secret_name(name: str) -> bool:
    """True for a variable that by its name holds a secret: `HF_TOKEN`, `VLLM_API_KEY`, `DB_PASSWORD`."""
    return _VARIABLE_NAME.search(name) is not None or is_secret_key(name)


def is_secret(name: str, value: str) -> bool:
    """True when a variable's value must not be shown: by its name, and more than a switch's value, or by itself."""
    return (is_secret_name(name) and not is_switch(value)) or bool(cleaned(value).secrets)


def is_switch(value: str) -> bool:
    """True for a value that says yes or no, or nothing."""
    return value.lower() in _SWITCH


def is_literal(value: str) -> bool:
    """True for a value that is there, not a variable's name or a switch."""
    return not value.startswith("$") and not is_switch(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A text without the secrets in it.

    Attributes:
        text: None: nothing is left of it.
        gone: What is left out, by its name: `a.password`, `the user and password of the URL`.
    """

    text: str | None
    secrets: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def cleaned(text: str) -> Cleaned:
    """A flag's or a variable's value without what is secret in it: keys of JSON, the userinfo of URLs, known keys."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            value = read_json(text)
        except ValueError:
            return _broken(text)
        secrets: list[str] = []
        gone: list[str] = []
        rest = _without(value, "", secrets, gone)
        if not gone:
            return Cleaned(text=text)
        return Cleaned(text=_as_text(rest) if rest else None, secrets=tuple(secrets), gone=tuple(gone))
    return _plain(text)


def without_userinfo(text: str) -> str:
    """The text without literal users and passwords of the URLs in it."""
    return _USERINFO.sub(lambda found: found[0] if _is_reference(found) else found[1] or found[3], text)


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` for each of these values, if it is long enough to be one."""
    for secret in sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def hidden(text: str) -> str:
    """The text with `***` for values that look like secrets: `TOKEN=…`, `--api-key …`, `"password": …`, `u:p@host`.

    References stay.
    """

    def assignment(found: re.Match[str]) -> str:
        value = found[2].strip("\"'")
        shows = value.startswith("$") or not (is_secret_name(found[1]) and not is_switch(value))
        return found[0] if shows else f"{found[1]}={MASK}"

    def flag(found: re.Match[str]) -> str:
        value = found[3].strip("\"'")
        return f"{found[1]}{found[2]}{MASK}" if is_secret_key(found[1]) and is_literal(value) else found[0]

    def keyed(found: re.Match[str]) -> str:
        quote = found[5] or ""
        value = found[4].strip("\\\"'")
        shows = not is_secret_key(found[2]) or not is_literal(value)
        return found[0] if shows else f"{found[1]}{found[2]}{found[3]}{quote}{MASK}{quote}"

    def flow(found: re.Match[str]) -> str:
        is_hidden = is_secret_key(found[2]) and is_literal(found[4])
        return f"{found[1]}{found[2]}{found[3]}{MASK}" if is_hidden else found[0]

    def led(found: re.Match[str]) -> str:
        value = found[4].strip("\"'")
        return f"{found[1]}{found[2]}{found[3]}{MASK}" if is_secret_key(found[2]) and is_literal(value) else found[0]

    text = _LED.sub(led, text)
    text = _USERINFO.sub(lambda found: found[0] if _is_reference(found) else f"{found[1] or found[3]}{MASK}@", text)
    text = _IN_FLOW.sub(flow, _KEYED.sub(keyed, text))
    return _KEY_WORD.sub(MASK, _FLAGGED.sub(flag, _ASSIGNED.sub(assignment, text)))


def _as_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_reference(found: re.Match[str]) -> bool:
    """A URL's password that a variable gives."""
    return (found[2] or found[4]).rpartition(":")[2].startswith("$")


def _broken(text: str) -> Cleaned:
    """What looks like JSON and is none; a template's braces are no object's."""
    pairs = [(found[2], found[4].strip("\\\"'")) for at in (_KEYED, _IN_FLOW) for found in at.finditer(text)]
    secrets = tuple(value for key, value in pairs if is_secret_key(key) and is_literal(value))
    if not secrets or text.lstrip()[:2] in {"{%", "{{", "{#"}:
        return _plain(text)
    return Cleaned(text=None, secrets=(text, *secrets), gone=("broken JSON with a secret in it",))


def _plain(text: str) -> Cleaned:
    """A text that is no JSON: a key by itself, or a URL."""
    if _KEY_WORD.match(text):
        return Cleaned(text=None, secrets=(text,), gone=("a key",))
    found = [match for match in _USERINFO.finditer(text) if not _is_reference(match)]
    if not found:
        return Cleaned(text=text)
    secrets: list[str] = []
    for match in found:
        userinfo = match[2] or match[4]
        secrets += [userinfo, userinfo.partition(":")[2]]
    return Cleaned(
        text=without_userinfo(text), secrets=tuple(filter(None, secrets)), gone=("the user and password of the URL",)
    )


def _without(value: Json, path: str, secrets: list[str], gone: list[str]) -> Json:
    """The value without what is secret in it; `None` as an entry of a list stays."""
    if isinstance(value, Mapping):
        kept: dict[str, Json] = {}
        for key, inner in value.items():
            name = f"{path}.{key}" if path else key
            if is_secret_key(key) and (found := _literals(inner)):
                secrets += found
                gone.append(name)
                continue
            kept[key] = _without(inner, name, secrets, gone)
        return kept
    if isinstance(value, list):
        return [_without(inner, f"{path}[{index}]", secrets, gone) for index, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    safe = cleaned(value)
    secrets += safe.secrets
    gone += [f"{path}: {what}" for what in safe.gone]
    return safe.text if safe.text is not None else ""


def _literals(value: Json) -> list[str]:
    """What a secret's key holds: texts and numbers, of nested values each."""
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _literals(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _literals(inner)]
    text = "" if value is None or isinstance(value, bool) else str(value)
    return [text] if is_literal(text) else []
