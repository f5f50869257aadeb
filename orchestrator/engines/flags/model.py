"""What one version of an engine takes on its command line: shipped with gate0, or read from an image itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.values import Json


class ValueKind(StrEnum):
    """What follows a flag. NONE: nothing may follow (a bare switch). JSON_OR_STR: a mapping, or a word."""

    NONE = "none"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STR = "str"
    LIST = "list"
    JSON = "json"
    JSON_OR_STR = "json|str"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, or one key of a JSON-valued flag.

    Attributes:
        name: Canonical spelling with its dashes (`--max-num-seqs`); of a JSON key the key itself.
        aliases: Other spellings that mean the same.
        negatives: Spellings that mean false.
        item: Of a list, what its items are.
        nargs: As argparse has it: None (one word), `?`, `*`, `+`, or a number of words.
        choices: The closed list of values; (): any.
        known: Values that are known to work; another one is checked by the engine later, or comes from a plugin.
        is_any_case: Choices and known values are accepted in upper and lower case, `-` counting as `_`.
        also: Words accepted beside the kind (`auto`, `-1`).
        default: None when there is none, or when it is computed; `default_text` then says what the engine says.
        is_nullable: The literal `None` is accepted.
        is_repeatable: Given again it adds to what was given; of any other the last one wins.
        is_human_int: `8k` and `8K` are numbers (1000 and 1024), and so on with m, g and t.
        bounds: `gt`, `ge`, `lt`, `le`.
        json_class: Name of the class in `Catalogue.json_classes` that holds the keys of its JSON.
        deprecated: What the engine says of it; None: it is not.
        is_inert: It is taken and does nothing.
        is_removed: It is still listed, and ends the start.
        successor: What to write instead of a deprecated, inert or removed one (`--load-mode none`).
        env: The variable that says the same (llama-server).
    """

    name: str
    kind: ValueKind
    aliases: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    item: ValueKind | None = None
    nargs: str | int | None = None
    choices: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    is_any_case: bool = False
    also: tuple[str, ...] = ()
    default: Json = None
    default_text: str | None = None
    is_nullable: bool = False
    is_repeatable: bool = False
    is_human_int: bool = False
    bounds: Mapping[str, float] = field(default_factory=dict)
    json_class: str | None = None
    deprecated: str | None = None
    is_inert: bool = False
    is_removed: bool = False
    successor: str | None = None
    env: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """How this engine's parser reads words.

    Attributes:
        underscores: `--max_num_seqs` is `--max-num-seqs`.
        abbreviations: `--max-num-s` is taken for the one flag that begins so; several: the engine refuses.
        dotted: `--compilation-config.mode 3` sets one key of a JSON flag.
        equals: `--flag=value` is understood.
        positional: Names of the words without a flag (`model_tag`).
        null_word: The word that stands for null.
    """

    underscores: bool = True
    abbreviations: bool = True
    dotted: bool = False
    equals: bool = True
    positional: tuple[str, ...] = ()
    null_word: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Every flag of one engine version.

    Attributes:
        version: `0.31.0`, `0.5.23`, `b10434`; of an image's own list what the image says of itself.
        is_own: Read from the image (or binary) itself: what is not here is not there.
        flags: By canonical name.
        json_classes: Keys of each JSON class, by class and key. A class may be missing: its keys are then unknown.
        env: Variables that this version reads, by name, with their default as text; empty: not known.
        env_prefix: The engine complains of (or ignores) unknown variables that begin so (`VLLM_`).
        is_partial: Only names are known for sure (versions older than the first whole list): kinds and choices are
            those of the nearest whole list.
    """

    engine: str
    version: str
    flags: Mapping[str, Flag]
    conventions: Conventions = field(default_factory=Conventions)
    json_classes: Mapping[str, Mapping[str, Flag]] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    env_prefix: str | None = None
    is_own: bool = False
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The list that a profile is checked against. `wanted`: the version that the image tells, None when it tells none.

    `note`: why the list is not that of the wanted version, for a warning; None when it is.
    """

    catalogue: Catalogue
    wanted: str | None = None
    note: str | None = None


class Severity(StrEnum):
    """ERROR ends before anything starts. WARNING: it will probably not do what is meant. ADVICE: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing about one word of a command line, or one variable.

    Attributes:
        code: `unknown_flag`, `ambiguous_flag`, `abbreviated_flag`, `removed_flag`, `deprecated_flag`, `inert_flag`,
            `flag_value`, `flag_choice`, `flag_range`, `missing_value`, `unexpected_value`, `json_syntax`, `json_key`,
            `repeated_flag`, `flag_needs`, `unknown_variable`, `removed_variable`, …
        path: Where it was declared (`serve.kv_cache_dtype`, `flags.max-num-seqs`, `args[2]`, `env.VLLM_X`).
        message: With the value seen, and the engine version whose list was used.
        hint: The fix: the nearest name, the version where it exists, the choices.
        flag: Canonical name or spelling of the flag it is about, None when it is about none.
    """

    severity: Severity
    code: str
    path: str
    message: str
    hint: str | None = None
    flag: str | None = None
