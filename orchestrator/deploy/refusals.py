"""What a Docker Engine's refusal means, and what to do about it: words in, one of our errors out.

The engine's API has few status codes and puts the cause into the text, so the text must be read. Every row of the
tables has a captured answer under tests/cases/docker_refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.errors import (
    ImageMissing,
    NameTaken,
    PortTaken,
    RuntimeFailure,
    RuntimeNotInstalled,
    RuntimeUnavailable,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    pattern: str
    error: Callable[..., RuntimeFailure]
    hint: str


_STARTING = (
    _Sign(
        pattern=r"port is already allocated|address already in use",
        error=PortTaken,
        hint="see who has it with `ss -ltnp` on the host, or give the profile another `port:`",
    ),
    _Sign(
        pattern=r"is already in use by container",
        error=NameTaken,
        hint="remove that container with `docker rm`, or rename the profile",
    ),
    _Sign(
        pattern=r"could not select device driver|unresolvable CDI devices",
        error=RuntimeFailure,
        hint="Docker has no NVIDIA runtime there: install nvidia-container-toolkit, then "
        "`sudo nvidia-ctk runtime configure --runtime=docker` and `sudo systemctl restart docker`; "
        "without a GPU set `container: {gpus: none}`",
    ),
    _Sign(
        pattern=r"nvidia-container-cli|nvidia-container-runtime",
        error=RuntimeFailure,
        hint="the NVIDIA runtime cannot reach the driver: check `nvidia-smi` on the host",
    ),
    _Sign(
        pattern=r"executable file not found|exec: .*(no such file or directory|permission denied)|exec format error",
        error=RuntimeFailure,
        hint="the image has no such program for this machine: check `container.entrypoint`, "
        "`command` and the image's architecture",
    ),
    _Sign(
        pattern=r"bind source path does not exist|error mounting|invalid mount config|for a local volume name",
        error=RuntimeFailure,
        hint="check `container.mounts`: a source is an absolute path, starts with `~/`, or names a volume",
    ),
    _Sign(
        pattern=r"error setting rlimit",
        error=RuntimeFailure,
        hint="the host does not let Docker raise this limit: lower or drop it in `container.ulimits`",
    ),
    _Sign(
        pattern=r"no space left on device",
        error=RuntimeFailure,
        hint="free space on the host: `docker system df` shows what Docker holds",
    ),
    _Sign(
        pattern=r"[Nn]o such image",
        error=ImageMissing,
        hint="pull the image first, or set `pull: missing`",
    ),
)

_PULLING = (
    _Sign(
        pattern=r"no matching manifest",
        error=ImageMissing,
        hint="the image is not built for this machine's architecture (a DGX Spark is linux/arm64): take another tag",
    ),
    _Sign(
        pattern=r"manifest unknown|repository name not known",
        error=ImageMissing,
        hint="check the image's name and tag",
    ),
    _Sign(
        pattern=r"pull access denied|unauthorized|authentication required|denied",
        error=ImageMissing,
        hint="check the name; for a private image `docker login` on the machine that runs gate0",
    ),
    _Sign(
        pattern=r"toomanyrequests|[Rr]ate ?limit",
        error=ImageMissing,
        hint="the registry limits this address: `docker login` on the machine that runs gate0, or wait",
    ),
    _Sign(
        pattern=r"no space left on device",
        error=ImageMissing,
        hint="free space on the host: `docker system df` shows what Docker holds",
    ),
    _Sign(
        pattern=r"invalid reference format",
        error=ImageMissing,
        hint="write the image as `registry/name:tag` or `name@sha256:…`",
    ),
    _Sign(
        pattern=r"x509|server gave HTTP response to HTTPS client|does not look like a TLS handshake",
        error=ImageMissing,
        hint="the host's Docker does not trust this registry: its `insecure-registries` or certificates decide",
    ),
)

_PASSING = r"timeout|timed out|connection (refused|reset)|no such host|EOF|try again|50[0234] |TLS handshake"


def start_refused(host: str, server: str, status: int, words: str) -> RuntimeFailure:
    """The error for a container that could not be created or started.

    Args:
        status: HTTP status of the API's answer.
        words: The daemon's own text.
    """
    message = f"{host}: docker could not start {server}: {words}"
    sign = _match(_STARTING, words)
    if sign is not None:
        return sign.error(message, hint=sign.hint)
    if status == 409:
        return NameTaken(message, hint="remove that container with `docker rm`, or rename the profile")
    return RuntimeFailure(message)


def pull_refused(host: str, image: str, words: str) -> RuntimeFailure:
    """The error for an image that is not to be had; the registry's words are in it."""
    sign = _match(_PULLING, words)
    hint = sign.hint if sign else f"try `docker pull {image}` on the host"
    return ImageMissing(f"{host}: cannot pull {image}: {words}", hint=hint)


def is_passing(words: str) -> bool:
    """True when a pull that failed with these words may succeed in a moment (network, registry overload)."""
    return _match(_PULLING, words) is None and re.search(_PASSING, words) is not None


def engine_unreachable(host: str, exit_code: int, words: str) -> RuntimeUnavailable:
    """Why no Docker Engine answers, told from the exit and the stderr of `docker version` on the host."""
    if exit_code == 127:
        return RuntimeNotInstalled(
            f"{host}: docker is not installed",
            hint="install it: https://docs.docker.com/engine/install, or use `runtime: process`",
        )
    # The client also warns of a config file that it may not read: only the socket counts.
    if "permission denied while trying to connect" in words:
        return RuntimeUnavailable(
            f"{host}: no permission to use docker",
            hint="on the host: `sudo usermod -aG docker $USER`, then log in again",
        )
    return RuntimeUnavailable(
        f"{host}: the docker daemon does not answer: {_last_line(words)}",
        hint="on the host: `sudo systemctl start docker`",
    )


def _match(signs: tuple[_Sign, ...], words: str) -> _Sign | None:
    return next((sign for sign in signs if re.search(sign.pattern, words)), None)


def _last_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return lines[-1] if lines else "no answer"
