"""ssh_config as gate0 reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.fleet.inventory import HostEntry
from orchestrator.fleet.ssh import OpenSshConfig, read_ssh_config
from orchestrator.fleet.ssh.link import proxy_argv

TEXT = """\
Host spark01
  HostName 192.168.1.11
  User nvidia
  Port 2222
  IdentityFile ~/.ssh/id_spark
  IdentitiesOnly yes
  UserKnownHostsFile "/a b/known" /c/known
  GlobalKnownHostsFile /dev/null
  ProxyCommand nc -X 5 %h %p
Host spark02 spark-*
  ProxyJump me@bastion:2200
  HostKeyAlias sparks
Host *
  User everyone
"""


def test_an_alias_has_its_settings() -> None:
    found = OpenSshConfig(TEXT).settings("spark01")

    assert (found.is_named, found.address, found.user, found.port) == (True, "192.168.1.11", "nvidia", 2222)
    assert found.key_files == (str(Path("~/.ssh/id_spark").expanduser()),)
    assert found.known_hosts == ("/a b/known", "/c/known")
    assert found.proxy_command == "nc -X 5 192.168.1.11 2222"
    assert found.identities_only


def test_a_pattern_names_a_host_too() -> None:
    found = OpenSshConfig(TEXT).settings("spark-lab")

    assert (found.is_named, found.proxy_jump, found.host_key_alias) == (True, "me@bastion:2200", "sparks")


def test_the_pattern_of_all_names_nobody() -> None:
    found = OpenSshConfig(TEXT).settings("elsewhere")

    assert (found.is_named, found.user, found.known_hosts) == (False, "everyone", ())


def test_names_are_those_without_patterns() -> None:
    assert OpenSshConfig(TEXT).names == ("spark01", "spark02")


@pytest.mark.parametrize("word", ["ProxyCommand none", "ProxyJump none"])
def test_none_means_no_proxy(word: str) -> None:
    found = OpenSshConfig(f"Host a\n  {word}\n").settings("a")

    assert (found.proxy_command, found.proxy_jump) == (None, None)


def test_includes_are_followed_and_the_block_goes_on(tmp_path: Path) -> None:
    more = tmp_path / "more.d"
    more.mkdir()
    (more / "sync.conf").write_text("Host synced\n  HostName 10.0.0.7\n")
    config = tmp_path / "config"
    config.write_text(f'Host mine\n  Include "{more}"/*\n  User me\nHost last\n  User you\n')

    found = read_ssh_config(str(config))

    assert found.settings("synced").address == "10.0.0.7"
    assert [found.settings(n).user for n in ("mine", "last", "synced")] == ["me", "you", None]


def test_an_include_of_itself_ends(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"Include {config}\nHost a\n  User me\n")

    assert read_ssh_config(str(config)).settings("a").user == "me"


def test_a_port_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="no number: ssh"):
        OpenSshConfig("Host a\n  Port ssh\n").settings("a")


def test_a_file_that_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(InputError, match="cannot read ssh_config"):
        OpenSshConfig("Host\n")


def test_a_named_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no such ssh_config"):
        read_ssh_config("/no/such/config")


def test_no_proxy_is_plain_tcp() -> None:
    assert proxy_argv(HostEntry(name="a", address="10.0.0.1")) is None


def test_a_proxy_commands_tokens_are_filled_in_quoted() -> None:
    entry = HostEntry(name="a", address="10.0.0.1; id", port=2222, user="me", proxy_command="nc %h %p -l %r 100%%h")

    assert proxy_argv(entry) == ("/bin/sh", "-c", "exec nc '10.0.0.1; id' 2222 -l me 100%h")


@pytest.mark.parametrize(
    ("jump", "config", "words"),
    [
        ("bastion", None, ("ssh", "-o", "BatchMode=yes", "-W", "[10.0.0.1]:22", "ssh://bastion")),
        (
            "a,me@b:22",
            "/c",
            ("ssh", "-F", "/c", "-J", "a", "-o", "BatchMode=yes", "-W", "[10.0.0.1]:22", "ssh://me@b:22"),
        ),
    ],
)
def test_a_jump_is_the_users_own_ssh(jump: str, config: str | None, words: tuple[str, ...]) -> None:
    assert proxy_argv(HostEntry(name="a", address="10.0.0.1", proxy_jump=jump, config_file=config)) == words
