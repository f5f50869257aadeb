"""The long prefix that agents share: its length, its novelty, and what it costs to fit it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import islice

import pytest

from orchestrator.errors import InputError
from orchestrator.sweep.passages_code import CAST, KIND_OF, WORDS_OF, renamed, sections, stock, words_with_code
from orchestrator.sweep.prompts import Counter, Part, PromptBook

TEMPLATE_TOK = 9
LONG_TOK = 54_282
NOVEL_CHARS = 200
"""No stretch of so many characters comes twice in a long prefix; the longest that does has 120 to 185, by seed."""


def words_and_marks(text: str) -> int:
    """A vocabulary of whole words, marks, and runs of blanks that are more than one."""
    return TEMPLATE_TOK + len(re.findall(r"\w+|[^\w\s]|\n\s*", text))


def first_word_is_split(text: str) -> int:
    """As vocabularies without a token for a word that has no space before it: some first words are two."""
    return words_and_marks(text) + (len(text.split(maxsplit=1)[0]) > 4)


class Counts:
    """Counts, and remembers what was asked."""

    def __init__(self, count: Callable[[str], int] = words_and_marks) -> None:
        self._count = count
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return self._count(text)


def book(
    count: Callable[[str], int | None] = words_and_marks, *, is_cheap: bool = True, nonce_seed: int = 1
) -> PromptBook:
    return PromptBook(Counter(count=count, is_cheap=is_cheap), seed=1, rng=random.Random(nonce_seed))


def repeats(text: str, chars: int) -> bool:
    seen: set[int] = set()
    for i in range(len(text) - chars + 1):
        key = hash(text[i : i + chars])
        if key in seen:
            return True
        seen.add(key)
    return False


@pytest.mark.parametrize("count", [words_and_marks, first_word_is_split])
@pytest.mark.parametrize("tok", [64, 4096, LONG_TOK])
def test_prefix_has_exactly_the_tokens_asked_for(count: Callable[[str], int], tok: int) -> None:
    prompts = book(count)

    found = [prompts.prefix(tok) for _ in range(3)]

    assert {count(f"{p.nonce} {p.text}") for p in found} == {tok}
    assert {p.prompt_tok for p in found} == {tok}


def test_prefix_is_the_same_text_for_the_same_seed_and_number_behind_another_nonce() -> None:
    one, two = book(nonce_seed=1), book(nonce_seed=2)

    first, second, other = one.prefix(4096), two.prefix(4096), two.prefix(4096, 1)

    assert first.text.split()[:500] == second.text.split()[:500]
    assert first.nonce != second.nonce
    assert other.text.split()[:20] != second.text.split()[:20]


def test_each_prefix_is_cold() -> None:
    prompts = book()

    assert len({prompts.prefix(2000, number).nonce for number in range(40)}) == 40


@pytest.mark.parametrize("seed", [1, 2, 42])
def test_a_long_prefix_says_nothing_twice(seed: int) -> None:
    found = PromptBook(Counter(count=words_and_marks, is_cheap=True), seed=seed).prefix(LONG_TOK)

    assert len(found.text) > 180_000
    assert not repeats(found.text, NOVEL_CHARS)


def test_prefix_is_prose_and_code_of_all_kinds() -> None:
    text = " ".join(words_with_code("1", 9000))

    for fence in ("```python\n", "```rust\n", "```sql\n", "```bash\n", "```json\n", "```yaml\n", "```toml\n"):
        assert fence in text
    assert text.count("\n    ") > 300, "code keeps its indents"


def test_fitting_a_long_prefix_asks_seldom() -> None:
    counts = Counts()
    book(counts).prefix(LONG_TOK)

    assert sum(len(text) > 50_000 for text in counts.asked) <= 16


def test_where_counting_is_a_prefill_a_long_prefix_costs_few_and_no_nonce_is_used_twice() -> None:
    counts = Counts()
    prompts = book(counts, is_cheap=False)

    found = [prompts.prefix(LONG_TOK, number) for number in range(6)]

    long_ones = [text for text in counts.asked if len(text) > 50_000]
    assert len(long_ones) <= 5
    assert all(abs(words_and_marks(f"{p.nonce} {p.text}") - LONG_TOK) < 0.002 * LONG_TOK for p in found)
    assert {p.prompt_tok for p in found} == {words_and_marks(long_ones[-1])}
    assert not any(text.startswith(p.nonce) for text in counts.asked for p in found)
    assert max(words_and_marks(text) for text in counts.asked) < 1.03 * LONG_TOK


def test_server_that_tells_nothing_still_gets_a_prefix() -> None:
    found = book(lambda _: None, is_cheap=False).prefix(8000)

    assert found.prompt_tok is None
    assert 6000 < words_and_marks(found.text) < 10_000


def test_prefix_below_the_template_is_refused_by_its_own_name() -> None:
    with pytest.raises(InputError, match=r"prefix_tokens 12: .* alone take 1\d"):
        book().prefix(12)


@pytest.mark.parametrize("count", [words_and_marks, first_word_is_split])
@pytest.mark.parametrize("tok", [16, 100, 700])
def test_questions_add_what_was_asked_and_differ_from_their_first_word(count: Callable[[str], int], tok: int) -> None:
    prompts = book(count)
    prefix = prompts.prefix(2000)

    questions = prompts.questions([tok] * 40)

    whole = {count(f"{prefix.nonce} {prefix.text} {q.nonce} {q.text}") for q in questions}
    assert whole == {2000 + tok}
    assert {q.tok for q in questions} == {tok}
    assert len({q.nonce.split()[0] for q in questions}) == 40


@pytest.mark.parametrize("count", [words_and_marks, first_word_is_split])
def test_questions_and_answers_that_are_messages_have_their_length_at_a_messages_beginning(
    count: Callable[[str], int],
) -> None:
    prompts = PromptBook(Counter(count=count, is_cheap=True, overhead_tok=TEMPLATE_TOK), seed=1, rng=random.Random(1))

    questions = prompts.questions([30] * 40, is_message=True)
    answers = [prompts.answer(tok, number) for number in range(20) for tok in (4, 90, 400)]

    assert {count(f"{q.nonce} {q.text}") - TEMPLATE_TOK for q in questions} == {30}
    assert [count(a.text) - TEMPLATE_TOK for a in answers] == [4, 90, 400] * 20
    assert [a.tok for a in answers] == [4, 90, 400] * 20


def test_many_lengths_of_questions_are_few_fits_where_counting_is_a_prefill() -> None:
    counts = Counts()
    lengths = list(range(40, 240))

    questions = book(counts, is_cheap=False).questions(lengths)

    assert len(counts.asked) < 250
    assert {q.tok for q in questions[:4]} == {40, 41, 42, 43}
    assert {q.tok for q in questions[4:]} == {None}
    for q, tok in zip(questions, lengths, strict=True):
        assert abs(words_and_marks(f"{q.nonce} {q.text}") - TEMPLATE_TOK - tok) < 0.2 * tok


def test_answers_are_fixed_by_seed_and_number() -> None:
    one, two = book(nonce_seed=1), book(nonce_seed=2)

    first, again, other = one.answer(120, 3), two.answer(120, 3), two.answer(120, 4)

    assert first == again == Part(text=first.text, tok=120)
    assert other.text != first.text


def test_a_turns_template_is_learned_from_one_request() -> None:
    asked: list[list[tuple[str, str]]] = []

    def ask(said: object) -> int:
        asked.append(list(said))  # type: ignore[call-overload]
        return TEMPLATE_TOK + 11 + sum(words_and_marks(text) - TEMPLATE_TOK for _, text in asked[-1])

    counter = Counter(count=words_and_marks, is_cheap=True, overhead_tok=TEMPLATE_TOK, ask=ask)
    prompts = PromptBook(counter, seed=1)

    assert [prompts.turn_overhead_tok, prompts.turn_overhead_tok] == [11, 11]
    assert [role for role, _ in asked[0]] == ["user", "assistant", "user"]
    assert len(asked) == 1


def test_renaming_is_consistent_within_a_piece() -> None:
    text = "parcel_count = len(parcels)  # a PARCEL of class Parcel weighs 1250 g, twice 1250 an hour"

    found = renamed(text, random.Random(1), is_code=True)

    (name,) = re.findall(r"^(\w+)_count", found)
    assert f"len({name}s)" in found
    assert name.upper() in found
    assert name.capitalize() in found
    assert "parcel" not in found.lower()
    assert "1250" not in found
    assert len(set(re.findall(r"\d{4}", found))) == 1


def test_names_of_a_section_come_from_the_pool() -> None:
    assert {kind for kind in CAST if kind != "locals"} == set(WORDS_OF)
    assert all(len(set(words)) == len(words) for words in WORDS_OF.values())
    assert len(stock()) >= 20
    first = list(islice(sections("1"), 60))
    assert not any(re.search(r"\b(parcel|voucher|kiln)s?\b", section) for section in first)
    assert len(KIND_OF) > 150
