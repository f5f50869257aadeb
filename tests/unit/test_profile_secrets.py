"""Secrets come from the environment or from a file of the owner's alone, and show themselves nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InputError, InvalidFile
from orchestrator.profile.loading import load_profile
from orchestrator.profile.model import SecretRef
from orchestrator.profile.secrets import (
    default_secrets_file,
    generated_key_file,
    kept_key,
    read_secrets_file,
    resolve,
    resolve_env,
)
from orchestrator.values import Secret

CASES = Path(__file__).parents[1] / "cases" / "profile"
REF = SecretRef(name="HF_TOKEN")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets"
    path.write_text("# ours\n\nHF_TOKEN=from-file\nexport QUOTED='a b'\nEQUALS=a=b\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def test_the_environment_comes_before_the_file(file: Path) -> None:
    assert resolve(REF, environ={"HF_TOKEN": "from-env"}, file=file) == Secret("HF_TOKEN", "from-env")
    assert resolve(REF, environ={}, file=file) == Secret("HF_TOKEN", "from-file")


def test_an_empty_variable_counts_as_not_set(file: Path) -> None:
    assert resolve(REF, environ={"HF_TOKEN": ""}, file=file).value == "from-file"


def test_values_may_be_quoted_exported_and_hold_an_equals_sign(file: Path) -> None:
    assert read_secrets_file(file) == {"HF_TOKEN": "from-file", "QUOTED": "a b", "EQUALS": "a=b"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_can_read_is_refused_with_the_command_to_run(file: Path, mode: int) -> None:
    file.chmod(mode)

    with pytest.raises(InputError, match=f"can be read by others \\(mode {mode:04o}\\)") as caught:
        resolve(REF, environ={}, file=file)

    assert caught.value.hint == f"chmod 600 {file}"


def test_the_file_is_left_alone_when_the_environment_has_it(file: Path) -> None:
    file.chmod(0o644)

    assert resolve(REF, environ={"HF_TOKEN": "x"}, file=file).value == "x"


def test_a_missing_secret_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    loaded = load_profile(str(CASES / "good" / "every-key.yaml"), search=[])

    with pytest.raises(InputError) as caught:
        resolve_env(loaded.profile, environ={}, file=tmp_path / "absent", loaded=loaded)

    assert caught.value.message.startswith("secret `HF_TOKEN`, named at ")
    assert "every-key.yaml:47 is not set" in caught.value.message
    assert caught.value.hint is not None
    assert "export HF_TOKEN" in caught.value.hint


def test_a_near_miss_in_the_file_is_suggested(file: Path) -> None:
    with pytest.raises(InputError, match="did you mean `HF_TOKEN`"):
        resolve(SecretRef(name="HF_TOKN"), environ={}, file=file)


def test_a_malformed_line_is_named_but_not_shown(file: Path) -> None:
    file.write_text("HF_TOKEN=x\nmy-secret-word\n", encoding="utf-8")

    with pytest.raises(InvalidFile, match="secrets:2: expected `NAME=value`") as caught:
        read_secrets_file(file)

    assert "my-secret-word" not in str(caught.value)


def test_the_environment_of_a_server_holds_secrets_that_do_not_show(file: Path) -> None:
    loaded = load_profile(str(CASES / "good" / "every-key.yaml"), search=[])

    env = resolve_env(loaded.profile, environ={}, file=file)

    assert env["HF_TOKEN"] == Secret("HF_TOKEN", "from-file")
    assert env["VERSION"] == "1.10"
    assert "from-file" not in str(env)


def test_the_secrets_file_follows_xdg() -> None:
    assert default_secrets_file({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/gate0/secrets")
    assert default_secrets_file({"HOME": "/h"}) == Path("/h/.config/gate0/secrets")


def test_a_kept_key_that_others_can_read_or_that_is_empty_is_refused(tmp_path: Path) -> None:
    file = generated_key_file("p", {"XDG_STATE_HOME": str(tmp_path)})
    key = kept_key(file, lambda: "a-new-key")
    assert key.value == "a-new-key"

    file.chmod(0o644)
    with pytest.raises(InputError, match="can be read by others"):
        kept_key(file, lambda: "another")
    file.chmod(0o600)
    file.write_text("\n")
    with pytest.raises(InputError, match="holds no key"):
        kept_key(file, lambda: "another")


def test_a_key_that_cannot_be_kept_says_where_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "gate0").write_text("in the way")

    with pytest.raises(InputError, match=f"cannot keep the generated key in {tmp_path}") as refusal:
        kept_key(generated_key_file("p", {"XDG_STATE_HOME": str(tmp_path)}), lambda: "a-new-key")

    assert "XDG_STATE_HOME" in str(refusal.value.hint)


def test_keys_are_below_the_state_folder_of_the_user() -> None:
    assert generated_key_file("p", {"HOME": "/home/me"}) == Path("/home/me/.local/state/gate0/keys/p")
    assert generated_key_file("p", {"HOME": "/h", "XDG_STATE_HOME": ""}) == Path("/h/.local/state/gate0/keys/p")


def test_two_that_generate_at_the_same_time_get_one_key(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "p"

    def late() -> str:
        kept_key(file, lambda: "the-first")
        return "the-second"

    assert kept_key(file, late).value == "the-first"
