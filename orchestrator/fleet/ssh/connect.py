"""An authenticated connection to a host, or an error that says which host, what, and what to do.

Theory of operation. Three steps, each with its own kind of failure: (1) reach sshd and agree on ciphers, tried again
while the host may be starting; (2) hold the host's key against known_hosts, where nothing is ever accepted on sight;
(3) offer keys. Steps 2 and 3 are never tried again: a second try would get the same answer, or lock the user out.
"""

from __future__ import annotations

import errno
import getpass
import logging
import shlex
import socket
import time
from collections.abc import Sequence

import paramiko
import tenacity

from orchestrator.errors import AuthFailed, HostKeyChanged, HostKeyUnknown, HostUnreachable
from orchestrator.fleet.inventory import HostEntry
from orchestrator.fleet.known_hosts import HostKey, KnownHost, host_label, read_keys
from orchestrator.fleet.ssh.identities import Identities, identities
from orchestrator.fleet.ssh.link import ProxySocket, open_socket
from orchestrator.values import Sleep

DEFAULT_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
_TRY_S = 10.0
_KEEPALIVE_S = 15
_AUTH_S = 20.0
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")
_MAY_PASS = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNRESET, errno.ETIMEDOUT, errno.EPIPE}

# What paramiko would say is said by our errors; its threads must not write between the lines of a table.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class _MayPassError(Exception):
    """The host did not answer as sshd does; it may be starting. `args[0]` says how."""


def connect(entry: HostEntry, *, deadline_s: float, sleep: Sleep = time.sleep) -> paramiko.Transport:
    """An authenticated connection.

    Args:
        deadline_s: How long sshd may take to be there.

    Raises:
        HostUnreachable: Nothing answered as sshd does before the deadline.
        HostKeyUnknown, HostKeyChanged: known_hosts does not vouch for the key shown.
        AuthFailed: Every key was refused, or there is none.
    """
    known = known_keys(entry)
    transport = _reach(entry, known, deadline_s=deadline_s, sleep=sleep)
    try:
        check_host_key(entry, _shown_key(transport), known)
        _authenticate(entry, transport)
    except BaseException:
        transport.close()
        raise
    transport.set_keepalive(_KEEPALIVE_S)
    return transport


def fetch_host_key(entry: HostEntry, *, deadline_s: float, sleep: Sleep = time.sleep) -> HostKey:
    """The key that the host shows now, without logging in.

    Raises:
        HostUnreachable: As `connect`.
    """
    transport = _reach(entry, known_keys(entry), deadline_s=deadline_s, sleep=sleep)
    try:
        return _shown_key(transport)
    finally:
        transport.close()


def known_keys(entry: HostEntry) -> tuple[KnownHost, ...]:
    """What the known_hosts files say of the host."""
    return read_keys(entry.known_hosts or DEFAULT_KNOWN_HOSTS, key_label(entry))


def key_label(entry: HostEntry) -> str:
    """The host's name in known_hosts."""
    return entry.host_key_alias or host_label(entry.address, entry.port)


def check_host_key(entry: HostEntry, shown: HostKey, known: Sequence[KnownHost]) -> None:
    """Return when known_hosts vouches for the key.

    Raises:
        HostKeyUnknown: It knows no key of the host.
        HostKeyChanged: It knows another one, or has revoked this one.
    """
    revoked = [k for k in known if k.marker == "@revoked" and k.key == shown]
    if revoked:
        raise HostKeyChanged(
            entry.name,
            f"shows a revoked host key ({shown.display}, {revoked[0].file}:{revoked[0].line})",
            hint="do not use this host until its owner has given it a new key",
        )
    plain = [k for k in known if k.marker is None]
    if any(k.key == shown for k in plain) or _is_known_without_port(entry, shown):
        return
    if plain:
        raise _changed(entry, shown, plain)
    has_authority = any(k.marker == "@cert-authority" for k in known)
    why = "; its host certificate cannot be checked by gate0" if has_authority else ""
    raise HostKeyUnknown(
        entry.name,
        f"unknown host key {shown.display} of {entry.destination}{why}",
        hint=f"`gate0 hosts trust {entry.name}` shows it again and asks",
    )


def _is_known_without_port(entry: HostEntry, shown: HostKey) -> bool:
    """As ssh: a key that is on record for the bare address holds at another port too (but proves no change)."""
    bare = host_label(entry.address, 22)
    if entry.host_key_alias is not None or key_label(entry) == bare:
        return False
    return any(k.key == shown and k.marker is None for k in read_keys(entry.known_hosts or DEFAULT_KNOWN_HOSTS, bare))


def _changed(entry: HostEntry, shown: HostKey, plain: Sequence[KnownHost]) -> HostKeyChanged:
    same_type = [k for k in plain if k.key.type == shown.type] or plain
    old = same_type[0]
    remove = shlex.join(("ssh-keygen", "-R", key_label(entry), "-f", old.file))
    return HostKeyChanged(
        entry.name,
        f"host key changed: shows {shown.display}, on record is {old.key.display} ({old.file}:{old.line})",
        hint=f"if the host was reinstalled: `{remove}`, then `gate0 hosts trust {entry.name}`; "
        "if not, someone may sit in between",
    )


def _reach(entry: HostEntry, known: Sequence[KnownHost], *, deadline_s: float, sleep: Sleep) -> paramiko.Transport:
    end_s = time.monotonic() + deadline_s
    attempts = tenacity.Retrying(
        stop=tenacity.stop_after_delay(deadline_s),
        wait=tenacity.wait_exponential(multiplier=0.25, max=3.0) + tenacity.wait_random(0, 0.25),
        retry=tenacity.retry_if_exception_type(_MayPassError),
        sleep=lambda s: sleep(max(0.0, min(s, end_s - time.monotonic()))),
        reraise=True,
    )
    try:
        return attempts(_shake_hands, entry, known, end_s)
    except _MayPassError as exc:
        raise HostUnreachable(
            entry.name,
            f"no SSH answer from {entry.address} port {entry.port} for {deadline_s:g} s: {exc.args[0]}",
            hint=_reach_hint(entry),
        ) from exc.__cause__


def _reach_hint(entry: HostEntry) -> str:
    if entry.proxy_command or entry.proxy_jump:
        return f"try the way there by hand: `ssh {entry.destination}`; it goes through a proxy"
    return (
        f"is the host on, is its address right, does sshd listen? `ssh -v -p {entry.port} {entry.address}` shows more"
    )


def _shake_hands(entry: HostEntry, known: Sequence[KnownHost], end_s: float) -> paramiko.Transport:
    """One try: a socket, a banner, agreed keys."""
    left_s = max(1.0, min(_TRY_S, end_s - time.monotonic()))
    wire = _open(entry, left_s)
    transport = paramiko.Transport(wire)
    transport.banner_timeout = transport.handshake_timeout = left_s
    transport.auth_timeout = _AUTH_S
    _prefer_known_types(transport, known)
    try:
        transport.start_client(timeout=left_s)
        transport.get_remote_server_key()  # raises when the time was up
    except paramiko.ssh_exception.IncompatiblePeer as exc:
        transport.close()
        raise HostUnreachable(
            entry.name, f"sshd and gate0 have no algorithm in common: {exc}", hint="update OpenSSH on the host"
        ) from exc
    except (paramiko.SSHException, EOFError, OSError) as exc:
        complaint = wire.complaint() if isinstance(wire, ProxySocket) else ""
        transport.close()
        wire.close()
        raise _MayPassError(f"the proxy command ended: {complaint}" if complaint else _words(exc)) from exc
    return transport


def _open(entry: HostEntry, left_s: float) -> socket.socket:
    try:
        return open_socket(entry, timeout_s=left_s)
    except socket.gaierror as exc:
        if exc.errno == socket.EAI_AGAIN:
            raise _MayPassError(f"the name {entry.address} cannot be looked up now") from exc
        raise HostUnreachable(
            entry.name, f"no such host name: {entry.address}", hint="correct the address, or use the IP address"
        ) from exc
    except FileNotFoundError as exc:
        raise HostUnreachable(
            entry.name, f"the proxy's program is not there: {exc.filename}", hint="install it, or correct the proxy"
        ) from exc
    except OSError as exc:
        if isinstance(exc, TimeoutError) or exc.errno in _MAY_PASS:
            raise _MayPassError(_words(exc)) from exc
        raise HostUnreachable(entry.name, f"cannot connect to {entry.address}: {_words(exc)}") from exc


def _prefer_known_types(transport: paramiko.Transport, known: Sequence[KnownHost]) -> None:
    """Ask for the key types that known_hosts can vouch for, before all others."""
    types = [k.key.type for k in known if k.marker is None]
    wanted = [name for t in types for name in (_RSA_SIGNATURES if t == "ssh-rsa" else (t,))]
    options = transport.get_security_options()
    have = tuple(options.key_types)
    first = tuple(dict.fromkeys(name for name in wanted if name in have))
    options.key_types = first + tuple(name for name in have if name not in first)


def _shown_key(transport: paramiko.Transport) -> HostKey:
    key = transport.get_remote_server_key()
    return HostKey(type=key.get_name(), blob=key.asbytes())


def _authenticate(entry: HostEntry, transport: paramiko.Transport) -> None:
    user = entry.user or getpass.getuser()
    with identities(entry) as found:
        if not found.usable:
            raise _refused(entry, user, found, why="there is no key to offer")
        for identity in found.usable:
            try:
                still_wanted = transport.auth_publickey(user, identity.key)
            except paramiko.BadAuthenticationType as exc:
                raise _refused(
                    entry, user, found, why=f"the host takes no keys, only {', '.join(exc.allowed_types)}"
                ) from exc
            except (paramiko.SSHException, EOFError, OSError) as exc:
                if not transport.is_active():
                    raise _refused(entry, user, found, why="the host refused and hung up") from exc
                continue
            if still_wanted:
                raise _refused(entry, user, found, why=f"the host wants more than a key: {', '.join(still_wanted)}")
            return
        raise _refused(entry, user, found, why="the host refused every key")


def _refused(entry: HostEntry, user: str, found: Identities, *, why: str) -> AuthFailed:
    """The error with what was offered, what could not be, and the likeliest fix."""
    offered = ", ".join(f"{i.origin} {i.key.fingerprint}" for i in found.usable)
    left_out = ", ".join(f"{u.file} ({u.why})" for u in found.unusable)
    message = f"cannot log in as {user}@{entry.address}: {why}"
    message += f"; offered: {offered}" if offered else ""
    message += f"; not used: {left_out}" if left_out else ""
    locked = next((u.file for u in found.unusable if u.needs_passphrase), None)
    if locked:
        return AuthFailed(entry.name, message, hint=f"`ssh-add {locked}` lets the agent hold it")
    port = f" -p {entry.port}" if entry.port != 22 else ""
    return AuthFailed(
        entry.name, message, hint=f"`ssh-copy-id{port} {user}@{entry.address}`, or name the right user and key_file"
    )


def _words(exc: BaseException) -> str:
    """What a socket or paramiko error says, without its class and number."""
    if isinstance(exc, TimeoutError):
        return "timed out"
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror.lower()
    return str(exc).lower() or "the connection was closed"
