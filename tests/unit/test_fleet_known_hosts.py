"""known_hosts: which lines speak of a host, and how a line is added."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from orchestrator.fleet.known_hosts import HostKey, append_key, find_keys, host_label, read_keys

KEY = HostKey(
    type="ssh-ed25519",
    blob=base64.b64decode("AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"),
)
BLOB = base64.b64encode(KEY.blob).decode()


def test_a_fingerprint_is_what_ssh_keygen_prints() -> None:
    """The key of github.com, whose fingerprint GitHub publishes."""
    assert KEY.fingerprint == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


@pytest.mark.parametrize(("port", "label"), [(22, "spark.lan"), (2222, "[spark.lan]:2222")])
def test_a_label_names_the_port_only_when_it_is_another(port: int, label: str) -> None:
    assert host_label("spark.lan", port) == label


@pytest.mark.parametrize(
    ("names", "label", "is_match"),
    [
        ("spark01", "spark01", True),
        ("SPARK01", "spark01", True),
        ("spark01,10.66.0.11", "10.66.0.11", True),
        ("spark02", "spark01", False),
        ("spark*", "spark01", True),
        ("spark0?", "spark01", True),
        ("spark?", "spark01", False),
        ("*,!spark01", "spark01", False),
        ("!spark02,spark*", "spark01", True),
        ("[10.66.0.11]:2222", "[10.66.0.11]:2222", True),
        ("10.66.0.11", "[10.66.0.11]:2222", False),
        ("[10.66.0.1*]:2222", "[10.66.0.11]:2222", True),
        ("[0-9]", "5", False),
        ("|1|broken", "spark01", False),
        ("|1|!!|!!", "spark01", False),
    ],
)
def test_names_match_as_in_ssh(names: str, label: str, is_match: bool) -> None:
    found = find_keys(f"{names} ssh-ed25519 {BLOB}\n", label, file="f")

    assert bool(found) == is_match


def test_lines_that_cannot_be_read_are_skipped() -> None:
    text = f"# comment\n\nspark01\nspark01 ssh-ed25519 n@t-base64\nspark01 ssh-ed25519 {BLOB} a comment\n"

    (found,) = find_keys(text, "spark01", file="f")

    assert (found.line, found.key, found.marker) == (5, KEY, None)


def test_a_marker_is_kept() -> None:
    (found,) = find_keys(f"@revoked * ssh-ed25519 {BLOB}\n", "spark01", file="f")

    assert (found.marker, found.key) == ("@revoked", KEY)


def test_a_file_that_is_not_there_is_empty() -> None:
    assert read_keys(("/no/such/file",), "spark01") == ()


def test_an_added_key_is_found_again_and_is_only_its_owners(tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"

    append_key(file, "[spark.lan]:2222", KEY)

    assert [k.key for k in read_keys((str(file),), "[spark.lan]:2222")] == [KEY]
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)


def test_what_was_in_the_file_stays_also_without_a_final_newline(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("# mine\nother ssh-rsa AAAA")

    append_key(file, "spark01", KEY)

    assert file.read_text() == f"# mine\nother ssh-rsa AAAA\nspark01 ssh-ed25519 {BLOB}\n"


def test_a_symlinked_file_stays_a_symlink(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "known_hosts"
    real.write_text("")
    link.symlink_to(real)

    append_key(link, "spark01", KEY)

    assert link.is_symlink()
    assert BLOB in real.read_text()


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    append_key(tmp_path / "known_hosts", "spark01", KEY)

    assert [p.name for p in tmp_path.iterdir()] == ["known_hosts"]
