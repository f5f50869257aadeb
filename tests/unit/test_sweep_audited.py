"""The kernel's receive stamps without I/O: how one is found, and what many of them say."""

from __future__ import annotations

import socket
import struct

import pytest

from orchestrator.sweep.audited import SO_TIMESTAMPNS, Ancillary, StampAudit, kernel_stamp_ns, stamp_audit
from orchestrator.sweep.http1 import Exchange

STAMP = struct.pack("=qq", 1_700_000_000, 123_456_789)


@pytest.mark.parametrize(
    ("ancillary", "stamp_ns"),
    [
        ([(socket.SOL_SOCKET, SO_TIMESTAMPNS, STAMP)], 1_700_000_000_123_456_789),
        ([(socket.SOL_SOCKET, 1, b"fd"), (socket.SOL_SOCKET, SO_TIMESTAMPNS, STAMP)], 1_700_000_000_123_456_789),
        ([(socket.IPPROTO_TCP, SO_TIMESTAMPNS, STAMP)], None),
        ([(socket.SOL_SOCKET, SO_TIMESTAMPNS, STAMP[:8])], None),
        ([], None),
    ],
)
def test_stamp_is_found_among_the_control_messages(ancillary: Ancillary, stamp_ns: int | None) -> None:
    assert kernel_stamp_ns(ancillary) == stamp_ns


@pytest.mark.parametrize(
    ("lags_ns", "audit"),
    [
        ([], None),
        ([[], []], None),
        ([[None, None]], None),
        ([[250_000]], StampAudit(n=1, p50_ms=0.25, p99_ms=None, max_ms=0.25)),
        ([[3_000_000, None], [], [1_000_000, 2_000_000]], StampAudit(n=3, p50_ms=2.0, p99_ms=None, max_ms=3.0)),
        ([[k * 1_000_000 for k in range(400, 0, -1)]], StampAudit(n=400, p50_ms=200.0, p99_ms=396.0, max_ms=400.0)),
    ],
)
def test_audit_is_over_the_reads_that_have_a_stamp(lags_ns: list[list[int | None]], audit: StampAudit | None) -> None:
    assert stamp_audit(Exchange(scheduled_ns=0, kernel_lags_ns=lags) for lags in lags_ns) == audit
