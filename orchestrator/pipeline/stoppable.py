"""A target that can be left: Ctrl-C does not wait for a long answer.

Each request runs in a thread of its own while this one looks at the flag; when it is set, the thread is left to its
fate (the server is about to be stopped, which breaks its connection).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from orchestrator.errors import Interrupted
from orchestrator.pipeline.events import Cancel
from orchestrator.values import Json
from orchestrator.wire.chat import Claims, Reply, Target

LOOK_S = 0.1
T = TypeVar("T")


class StoppableTarget:
    """A `Target` over another one.

    Raises:
        Interrupted: From every request, as soon as the flag is set.
    """

    def __init__(self, target: Target, cancel: Cancel) -> None:
        self._target = target
        self._cancel = cancel

    @property
    def base_url(self) -> str:
        return self._target.base_url

    @property
    def model(self) -> str:
        return self._target.model

    @property
    def claims(self) -> Claims:
        return self._target.claims

    def chat(self, body: Mapping[str, Json], *, stream: bool = False, timeout_s: float = 600.0) -> Reply:
        return self._ask(lambda: self._target.chat(body, stream=stream, timeout_s=timeout_s))

    def chat_many(
        self, bodies: Sequence[Mapping[str, Json]], *, stream: bool = True, timeout_s: float = 600.0
    ) -> tuple[Reply, ...]:
        return self._ask(lambda: self._target.chat_many(bodies, stream=stream, timeout_s=timeout_s))

    def get_json(self, path: str, *, timeout_s: float = 10.0) -> Json:
        return self._target.get_json(path, timeout_s=timeout_s)

    def post(self, path: str, *, timeout_s: float = 30.0) -> int:
        return self._target.post(path, timeout_s=timeout_s)

    def metrics(self) -> Mapping[str, float] | None:
        return self._target.metrics()

    def metric_labels(self, name: str) -> tuple[Mapping[str, str], ...]:
        return self._target.metric_labels(name)

    def count_tokens(self, text: str) -> int | None:
        return self._target.count_tokens(text)

    def close(self) -> None:
        self._target.close()

    def _ask(self, act: Callable[[], T]) -> T:
        self._cancel.check()
        answers: list[T] = []
        errors: list[BaseException] = []

        def ask() -> None:
            try:
                answers.append(act())
            except BaseException as exc:  # noqa: BLE001 - handed on to who waits
                errors.append(exc)

        thread = threading.Thread(target=ask, name="gate-request", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
            if self._cancel.is_set():
                raise Interrupted("stopped on request")
        if errors:
            raise errors[0]
        return answers[0]
