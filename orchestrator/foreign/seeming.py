"""What a text that says nothing of a server seems to be, so that a refusal can say what to do with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import yaml

LOOKED_AT = 40_000
"""Characters of a text that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeming:
    """`what`: with its article (`a Dockerfile`); `hint`: what to do; `is_code`: it may be meant to start a server."""

    what: str
    hint: str
    is_code: bool = False


_LOG_LINE = re.compile(
    r"^(?:\([^)]*\) )?(?:\S+\s+\| )?\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b|"
    r"(?:srv|slot|main|llama_\w+|load_\w+|print_info|system_info|ggml_\w+|build)\s*:?\s)",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"^(?:#{1,6} \S|\|.*\|[ \t]*$|[*-] (?:\*\*|`|\[)|> |\d+\. \S|-{3,}$|\*\*\S)", re.MULTILINE)
_SENTENCE = re.compile(r"^[A-Z*`>][^=$\\]{50,}[.:]\s*$", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{-?\s*(?:\.|\$|if\b|range\b|include\b|with\b|template\b|end\b|toYaml\b)")
_TEMPLATE_LINE = re.compile(r"^[ \t]*\{\{-?\s*(?:if|range|with|include|define|end|template)\b", re.MULTILINE)
_MANIFEST = re.compile(r"^apiVersion[ \t]*:", re.MULTILINE)
_COMMAND = re.compile(
    r"[ \t]*(?:\$ )?(?:sudo|docker|podman|curl|cd|export|git|mkdir|cat|pip|uv|python3?|ssh|systemctl|hf|source|if|for|"
    r"echo|while|tail|kill|nvidia-smi|apt|apt-get|\./\S+)\b"
)
_ENTRY = re.compile(r"\s*(?:- )?[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|$)")
_DOCKERFILE = re.compile(r"^FROM\s+\S+", re.MULTILINE | re.IGNORECASE)
_DOCKERFILE_STEP = re.compile(r"^(?:RUN|CMD|ENTRYPOINT|COPY|ENV|WORKDIR)\s", re.MULTILINE)
_QUADLET = re.compile(r"^\[Container\][ \t]*$", re.MULTILINE)
_UNIT = re.compile(r"^\[(?:Unit|Service|Timer|Socket|Mount|Install)\][ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^\[[^\]\n]+\][ \t]*$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:import \w|from \w[\w.]* import |def \w+\(|class \w+)", re.MULTILINE)
_ASSIGNED = re.compile(r"(?:export )?[A-Za-z_]\w*=.*|#.*|")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_SCRIPT = re.compile(r"^#!.*\b(?:ba|z|da)?sh\b")


def seems(text: str) -> Seeming | None:
    """What the text seems to be; None when nothing tells it."""
    head = text[:LOOKED_AT]
    if not head.strip():
        return Seeming(what="empty", hint="was it written, or the command before the pipe run?")
    known = next((seeming for is_it, seeming in _KINDS.items() if is_it(head)), None)
    return known or (_of_yaml(text) if _share(_ENTRY, head) > 0.5 else None)


def is_template(text: str) -> bool:
    """True for a manifest that a program has to fill in first."""
    return _TEMPLATE_LINE.search(text) is not None or (
        _MANIFEST.search(text) is not None and _TEMPLATE.search(text) is not None
    )


def _of_yaml(text: str) -> Seeming | None:
    try:
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        return Seeming(what=f"broken YAML{line}: {exc.problem}", hint="mend it there, or import what it was made of")
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(value, Mapping) or not value:
        return None
    if "apiVersion" in value and "kind" in value:
        hint = (
            "a Deployment, a StatefulSet, a Pod or their like with `containers` is read; `kubectl get pod NAME -o yaml`"
        )
        return Seeming(what=f"a {value['kind']} of Kubernetes without containers", hint=hint)
    if "servingEngineSpec" in value or ("replicaCount" in value and "image" in value):
        hint = "render it first: `helm template CHART -f THIS > whole.yaml`, and import that"
        return Seeming(what="the values of a Helm chart", hint=hint)
    keys = ", ".join(f"`{key}`" for key in list(value)[:4])
    more = ", …" if len(value) > 4 else ""
    hint = "a recipe has `model` and `command`, a compose file `services`, a manifest `apiVersion` and `kind`"
    return Seeming(what=f"YAML with the keys {keys}{more}", hint=hint)


def _share(pattern: re.Pattern[str], text: str) -> float:
    rows = [row for row in text.split("\n")[:400] if row.strip()]
    return sum(pattern.match(row) is not None for row in rows) / len(rows) if rows else 0.0


def _is_log(text: str) -> bool:
    return text.count("\n") > 5 and _share(_LOG_LINE, text) > 0.5


def _is_dockerfile(text: str) -> bool:
    return _DOCKERFILE.search(text) is not None and _DOCKERFILE_STEP.search(text) is not None


def is_page(text: str) -> bool:
    """True for Markdown and for prose."""
    if _SCRIPT.match(text):
        return False
    found = len(_MARKDOWN.findall(text)) + len(_SENTENCE.findall(text)) + 2 * (len(_FENCE.findall(text)) > 1)
    return found > 1 or len(_SENTENCE.findall(text)) > 0


def _is_env_file(text: str) -> bool:
    rows = text.split("\n")
    return "=" in text and all(_ASSIGNED.fullmatch(row.strip()) is not None for row in rows)


def _is_preset(text: str) -> bool:
    sections = _SECTION.findall(text)
    return bool(sections) and re.search(r"^(?:model|hf-repo|hf|ctx-size|c|m)\s*=", text, re.MULTILINE) is not None


def _is_python(text: str) -> bool:
    return _PYTHON.search(text) is not None and not _SCRIPT.match(text)


def _is_record(text: str) -> bool:
    return text.lstrip().startswith("{") and re.search(r'"format"\s*:\s*"gate0-record/', text[:2_000]) is not None


def _is_inspected(text: str) -> bool:
    return text.lstrip().startswith(("[", "{")) and '"HostConfig"' in text and '"Config"' in text


def _is_model(text: str) -> bool:
    return text.lstrip().startswith("{") and re.search(r'"(?:model_type|architectures)"\s*:', text) is not None


_KINDS: Mapping[Callable[[str], bool], Seeming] = {
    _is_record: Seeming(
        what="a record of gate0's own",
        hint="`gate0 show RUN` shows it, `--effective` what ran; its profile stands in it as written",
    ),
    _is_inspected: Seeming(
        what="what `docker inspect` prints",
        hint="import the command or the compose file that started it; a running server is gated with "
        "`engine: endpoint` and its URL",
    ),
    _is_model: Seeming(
        what="a model's config.json", hint="it says what the model is, not how it is served: import the command"
    ),
    _is_log: Seeming(
        what="a log",
        hint="a log tells what ran, not what to start: import the command that started it; a running server is gated "
        "with `engine: endpoint` and its URL",
    ),
    _is_dockerfile: Seeming(
        what="a Dockerfile",
        hint="it builds an image: build it on the host, and import the `docker run` line that starts it",
    ),
    (lambda text: _QUADLET.search(text) is not None): Seeming(
        what="a Podman quadlet",
        hint="import what Podman makes of it: `/usr/lib/podman/quadlet -dryrun -user` prints the unit with its "
        "`podman run` line",
    ),
    (lambda text: _UNIT.search(text) is not None): Seeming(
        what="a systemd unit without `ExecStart=`",
        hint="a drop-in or a timer starts nothing by itself: import what `systemctl cat UNIT` prints",
    ),
    is_template: Seeming(
        what="a template of Helm's or Go's (`{{ … }}`)",
        hint="fill it in first: `helm template … > whole.yaml`, and import that",
    ),
    _is_preset: Seeming(
        what="a preset file of llama-server's router",
        hint="one section is one server: import it as `llama-server --model … --ctx-size …`",
    ),
    _is_env_file: Seeming(
        what="a file of variables",
        hint="import the script or the compose file that reads it, with this file beside it",
    ),
    _is_python: Seeming(
        what="a Python program",
        hint="import the command line that it starts; a server that it starts by itself is gated with "
        "`engine: endpoint` and its URL",
    ),
    (lambda text: _SCRIPT.match(text) is not None or _share(_COMMAND, text) > 0.3): Seeming(
        what="shell code that starts none of vLLM, SGLang and llama-server",
        hint="import the file or the command that starts the server; one that runs already is gated with "
        "`engine: endpoint` and its URL",
        is_code=True,
    ),
    is_page: Seeming(
        what="a page of text",
        hint="cut the command out of it: `gate0 import - <<'EOF'`, the command, `EOF`",
    ),
}
