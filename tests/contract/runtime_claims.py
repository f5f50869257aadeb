"""What every runtime must do, whichever it is: subclass RuntimeClaims and give it a `bench`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pytest

from orchestrator.deploy.runtime import (
    LABEL_DIGEST,
    LABEL_PROFILE,
    LABEL_RUN,
    PullProgress,
    Question,
    Runtime,
    Server,
    ServerSpec,
)
from orchestrator.errors import CommandTimedOut, ImageMissing, Interrupted, NameTaken, RuntimeFailure
from orchestrator.profile.model import PullPolicy

LABELS = {LABEL_RUN: "claims", LABEL_PROFILE: "small", LABEL_DIGEST: "d1"}

PRINT_AND_STAY = 'trap "exit 0" TERM; for line in "$@"; do echo "$line"; done; while :; do sleep 0.1; done'
ANSWER = 'printf %s "$1"; printf %s "$2" >&2; exit "$3"'
PRINT_AND_EXIT = 'code=$1; shift; for line in "$@"; do echo "$line"; done; exit "$code"'


class Bench(Protocol):
    """A runtime under test and servers for it that do as they are told."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def image(self) -> str:
        """An image that is there."""
        ...

    def spec(self, name: str, *, log: tuple[str, ...] = (), exit_code: int | None = None) -> ServerSpec:
        """A server that prints these lines, then stays (None) or exits with that code."""
        ...

    def question(self, *, out: str = "", err: str = "", exit_code: int | None = 0) -> Question:
        """A command that says this on stdout and stderr and ends with that code; None: it does not end for long."""
        ...


def wait_for(look: Callable[[], bool], *, deadline_s: float = 20.0) -> None:
    """Wait for real servers to get there."""
    end_s = time.monotonic() + deadline_s
    while not look():
        assert time.monotonic() < end_s, "it never came to this"
        threading.Event().wait(0.05)


def state(bench: Bench, server: Server) -> Server:
    now = bench.runtime.get(server.id)
    assert now is not None
    return now


def ended(bench: Bench, server: Server) -> Server:
    wait_for(lambda: not state(bench, server).is_running)
    return state(bench, server)


class RuntimeClaims:
    """The claims; each test has a fresh bench."""

    def test_a_started_server_runs_and_bears_its_labels(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one"))

        assert (server.is_running, server.exit_code, server.name, dict(server.labels)) == (True, None, "one", LABELS)

    def test_a_server_is_found_by_label_by_name_and_by_default(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one"))

        ways = (
            bench.runtime.find(),
            bench.runtime.find(name="one"),
            bench.runtime.find(label=(LABEL_DIGEST, "d1")),
            bench.runtime.find(label=(LABEL_DIGEST, "")),
        )

        assert [[found.id for found in way] for way in ways] == [[server.id]] * 4

    def test_what_does_not_match_is_not_found(self, bench: Bench) -> None:
        bench.runtime.start(bench.spec("one"))

        assert bench.runtime.find(name="on") == ()
        assert bench.runtime.find(label=(LABEL_DIGEST, "d2")) == ()

    def test_a_server_names_the_digest_of_its_image(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one"))

        assert server.image_digest == bench.runtime.image_digest(bench.image) is not None

    def test_an_ended_server_keeps_its_exit_code_and_its_log(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("loading", "cannot"), exit_code=3))

        last = ended(bench, server)

        assert (last.exit_code, last.finished_at is not None) == (3, True)
        assert bench.runtime.log_tail(server.id, 0) == ("loading", "cannot")

    def test_the_tail_is_the_last_lines_oldest_first(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a", "b", "c"), exit_code=0))
        ended(bench, server)

        assert bench.runtime.log_tail(server.id, 2) == ("b", "c")

    def test_the_head_is_the_first_lines_of_a_server_that_still_runs(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a", "b", "c")))
        wait_for(lambda: bench.runtime.log_tail(server.id, 0) == ("a", "b", "c"))

        assert bench.runtime.log_head(server.id, 2) == ("a", "b")
        assert bench.runtime.log_head(server.id, 9) == ("a", "b", "c")
        assert bench.runtime.log_head("nobody", 2) == ()

    def test_following_gives_all_lines_and_ends_with_the_server(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a", "b"), exit_code=0))

        assert tuple(bench.runtime.follow(server.id, timeout_s=30)) == ("a", "b")

    def test_following_ends_at_its_deadline_though_no_line_comes(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a",)))
        begun_s = time.monotonic()

        lines = tuple(bench.runtime.follow(server.id, timeout_s=1.0))

        assert lines == ("a",)
        assert time.monotonic() - begun_s < 5

    def test_following_ends_when_it_is_cancelled(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a",)))
        seen: list[str] = []

        for line in bench.runtime.follow(server.id, timeout_s=60, is_cancelled=lambda: bool(seen)):
            seen.append(line)

        assert seen == ["a"]

    def test_two_follow_at_the_same_time(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a", "b")))
        first = bench.runtime.follow(server.id, timeout_s=30)
        second = bench.runtime.follow(server.id, timeout_s=30)

        assert (next(first), next(second), next(first)) == ("a", "a", "b")

    def test_a_stopped_server_is_still_there_with_its_log(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a",)))
        wait_for(lambda: bench.runtime.log_tail(server.id, 0) == ("a",))

        bench.runtime.stop(server.id, grace_s=5)

        assert not state(bench, server).is_running
        assert state(bench, server).exit_code is not None
        assert bench.runtime.log_tail(server.id, 0)[:1] == ("a",)

    def test_a_removed_server_is_gone(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one"))

        bench.runtime.remove(server.id)

        assert bench.runtime.get(server.id) is None
        assert bench.runtime.find() == ()

    def test_what_is_gone_can_be_stopped_removed_read_and_followed(self, bench: Bench) -> None:
        server = bench.runtime.start(bench.spec("one", log=("a",)))
        bench.runtime.remove(server.id)

        bench.runtime.stop(server.id)
        bench.runtime.remove(server.id)

        assert bench.runtime.log_tail(server.id, 5) == ()
        assert tuple(bench.runtime.follow(server.id, timeout_s=5)) == ()

    def test_a_name_is_given_once(self, bench: Bench) -> None:
        first = bench.runtime.start(bench.spec("one"))

        with pytest.raises(NameTaken) as refusal:
            bench.runtime.start(bench.spec("one"))

        assert "one" in refusal.value.message
        assert refusal.value.hint is not None
        assert [server.id for server in bench.runtime.find()] == [first.id]

    def test_the_name_is_free_after_removal(self, bench: Bench) -> None:
        first = bench.runtime.start(bench.spec("one"))
        bench.runtime.remove(first.id)

        second = bench.runtime.start(bench.spec("one"))

        assert second.id != first.id
        assert bench.runtime.get(first.id) is None

    def test_a_server_without_the_label_is_not_started(self, bench: Bench) -> None:
        spec = bench.spec("one")

        with pytest.raises(RuntimeFailure, match=LABEL_RUN):
            bench.runtime.start(replaced(spec, labels={LABEL_PROFILE: "small"}))

        assert bench.runtime.find(name="one") == ()

    def test_an_absent_image_has_no_digest_and_starts_nothing(self, bench: Bench) -> None:
        absent = f"{bench.image}-absent"

        with pytest.raises(ImageMissing, match="absent"):
            bench.runtime.start(replaced(bench.spec("one"), image=absent))

        assert bench.runtime.image_digest(absent) is None
        assert bench.runtime.find() == ()

    def test_an_absent_image_that_must_not_be_pulled_is_missing(self, bench: Bench) -> None:
        with pytest.raises(ImageMissing) as refusal:
            bench.runtime.pull(f"{bench.image}-absent", PullPolicy.NEVER, ignore)

        assert refusal.value.hint is not None

    def test_pulling_what_is_there_gives_its_digest(self, bench: Bench) -> None:
        assert bench.runtime.pull(bench.image, PullPolicy.MISSING, ignore) == bench.runtime.image_digest(bench.image)

    def test_a_question_is_answered_and_nothing_of_it_is_left(self, bench: Bench) -> None:
        out, err = "{" + "x" * 100_000 + " é$'\"}\n\n", "warning: none\n"

        answer = bench.runtime.ask(bench.question(out=out, err=err, exit_code=3))

        assert (answer.stdout.strip(), answer.stderr.strip(), answer.exit_code) == (out.strip(), err.strip(), 3)
        assert bench.runtime.find() == ()

    def test_a_question_to_an_absent_image_is_refused(self, bench: Bench) -> None:
        with pytest.raises(ImageMissing, match="absent"):
            bench.runtime.ask(replace(bench.question(), image=f"{bench.image}-absent"))

    def test_a_question_without_an_answer_ends_at_its_deadline(self, bench: Bench) -> None:
        with pytest.raises(CommandTimedOut, match="killed"):
            bench.runtime.ask(replace(bench.question(exit_code=None), timeout_s=1.0))

        assert bench.runtime.find() == ()

    def test_a_question_is_left_when_it_is_cancelled(self, bench: Bench) -> None:
        with pytest.raises(Interrupted):
            bench.runtime.ask(bench.question(exit_code=None), is_cancelled=lambda: True)

        assert bench.runtime.find() == ()

    def test_the_runtime_says_what_it_is(self, bench: Bench) -> None:
        facts = bench.runtime.facts()

        assert facts.kind
        assert facts.version


def replaced(spec: ServerSpec, *, image: str | None = None, labels: dict[str, str] | None = None) -> ServerSpec:
    return replace(spec, image=spec.image if image is None else image, labels=spec.labels if labels is None else labels)


def question_words(out: str, err: str, exit_code: int | None) -> tuple[str, ...]:
    """For `sh`."""
    return ("-c", "sleep 97") if exit_code is None else ("-c", ANSWER, "sh", out, err, str(exit_code))


def ignore(_progress: PullProgress) -> None:
    """Progress that nobody looks at."""
