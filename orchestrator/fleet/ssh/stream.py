"""A channel as the socket-like end that `Host.open_stream` promises."""

from __future__ import annotations

import contextlib

import paramiko


class ChannelStream:
    """A command's stdin and stdout. It reads as ended when the command ends or the connection breaks."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def sendall(self, data: bytes) -> None:
        try:
            self._channel.sendall(data)
        except EOFError as exc:  # what paramiko raises when the connection breaks under a write
            raise ConnectionResetError("the SSH connection broke") from exc

    def recv(self, size: int) -> bytes:
        return self._channel.recv(size)

    def settimeout(self, seconds: float | None) -> None:
        self._channel.settimeout(seconds)

    def close(self) -> None:
        hang_up(self._channel)


def hang_up(channel: paramiko.Channel) -> None:
    """Close a channel, also one whose connection is gone."""
    with contextlib.suppress(OSError, EOFError):
        channel.close()
