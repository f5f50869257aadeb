"""Which host a name means: hosts.yaml, ssh_config, destinations, `local`; and every way to get it wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.errors import InputError, InvalidFile
from orchestrator.fleet.hosts_file import find_inventory, read_inventory
from orchestrator.fleet.inventory import (
    HostEntry,
    Inventory,
    Link,
    NoSshConfig,
    SshSettings,
    all_hosts,
    find_hosts_file,
    named_hosts,
    resolve_host,
    resolve_hosts,
    split_destination,
)

CASES = sorted((Path(__file__).parents[1] / "cases" / "hosts").glob("*.yaml"))
NONE = NoSshConfig()


@dataclass
class FakeSshConfig:
    """An ssh_config with these names; `everywhere` stands for `Host *`."""

    hosts: dict[str, SshSettings] = field(default_factory=dict)
    everywhere: SshSettings = field(default_factory=SshSettings)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    def settings(self, name: str) -> SshSettings:
        return self.hosts.get(name, self.everywhere)


def inventory(tmp_path: Path, text: str) -> Inventory:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    return read_inventory(file)


TWO = """\
hosts:
  spark01: {address: 192.168.1.11, user: nvidia}
  spark02:
    address: 192.168.1.12
    user: me
    port: 2222
    key_file: keys/id_spark
    known_hosts: [~/.ssh/sparks, /etc/ssh/ssh_known_hosts]
    cache_path: ~/.cache/huggingface
    docker_host: unix:///run/user/1000/docker.sock
    link: {interface: enp1s0f1np1, hca: [rocep1s0f1, roceP2p1s0f1], ip: 192.168.177.12}
"""


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    (entry,) = resolve_hosts("spark02", inventory(tmp_path, TWO), NONE)

    assert entry == HostEntry(
        name="spark02",
        address="192.168.1.12",
        user="me",
        port=2222,
        key_files=(f"{tmp_path}/keys/id_spark",),
        known_hosts=("~/.ssh/sparks", "/etc/ssh/ssh_known_hosts"),
        cache_path="~/.cache/huggingface",
        docker_host="unix:///run/user/1000/docker.sock",
        link=Link(interface="enp1s0f1np1", hca=("rocep1s0f1", "roceP2p1s0f1"), ip="192.168.177.12"),
        source=entry.source,
    )


def test_an_entry_knows_its_line(tmp_path: Path) -> None:
    entry = resolve_host("spark02", inventory(tmp_path, TWO), NONE)

    assert entry.source == f"{tmp_path}/hosts.yaml:3"


def test_hosts_come_in_the_order_of_the_command_line(tmp_path: Path) -> None:
    entries = resolve_hosts(" spark02 ,spark01,", inventory(tmp_path, TWO), NONE)

    assert [e.name for e in entries] == ["spark02", "spark01"]


@pytest.mark.parametrize(
    ("word", "user", "address", "port"),
    [
        ("192.168.1.11", None, "192.168.1.11", 22),
        ("me@spark.lan:2200", "me", "spark.lan", 2200),
        ("me@[fd00::1]:2200", "me", "fd00::1", 2200),
    ],
)
def test_an_entry_may_be_one_word(tmp_path: Path, word: str, user: str | None, address: str, port: int) -> None:
    entry = resolve_host("box", inventory(tmp_path, f'hosts: {{box: "{word}"}}\n'), NONE)

    assert (entry.user, entry.address, entry.port) == (user, address, port)


def test_an_entry_may_be_this_machine(tmp_path: Path) -> None:
    entry = resolve_host("spark01", inventory(tmp_path, "hosts: {spark01: local}\n"), NONE)

    assert (entry.name, entry.is_local, entry.address) == ("spark01", True, "127.0.0.1")


def test_local_needs_no_entry() -> None:
    assert resolve_host("local", Inventory(), NONE).is_local


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("me@spark.lan", ("me", "spark.lan", None)),
        ("me@spark.lan:2200", ("me", "spark.lan", 2200)),
        ("spark.lan", (None, "spark.lan", None)),
        ("fd00::1", (None, "fd00::1", None)),
        ("me@fd00::1", ("me", "fd00::1", None)),
        ("me@[fd00::1]", ("me", "fd00::1", None)),
        ("me@corp@spark.lan", ("me@corp", "spark.lan", None)),
    ],
)
def test_a_destination_splits(word: str, expected: tuple[object, ...]) -> None:
    assert split_destination(word) == expected


@pytest.mark.parametrize("word", ["me@", "@host", "host:", "host:http", "host:0", "host:70000", "a:b:c", "[fd00::1"])
def test_a_malformed_destination_is_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"not a|no user"):
        split_destination(word)


def test_a_destination_needs_no_entry() -> None:
    entry = resolve_host("me@10.66.0.11:2200", Inventory(), NONE)

    assert (entry.user, entry.address, entry.port, entry.name) == ("me", "10.66.0.11", 2200, "10.66.0.11-2200")


def test_an_ssh_alias_brings_its_settings() -> None:
    settings = SshSettings(is_named=True, address="10.0.0.9", user="nvidia", port=2200, key_files=("~/.ssh/spark",))

    entry = resolve_host("spark", Inventory(), FakeSshConfig({"spark": settings}))

    assert (entry.address, entry.user, entry.port, entry.key_files) == ("10.0.0.9", "nvidia", 2200, ("~/.ssh/spark",))
    assert entry.source == "ssh_config"


def test_hosts_yaml_stands_over_ssh_config_which_fills_the_gaps(tmp_path: Path) -> None:
    ssh_config = FakeSshConfig(
        {"spark.lan": SshSettings(is_named=True, address="10.0.0.9", user="other", port=2200, proxy_jump="bastion")}
    )

    entry = resolve_host("box", inventory(tmp_path, "hosts: {box: me@spark.lan}\n"), ssh_config)

    assert (entry.user, entry.address, entry.port, entry.proxy_jump) == ("me", "10.0.0.9", 2200, "bastion")


def test_an_own_proxy_stands_over_the_other_kind_in_ssh_config(tmp_path: Path) -> None:
    ssh_config = FakeSshConfig(everywhere=SshSettings(proxy_command="nc %h %p"))
    text = "hosts: {box: {address: 10.0.0.9, proxy_jump: bastion}}\n"

    entry = resolve_host("box", inventory(tmp_path, text), ssh_config)

    assert (entry.proxy_jump, entry.proxy_command) == ("bastion", None)


def test_an_unknown_host_names_the_nearest_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown host: spark1") as caught:
        resolve_hosts("spark1", inventory(tmp_path, TWO), NONE)

    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean `spark01`? else add it to ")


def test_an_unknown_host_without_hosts_yaml_says_to_write_one() -> None:
    with pytest.raises(InputError) as caught:
        resolve_hosts("box", Inventory(), NONE)

    assert caught.value.hint == "write a hosts.yaml, use an ssh_config alias, or write user@box"


@pytest.mark.parametrize("words", ["", ",", " , "])
def test_no_host_at_all_is_refused(words: str) -> None:
    with pytest.raises(InputError, match="no host was named"):
        resolve_hosts(words, Inventory(), NONE)


def test_a_host_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="host named twice: spark01"):
        resolve_hosts("spark01,spark01", inventory(tmp_path, TWO), NONE)


@pytest.mark.parametrize(
    "words",
    ["a@box.lan,b@box.lan", "a@box.lan,b@BOX.lan:22", "local,me@127.0.0.1", "local,me@localhost"],
)
def test_two_names_of_one_machine_are_refused(words: str) -> None:
    with pytest.raises(InputError, match=r"same machine|named twice"):
        resolve_hosts(words, Inventory(), NONE)


@pytest.mark.parametrize("words", ["a@127.0.0.1:2201,a@127.0.0.1:2202", "local,a@127.0.0.1:2201"])
def test_two_forwarded_ports_are_two_machines(words: str) -> None:
    assert len(resolve_hosts(words, Inventory(), NONE)) == 2


def test_only_hosts_yaml_is_meant_by_all_hosts(tmp_path: Path) -> None:
    known = inventory(tmp_path, TWO)
    ssh_config = FakeSshConfig({"github.com": SshSettings(is_named=True)})

    assert [e.name for e in all_hosts(known, ssh_config)] == ["spark01", "spark02"]
    assert [e.name for e in named_hosts(known, ssh_config)] == ["spark01", "spark02", "github.com"]


def test_the_option_stands_over_the_variable_over_here_over_the_users_folder(tmp_path: Path) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    places = [tmp_path / "option.yaml", tmp_path / "variable.yaml", here / "hosts.yaml"]
    places.append(home / ".config" / "gate0" / "hosts.yaml")
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(TWO)
    env = {"GATE0_HOSTS": str(places[1])}

    assert find_hosts_file(str(places[0]), env, cwd=here, home=home) == places[0]
    assert find_hosts_file(None, env, cwd=here, home=home) == places[1]
    assert find_hosts_file(None, {}, cwd=here, home=home) == places[2]
    assert find_hosts_file(None, {}, cwd=tmp_path, home=home) == places[3]
    assert find_hosts_file(None, {}, cwd=tmp_path, home=tmp_path) is None


def test_xdg_config_home_is_honoured(tmp_path: Path) -> None:
    file = tmp_path / "xdg" / "gate0" / "hosts.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TWO)

    assert find_hosts_file(None, {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}, cwd=tmp_path, home=tmp_path) == file


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such hosts file") as caught:
        find_inventory(None, {"GATE0_HOSTS": "no.yaml"}, cwd=tmp_path, home=tmp_path)

    assert caught.value.hint == "it was named by GATE0_HOSTS"


@pytest.mark.parametrize("file", CASES, ids=lambda f: f.stem)
def test_a_malformed_file_is_refused_with_every_problem_on_its_line(file: Path) -> None:
    expected = json.loads(file.with_suffix(".json").read_text())

    with pytest.raises(InvalidFile) as caught:
        read_inventory(file)

    assert [[p.line, p.path, p.message] for p in caught.value.problems] == expected
