"""The lab's wires: one bridge on this machine, one network namespace and one cable a host.

Docker sets the policy of FORWARD to DROP and bridged frames pass through iptables: without a rule of our own the
hosts cannot reach each other, and two ranks hang in their rendezvous without a word.
"""

from __future__ import annotations

from pathlib import Path

from tools.labkit.base import BRIDGE, GATEWAY, LabHost, find_tool, run

NAMESPACES = Path("/run/netns")
INTERFACES = Path("/sys/class/net")
BRIDGE_MAC = "02:42:0a:42:00:01"
FORWARD_RULE = ("FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT")


def ensure_bridge() -> None:
    """Make the bridge stand with its address, and let frames pass between the hosts."""
    if not (INTERFACES / BRIDGE).exists():
        run(["ip", "link", "add", BRIDGE, "address", BRIDGE_MAC, "type", "bridge"])
    run(["ip", "addr", "replace", f"{GATEWAY}/24", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    if run(["iptables", "-w", "-C", *FORWARD_RULE], check=False).returncode:
        run(["iptables", "-w", "-I", *FORWARD_RULE])


def add_host(host: LabHost) -> None:
    """Give a host its network namespace, its eth0 and its address; what was there before must be gone."""
    run(["ip", "netns", "add", host.name])
    run(
        [
            "ip",
            "link",
            "add",
            host.link,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "address",
            host.mac,
            "netns",
            host.name,
        ]
    )
    run(["ip", "link", "set", host.link, "master", BRIDGE, "up"])
    inside = ["ip", "-n", host.name]
    run([*inside, "link", "set", "lo", "up"])
    run([*inside, "addr", "add", f"{host.address}/24", "dev", "eth0"])
    run([*inside, "link", "set", "eth0", "up"])
    # Nothing is routed beyond the bridge. The route is there so that programs that look for "the" address find it.
    run([*inside, "route", "add", "default", "via", GATEWAY])


def is_wired(host: LabHost, init_pid: int) -> bool:
    """Say whether the running host is in the namespace that carries its name, and has its cable."""
    try:
        same = (NAMESPACES / host.name).stat().st_ino == Path(f"/proc/{init_pid}/ns/net").stat().st_ino
    except OSError:
        return False
    return same and (INTERFACES / host.link).exists()


def attach(host: LabHost) -> None:
    """Plug the cable into the bridge again, where somebody made the bridge anew."""
    if not (INTERFACES / host.link / "master").exists():
        run(["ip", "link", "set", host.link, "master", BRIDGE, "up"])


def processes_in(host: LabHost) -> tuple[int, ...]:
    """List what runs in the host's network namespace, also what somebody else started there."""
    if not (NAMESPACES / host.name).exists():
        return ()
    return tuple(int(pid) for pid in run(["ip", "netns", "pids", host.name], check=False).stdout.split())


def remove_host(host: LabHost) -> None:
    """Take the host's namespace and cable away."""
    if (NAMESPACES / host.name).exists():
        run(["ip", "netns", "del", host.name])
    if (INTERFACES / host.link).exists():  # else it goes with the namespace, a moment later
        run(["ip", "link", "del", host.link], check=False)


def remove_bridge() -> None:
    """Take the bridge and every copy of the rule away, and the mount that `ip netns` makes for its names."""
    while find_tool("iptables") and not run(["iptables", "-w", "-D", *FORWARD_RULE], check=False).returncode:
        pass
    if (INTERFACES / BRIDGE).exists():
        run(["ip", "link", "del", BRIDGE])
    if NAMESPACES.exists() and not any(NAMESPACES.iterdir()):
        run(["umount", str(NAMESPACES)], check=False)
        run(["rmdir", str(NAMESPACES)], check=False)
