"""What open, overload and replay tell the load process to do."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

import pytest

from orchestrator.errors import InputError
from orchestrator.sweep.arrivals import arrivals
from orchestrator.sweep.lengths import Lengths, fixed
from orchestrator.sweep.loading import load_workload, search_path
from orchestrator.sweep.prompts import Counter, PromptBook
from orchestrator.sweep.scripts.script import Script, script_of
from orchestrator.sweep.spec import Job, Lane, LoadTarget, Message
from orchestrator.sweep.workload import Conversation, Kind, Workload
from orchestrator.values import Json

TEMPLATE_TOK = 9
TARGET = LoadTarget(base_url="http://x/v1", model="m", template_overhead_tok=TEMPLATE_TOK, cache_unit_tok=16)


def count(text: str) -> int:
    """A vocabulary of whole words and punctuation marks."""
    return TEMPLATE_TOK + len(re.findall(r"\w+|[^\w\s]", text))


class Asked:
    """The same, and how often it was asked."""

    def __init__(self, counted: Callable[[str], int | None] = count) -> None:
        self._count = counted
        self.times = 0

    def __call__(self, text: str) -> int | None:
        self.times += 1
        return self._count(text)


def book(counted: Callable[[str], int | None] = count, *, is_cheap: bool = True) -> PromptBook:
    counter = Counter(count=counted, is_cheap=is_cheap, overhead_tok=TEMPLATE_TOK)
    return PromptBook(counter, seed=1, rng=random.Random(3))


def script(workload: Workload, *, repeat: int = 0, prompts: PromptBook | None = None) -> Script:
    (cell,) = workload.cells()
    return script_of(cell, prompts or book(), TARGET, repeat)


def main_lanes(found: Script) -> tuple[Lane, ...]:
    return next(p for p in found.phases if p.name == "main").lanes


def jobs_of(lane: Lane) -> list[Job]:
    return [job for track in lane.tracks for job in track.jobs]


def words(found: Script, message: Message) -> str:
    return " ".join(found.texts[p] if isinstance(p, int) else p for p in message.parts)


def open_workload(**changes: object) -> Workload:
    plain: dict[str, object] = {"rate": (5.0,), "requests": 40, "warmup": 0, "output_tokens": (fixed(8),)}
    return Workload(name="w", kinds=(Kind.OPEN,), **(plain | changes))  # type: ignore[arg-type]


def test_open_sends_each_request_at_its_own_time() -> None:
    (lane,) = main_lanes(script(open_workload(burstiness=(0.7,), seed=42), repeat=2))

    assert [t.at_s for t in lane.tracks] == list(arrivals(40, 5.0, burstiness=0.7, seed="44"))
    assert [t.number for t in lane.tracks] == list(range(40))
    assert {len(t.jobs) for t in lane.tracks} == {1}
    assert (lane.users, lane.cap, lane.duration_s) == (None, None, None)


def test_open_has_its_cap_and_its_ramp() -> None:
    ramp: Mapping[str, Json] = {"from": 1.0, "to": 9.0, "shape": "linear"}
    (lane,) = main_lanes(script(open_workload(cap=25, ramp=ramp)))

    assert lane.cap == 25
    assert [t.at_s for t in lane.tracks] == list(arrivals(40, 5.0, seed="1", ramp=ramp))


def test_every_prompt_is_fresh_and_as_long_as_drawn() -> None:
    prompt, output = Lengths(around=200, spread=0.5), Lengths(around=50, spread=0.9)
    found = script(open_workload(prompt_tokens=(prompt,), output_tokens=(output,)))

    jobs = jobs_of(main_lanes(found)[0])

    counted = [count(words(found, job.messages[0])) for job in jobs]
    assert counted == [job.expected_prompt_tok for job in jobs]
    assert len({job.nonce for job in jobs}) == 40
    assert all(100 <= tok <= 300 for tok in counted)
    assert len(set(counted)) > 20
    assert all(5 <= job.output_tok <= 95 for job in jobs)
    assert len({job.output_tok for job in jobs}) > 15
    assert {job.expected_cached_tok for job in jobs} == {0}


def test_lengths_follow_the_seed_and_the_repeat() -> None:
    drawn = open_workload(prompt_tokens=(Lengths(around=200, spread=0.5),))

    first, again, other = (
        [j.expected_prompt_tok for j in jobs_of(main_lanes(script(drawn, repeat=r))[0])] for r in (0, 0, 1)
    )

    assert first == again != other


def test_a_draw_below_the_template_is_moved_up_and_a_fixed_one_is_refused() -> None:
    found = script(open_workload(prompt_tokens=(Lengths(median=4, sigma=0.1),)))

    assert {count(words(found, j.messages[0])) for j in jobs_of(main_lanes(found)[0])} == {TEMPLATE_TOK + 6 + 8}
    with pytest.raises(InputError, match="template and the nonce alone take 15"):
        script(open_workload(prompt_tokens=(fixed(4),)))


def test_many_lengths_are_not_asked_for_one_by_one_where_that_is_dear() -> None:
    asked = Asked()
    prompts = book(asked, is_cheap=False)
    drawn = open_workload(prompt_tokens=(Lengths(around=2000, spread=0.5),))

    found = script(drawn, prompts=prompts)

    assert asked.times < 40
    jobs = jobs_of(main_lanes(found)[0])
    want = [j.expected_prompt_tok for j in jobs_of(main_lanes(script(drawn))[0])]
    assert {j.expected_prompt_tok for j in jobs} == {None}
    assert [count(words(found, j.messages[0])) for j in jobs] == pytest.approx(want, rel=0.03)


def test_a_server_that_tells_no_lengths_gets_prompts_without_a_promise() -> None:
    drawn = open_workload(prompt_tokens=(Lengths(around=2000, spread=0.5),))

    found = script(drawn, prompts=book(lambda _: None, is_cheap=False))

    assert {j.expected_prompt_tok for j in jobs_of(main_lanes(found)[0])} == {None}


def test_warmup_comes_first_and_is_not_recorded() -> None:
    found = script(open_workload(warmup=3))

    assert [(p.name, p.is_recorded, p.requests) for p in found.phases] == [("warmup", False, 3), ("main", True, 40)]


def test_overload_is_three_lanes_on_one_clock() -> None:
    w = Workload(
        name="w",
        kinds=(Kind.OVERLOAD,),
        rate=(2.0,),
        factor=5.0,
        duration_s=10.0,
        recovery_s=20.0,
        warmup=0,
        output_tokens=(fixed(8),),
    )
    lanes = main_lanes(script(w))

    times = {lane.name: [t.at_s or 0.0 for t in lane.tracks] for lane in lanes}
    assert [(name, len(at)) for name, at in times.items()] == [("before", 20), ("main", 100), ("after", 20)]
    assert 0 < min(times["before"]) <= max(times["before"]) < 20
    assert 20 < min(times["main"]) <= max(times["main"]) < 30
    assert 30 < min(times["after"]) <= max(times["after"]) < 50
    assert [t.number for lane in lanes for t in lane.tracks] == list(range(140))
    assert len({j.nonce for lane in lanes for j in jobs_of(lane)}) == 140
    assert times["before"] != [at - 30 for at in times["after"]]


TALK = (
    Conversation(prompts=("one two", "three"), answers=("first answer here", "second"), system="be brief"),
    Conversation(prompts=("alone now",), answers=("a b c d e",)),
)


def replay(**changes: object) -> Workload:
    plain: dict[str, object] = {"conversations": TALK, "rate": (2.0,), "think_s": 3.0, "warmup": 0}
    return Workload(name="w", kinds=(Kind.REPLAY,), **(plain | changes))  # type: ignore[arg-type]


def test_a_replayed_conversation_sends_all_its_turns_with_the_recorded_answers() -> None:
    found = script(replay())
    (lane,) = main_lanes(found)

    first, second = lane.tracks
    nonce = first.jobs[0].nonce
    said = [[(m.role, words(found, m)) for m in job.messages] for job in first.jobs]
    assert said == [
        [("system", f"{nonce} be brief"), ("user", "one two")],
        [
            ("system", f"{nonce} be brief"),
            ("user", "one two"),
            ("assistant", "first answer here"),
            ("user", "three"),
        ],
    ]
    assert [(j.output_tok, j.think_s) for j in first.jobs] == [(3, 0.0), (1, 3.0)]
    assert [(m.role, words(found, m)) for m in second.jobs[0].messages] == [
        ("user", f"{second.jobs[0].nonce} alone now")
    ]
    assert second.jobs[0].expected_prompt_tok == count(f"{second.jobs[0].nonce} alone now")
    assert second.jobs[0].output_tok == 5
    assert [t.at_s for t in lane.tracks] == list(arrivals(2, 2.0, seed="1"))


def test_a_replay_may_take_the_models_own_answers() -> None:
    found = script(replay(history="model"))

    messages = main_lanes(found)[0].tracks[0].jobs[1].messages
    assert [(m.role, m.answer_of) for m in messages] == [
        ("system", None),
        ("user", None),
        ("assistant", 0),
        ("user", None),
    ]
    assert not any("first answer" in text for text in found.texts)


def test_no_run_is_served_from_an_earlier_one() -> None:
    prompts = book()

    nonces = [{j.nonce for j in jobs_of(main_lanes(script(replay(), repeat=r, prompts=prompts))[0])} for r in (0, 1)]

    assert len(nonces[0]) == len(nonces[1]) == 2
    assert not nonces[0] & nonces[1]


ROWS = (
    Conversation(prompts=(1300,), answers=(7,), at_s=0.0, blocks=(1, 2, 3)),
    Conversation(prompts=(1800,), answers=(8,), at_s=1.0, blocks=(1, 2, 9, 10)),
    Conversation(prompts=(90,), answers=(9,), at_s=4.0, blocks=(1,)),
    Conversation(prompts=(1400,), answers=(9,), at_s=5.0, blocks=(1, 2, 3)),
)


def trace(**changes: object) -> Workload:
    return replay(**({"conversations": ROWS} | changes))


def test_a_trace_keeps_its_times_and_lengths() -> None:
    found = script(trace(speed=2.0))
    (lane,) = main_lanes(found)

    jobs = jobs_of(lane)
    assert [t.at_s for t in lane.tracks] == [0.0, 0.5, 2.0, 2.5]
    assert [j.output_tok for j in jobs] == [7, 8, 9, 9]
    assert [count(words(found, j.messages[0])) for j in jobs] == pytest.approx([1300, 1800, 90, 1400], rel=0.02)
    assert [j.expected_prompt_tok for j in jobs] == [1300, 1800, 90, 1400]


def shared_words(a: str, b: str) -> int:
    pairs = zip(re.findall(r"\w+|[^\w\s]", a), re.findall(r"\w+|[^\w\s]", b), strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), -1)


def test_blocks_of_one_name_are_the_same_text_and_no_others() -> None:
    found = script(trace())
    jobs = jobs_of(main_lanes(found)[0])
    first, second, short, last = (words(found, j.messages[0]) for j in jobs)

    head_tok = TEMPLATE_TOK + 6
    # Two blocks are common to the first two; the third of the second begins with other words.
    assert shared_words(first, second) == pytest.approx(6 + 2 * 512, abs=6)
    assert shared_words(first, short) < 6
    # The last has the first's whole prompt, and more of its third block.
    assert last.startswith(first)
    assert [j.shared_tok for j in jobs] == [head_tok, head_tok + 1024, None, 1300]
    assert [j.expected_cached_tok for j in jobs] == [0, 1024, 0, 1296]


def test_a_row_shorter_than_the_template_or_with_too_few_names_is_sent_all_the_same() -> None:
    rows = (
        Conversation(prompts=(5,), answers=(7,), at_s=0.0, blocks=(1,)),
        Conversation(prompts=(3000,), answers=(7,), at_s=1.0, blocks=(1,)),
    )
    found = script(trace(conversations=rows))

    short, long = jobs_of(main_lanes(found)[0])
    assert count(words(found, short.messages[0])) == short.expected_prompt_tok == TEMPLATE_TOK + 6 + 8
    assert count(words(found, long.messages[0])) == pytest.approx(3000, rel=0.02)


def test_the_same_blocks_are_another_text_in_another_run() -> None:
    prompts = book()

    runs = [script(trace(), repeat=r, prompts=prompts) for r in (0, 1)]

    first, again = (words(run, jobs_of(main_lanes(run)[0])[0].messages[0]) for run in runs)
    assert shared_words(first, again) < 6


@pytest.mark.parametrize("name", ["test-h", "test-i", "test-j", "trace", "overload"])
def test_shipped_workloads_become_scripts(name: str) -> None:
    w = load_workload(name, search=search_path(), changes={"requests": "20"} if name in {"test-h", "test-j"} else {})
    (cell,) = w.cells()

    found = script_of(cell, book(), TARGET, 0)

    assert sum(lane.requests for lane in main_lanes(found)) == cell.requests_per_repeat
    for job in (j for lane in main_lanes(found) for j in jobs_of(lane)):
        if job.expected_prompt_tok is not None and len(job.messages) == 1:
            assert count(words(found, job.messages[0])) == pytest.approx(job.expected_prompt_tok, rel=0.02)
