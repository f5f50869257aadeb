"""Is the profile that an export carries still what the file says? Whoever edits the words by hand means the words.

Theory of operation. The carried profile is exported again to the same form, and that text is read by the same reader:
what the two readings differ in is what was edited. So no form needs a table of what it leaves out or says in its own
way. The hosts' addresses are free, because whoever runs the file puts in their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.engines.engine import Engine
from orchestrator.errors import InputError
from orchestrator.foreign.exporting.common import subject_of
from orchestrator.foreign.exporting.forms import FORMS
from orchestrator.foreign.model import Launch
from orchestrator.profile.building import build_profile
from orchestrator.profile.model import EnvValue, Profile
from orchestrator.values import Json

Read = Callable[[str, str], Sequence[Launch]]
"""A text and the name of its source to launches: what read the file that is being judged."""

COMPARED = (
    *("image", "entrypoint", "words", "env", "network", "ipc", "shm_gib", "mounts", "ports", "ulimits", "restart"),
    *("gpus", "nodes"),
)
"""Fields of a launch that say what runs."""

ADDRESSES = tuple(f"rank-{rank}.invalid" for rank in range(8))


def still_true(carried: Mapping[str, Json], launch: Launch, engines: Mapping[str, Engine], read: Read) -> str | None:
    """None when the carried profile still comes to what the file says; else the first thing that differs, in words."""
    try:
        profile = build_profile(carried)
        texts = tuple(_texts(profile, launch.form, engines))
        expected = [known for text in texts for known in read(text, launch.source)]
    except InputError as exc:
        return f"it cannot be used: {exc.message.splitlines()[0]}"
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        return f"it is no profile: {type(exc).__name__}: {exc}"
    found = [tuple(_differences(known, launch)) for known in expected]
    nearest = min(found, key=len, default=("it is of another form",))
    return nearest[0] if nearest else None


def _texts(profile: Profile, form: str, engines: Mapping[str, Engine]) -> Iterator[str]:
    """All that the profile could have been exported as: with and without what only measuring needs, each host's."""
    engine = engines.get(profile.engine)
    if engine is None or form not in FORMS:
        raise InputError(f"engine {profile.engine} in form {form}")
    for is_bare in (False, True):
        subject = subject_of(profile, engine, addresses=ADDRESSES, is_bare=is_bare)
        yield from (file.text for file in FORMS[form](subject).files)


def _differences(known: Launch, launch: Launch) -> Iterator[str]:
    for name in COMPARED:
        before, now = getattr(known, name), getattr(launch, name)
        if name == "words":
            yield from _words(before, now)
        elif name == "env":
            yield from _env(before, now)
        elif before != now:
            yield f"{name} is {_shown(now)}, and not {_shown(before)}"


def _words(before: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """Named by the option they belong to; values are left out, for one may be a key."""
    for index in range(max(len(before), len(now))):
        if index >= len(now):
            yield f"{_option(before, index)} is gone"
        elif index >= len(before):
            yield f"{_option(now, index)} is new"
        elif not _same(before[index], now[index]):
            yield f"{_option(now, index)} differs"


def _option(words: Sequence[str], index: int) -> str:
    named = next((word for word in reversed(words[: index + 1]) if re.match(r"--?[A-Za-z]", word)), None)
    return f"`{named.partition('=')[0]}`" if named else f"word {index + 1} of the command"


def _env(before: Mapping[str, EnvValue], now: Mapping[str, EnvValue]) -> Iterator[str]:
    for name in (*before, *(n for n in now if n not in before)):
        if name not in before or name not in now:
            yield f"env {name} is {'new' if name in now else 'gone'}"
        elif not _same_value(before[name], now[name]):
            yield f"env {name} has another value"


def _same_value(one: EnvValue, other: EnvValue) -> bool:
    return _same(one, other) if isinstance(one, str) and isinstance(other, str) else one == other


def _same(known: str, word: str) -> bool:
    """Equal, but for the hosts' addresses."""
    if ".invalid" not in known:
        return known == word
    parts = re.split("|".join(map(re.escape, ADDRESSES)), known)
    return re.fullmatch(r"[^\s]+".join(map(re.escape, parts)), word) is not None


def _shown(value: object) -> str:
    return "not said" if value is None or value == () else str(value)
