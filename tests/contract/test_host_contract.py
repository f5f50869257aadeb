"""What every `Host` promises: this machine, a host over a real sshd, and the fake that other rooms test with."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.errors import CommandFailed, CommandTimedOut
from orchestrator.fleet.host import ByteStream, Host

WORDS = [
    "plain",
    "two words",
    "",
    'it\'s "quoted"',
    "$HOME `id` $(id) ; rm -rf / & | > < * ? [a] {b} ~ # !",
    "back\\slash \\n \\\\",
    "line one\nline two\n",
    "tab\there",
    "über 日本語 🚀",
    json.dumps({"method": "mtp", "num_speculative_tokens": 1, "note": 'it\'s {"nested": [1, 2]}'}),
    "--speculative-config={'a': \"b\"}",
    "-n",
    "%s %d 100%",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_arrives_as_it_was_given(host: Host, word: str) -> None:
    done = host.run(("printf", "<%s>", word))

    assert done.stdout == f"<{word}>"


def test_words_stay_apart_and_in_order(host: Host) -> None:
    done = host.run(("printf", "%s\n", "a b", "c", "d  e"))

    assert done.stdout.splitlines() == ["a b", "c", "d  e"]


def test_stdin_reaches_the_command(host: Host) -> None:
    done = host.run(("cat",), stdin="grüße\n".encode())

    assert done.stdout == "grüße\n"


def test_a_command_without_stdin_sees_its_end(host: Host) -> None:
    assert host.run(("cat",), timeout_s=5).stdout == ""


def test_an_exit_code_is_reported_not_raised(host: Host) -> None:
    done = host.run(("sh", "-c", "exit 3"))

    assert (done.exit_code, done.is_ok) == (3, False)


def test_a_checked_failure_names_host_command_code_and_last_words(host: Host) -> None:
    with pytest.raises(CommandFailed) as caught:
        host.run(("sh", "-c", "echo refused >&2; exit 3"), check=True)

    assert caught.value.message == f"{host.name}: `sh -c 'echo refused >&2; exit 3'` ended with exit code 3: refused"


def test_stderr_is_kept_apart(host: Host) -> None:
    done = host.run(("sh", "-c", "echo refused >&2; exit 3"))

    assert (done.stdout, done.stderr) == ("", "refused\n")


def test_a_missing_program_is_127_and_prints_nothing(host: Host) -> None:
    done = host.run(("no-such-program-here", "--version"))

    assert (done.exit_code, done.stdout) == (127, "")


def test_a_missing_file_is_a_failure_of_cat(host: Host) -> None:
    done = host.run(("cat", "/no/such/file"))

    assert done.exit_code == 1
    assert "/no/such/file" in done.stderr


def test_a_command_past_its_deadline_is_an_error_that_names_it(host: Host) -> None:
    began_s = time.monotonic()

    with pytest.raises(CommandTimedOut, match=r"`sleep 60` was still running after 0\.3 s and was killed"):
        host.run(("sleep", "60"), timeout_s=0.3)

    assert time.monotonic() - began_s < 10


def test_a_host_goes_on_after_a_deadline(host: Host) -> None:
    with pytest.raises(CommandTimedOut):
        host.run(("sleep", "60"), timeout_s=0.2)

    assert host.run(("true",)).is_ok


def test_threads_share_a_host(host: Host) -> None:
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda n: host.run(("printf", "%s", str(n))).stdout, range(48)))

    assert seen == [str(n) for n in range(48)]


def test_a_stream_carries_bytes_both_ways(host: Host) -> None:
    stream = host.open_stream(("cat",))
    stream.settimeout(10)
    payload = bytes(range(256)) * 300
    try:
        stream.sendall(payload)
        assert read_exactly(stream, len(payload)) == payload
    finally:
        stream.close()


def test_a_silent_stream_times_out_as_a_socket_does(host: Host) -> None:
    stream = host.open_stream(("cat",))
    try:
        stream.settimeout(0.05)
        with pytest.raises(TimeoutError):
            stream.recv(1)
    finally:
        stream.close()


def test_a_stream_of_a_missing_program_has_ended(host: Host) -> None:
    stream = host.open_stream(("no-such-program-here",))
    stream.settimeout(10)
    try:
        assert stream.recv(1) == b""
    finally:
        stream.close()


def test_a_port_of_the_hosts_loopback_is_reached(host: Host) -> None:
    with echo_server() as port, socket.create_connection(("127.0.0.1", host.open_port(port)), timeout=10) as client:
        client.settimeout(10)
        client.sendall(b"ping")
        client.shutdown(socket.SHUT_WR)

        assert read_to_end(client) == b"ping"


def test_closing_twice_is_no_error(host: Host) -> None:
    host.run(("true",))
    host.close()
    host.close()


def test_output_that_is_not_utf8_is_replaced_not_fatal(real_host: Host) -> None:
    done = real_host.run(("printf", r"a\377b"))

    assert done.stdout == "a\ufffdb"


def test_a_flood_on_both_outputs_is_read_whole(real_host: Host) -> None:
    script = "head -c 20000000 /dev/zero | tr '\\0' e >&2; head -c 20000000 /dev/zero | tr '\\0' o"

    done = real_host.run(("sh", "-c", script), timeout_s=120)

    assert (len(done.stdout), len(done.stderr)) == (20_000_000, 20_000_000)


def test_a_large_stdin_that_is_echoed_does_not_block(real_host: Host) -> None:
    payload = b"0123456789abcdef" * 500_000

    done = real_host.run(("cat",), stdin=payload, timeout_s=60)

    assert done.stdout.encode() == payload


def test_a_large_stdin_that_nobody_reads_does_not_block(real_host: Host) -> None:
    assert real_host.run(("true",), stdin=b"x" * 8_000_000, timeout_s=30).is_ok


def test_the_deadline_kills_the_command_and_its_children_there(real_host: Host, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 300 & echo $! $$ > {pids}; wait"

    with pytest.raises(CommandTimedOut):
        real_host.run(("sh", "-c", script), timeout_s=0.5)

    assert [pid for pid in pids.read_text().split() if not ends_within(int(pid), 5)] == []


def test_a_command_that_ignores_sigterm_is_killed_too(real_host: Host, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    with pytest.raises(CommandTimedOut):
        real_host.run(("sh", "-c", f"trap '' TERM; echo $$ > {pid_file}; while :; do sleep 0.1; done"), timeout_s=0.3)

    assert ends_within(int(pid_file.read_text()), 5)


def test_a_command_ended_by_a_signal_has_failed(real_host: Host) -> None:
    assert real_host.run(("sh", "-c", "kill -KILL $$")).exit_code >= 128


def test_closing_a_stream_ends_its_command(real_host: Host, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    stream = real_host.open_stream(("sh", "-c", f"echo $$ > {pid_file}; echo up; exec cat"))
    stream.settimeout(10)
    assert read_exactly(stream, 3) == b"up\n"

    stream.close()

    assert ends_within(int(pid_file.read_text()), 5)


def read_exactly(stream: ByteStream, size: int) -> bytes:
    seen = b""
    while len(seen) < size:
        chunk = stream.recv(size - len(seen))
        assert chunk, f"ended after {len(seen)} of {size} bytes"
        seen += chunk
    return seen


def read_to_end(client: socket.socket) -> bytes:
    seen = b""
    while chunk := client.recv(65536):
        seen += chunk
    return seen


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends_within(pid: int, seconds: float) -> bool:
    end_s = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end_s:
        os.sched_yield()
    return not is_running(pid)


class echo_server:
    """A TCP server on loopback that sends back what it gets; yields its port."""

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        port: int = self._listener.getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                while chunk := client.recv(65536):
                    client.sendall(chunk)
