"""Whether a server answers yet: the right model is listed and one token arrives.

A 200 from `/health` proves little: an engine may be healthy and die at its first request, and a reverse proxy or an
older server may answer on the port. So the probe asks for a token, from the model that was declared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.values import Json
from orchestrator.wire.chat import Reply, Target

_FIRST_REQUEST: Mapping[str, Json] = {"messages": [{"role": "user", "content": "Say OK."}], "max_tokens": 8}


class ProbeState(StrEnum):
    """How far the server is."""

    REFUSED = "refused"
    LOADING = "loading"
    WRONG_MODEL = "wrong_model"
    BROKEN = "broken"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One look at the server.

    Attributes:
        state: REFUSED: nobody answers; LOADING: it says so (503); WRONG_MODEL: others are listed; BROKEN: it was asked
            for a token and gave none; ANSWERED: a token came.
        detail: For people.
        http_status: Of the request for a token, 0 when the connection broke, None when it was not sent.
        first_token_s: From sending to the token.
    """

    state: ProbeState
    detail: str = ""
    http_status: int | None = None
    first_token_s: float | None = None

    @property
    def is_settled(self) -> bool:
        """True when waiting will hardly change it: the server has decided (another model, a 4xx)."""
        is_refusal = self.state is ProbeState.BROKEN and 400 <= (self.http_status or 0) < 500
        return is_refusal or self.state is ProbeState.WRONG_MODEL


Probe = Callable[[], ProbeResult]


def first_token_probe(target_factory: Callable[[], Target], *, timeout_s: float = 900.0) -> Probe:
    """A probe that asks for the model list, then for one short completion.

    Args:
        target_factory: Makes the target; called once, at the first look.
        timeout_s: For the completion: the first request compiles kernels, which takes minutes on some boxes.
    """
    kept: list[Target] = []

    def probe() -> ProbeResult:
        if not kept:
            kept.append(target_factory())
        return _look(kept[0], timeout_s)

    return probe


class PatientProbe:
    """Run a probe beside the loop that waits for it: a first request may take minutes, a look takes `wait_s`."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._thread: threading.Thread | None = None
        self._result: ProbeResult | None = None
        self._error: Exception | None = None

    @property
    def is_waiting(self) -> bool:
        """True while a request is under way."""
        return self._thread is not None

    def look(self, *, wait_s: float) -> ProbeResult | None:
        """Start a probe unless one is under way, and wait a while: its result, None when it is not there yet.

        Raises:
            Exception: What the probe raised.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gate0-probe", daemon=True)
            self._thread.start()
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return None
        self._thread = None
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self) -> None:
        self._result = self._error = None
        try:
            self._result = self._probe()
        except Exception as error:  # noqa: BLE001 (raised again in the thread that waits)
            self._error = error


def _look(target: Target, timeout_s: float) -> ProbeResult:
    names = _listed_names(target.get_json("/v1/models"))
    if names is not None and target.model not in names:
        listed = ", ".join(names) or "none"
        return ProbeResult(state=ProbeState.WRONG_MODEL, detail=f"`{target.model}` is not listed, these are: {listed}")
    if target.claims.task != "generate" and names is not None:
        return ProbeResult(state=ProbeState.ANSWERED, detail=f"listed; a {target.claims.task} server gives no token")
    # Without a list the same request tells why: refused, loading, or no permission.
    return _judged(target.chat(_FIRST_REQUEST, stream=True, timeout_s=timeout_s), is_listed=names is not None)


def _judged(reply: Reply, *, is_listed: bool) -> ProbeResult:
    words = reply.error or f"HTTP {reply.http_status}"
    if reply.is_ok and _has_token(reply):
        return ProbeResult(state=ProbeState.ANSWERED, http_status=reply.http_status, first_token_s=reply.first_token_s)
    if reply.http_status == 503:
        return ProbeResult(state=ProbeState.LOADING, detail=words, http_status=503)
    if reply.http_status == 0 and not is_listed:
        return ProbeResult(state=ProbeState.REFUSED, detail=words)
    if reply.is_ok:
        words = "an answer without a token"
    return ProbeResult(state=ProbeState.BROKEN, detail=words, http_status=reply.http_status)


def _has_token(reply: Reply) -> bool:
    says = bool(reply.text or reply.reasoning or reply.tool_calls)
    return says or reply.first_token_s is not None or bool(reply.usage.output_tok)


def _listed_names(models: Json) -> tuple[str, ...] | None:
    """The names in an OpenAI model list, None when it is not one."""
    if not isinstance(models, Mapping):
        return None
    entries = models.get("data")
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return None
    return tuple(str(entry["id"]) for entry in entries if isinstance(entry, Mapping) and "id" in entry)
