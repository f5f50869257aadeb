"""Hosts over SSH: the only room that knows paramiko."""

from orchestrator.fleet.ssh.config import OpenSshConfig, read_ssh_config
from orchestrator.fleet.ssh.connect import DEFAULT_KNOWN_HOSTS, check_host_key, fetch_host_key, key_label, known_keys
from orchestrator.fleet.ssh.host import SshHost

__all__ = [
    "DEFAULT_KNOWN_HOSTS",
    "OpenSshConfig",
    "SshHost",
    "check_host_key",
    "fetch_host_key",
    "key_label",
    "known_keys",
    "read_ssh_config",
]
