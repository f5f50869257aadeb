"""What the curves over users say, in sentences with the numbers: for those who do not see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from orchestrator.figures.goodput import SloVerdict
from orchestrator.figures.saturation import Knee
from orchestrator.report.charts import readings
from orchestrator.report.charts.curves import Curve, Load, listed
from orchestrator.report.charts.readings import Reading
from orchestrator.report.charts.stack import guard_names
from orchestrator.report.tables import PointRow
from orchestrator.report.text import rate, seconds, share, times

Read = Callable[[PointRow], Reading | None]


def speed(load: Load, whole: Read, knees: Mapping[str, Knee]) -> str:
    """`At 32 users X is fastest: 180.2 tok/s together, 5.6 each; then Y with 83.0. …`"""
    return joined(
        _alone(load.curves[0], whole) if len(load.curves) == 1 else _fastest(load, whole),
        _knees(knees),
        broken(load),
        load.words,
    )


def first_token(load: Load, limits: Mapping[str, float], drawn: Mapping[str, float], *, has_tail: bool) -> str:
    best = load.curves[0]
    points = _valid(best, readings.first_token)
    if points:
        (first, a), (last, b) = points[0], points[-1]
        how = "as stated" if b.method == readings.STATED else "p50"
        words = f"{best.label}: first token {seconds(a.value * 1000)} s ({how}) with {users(first)}"
        words += f", {seconds(b.value * 1000)} s with {users(last)}." if last is not first else "."
    else:
        words = f"{best.label}: no valid point."
    aside = [w for w in limits if w not in drawn]
    return joined(
        words,
        _quickest(load),
        *(_kept(curve) for curve in load.curves[:1]),
        f"Not drawn, far above: {'; '.join(aside)}." if aside else "",
        "Thin dotted lines are p95." if has_tail else "",
        broken(load),
        load.words,
    )


def efficiency(load: Load) -> str:
    """`At 8 users X has 36% of perfect scaling, Y 30%.`"""
    found = {c.label: efficiencies(c) for c in load.curves}
    level = max(p.figures.cell.concurrency for pairs in found.values() for p, _ in pairs)
    there = [
        (r, label)
        for label, pairs in found.items()
        for p, r in pairs
        if p.figures.cell.concurrency == level and p.figures.is_valid
    ]
    at = [f"{label} {share(r.value)}" for r, label in sorted(there, key=lambda pair: -pair[0].value)]
    how = "as stated" if all(r.method == readings.STATED for r, _ in there) else "derived"
    words = f"Of perfect scaling from one user, at {level} users: {', '.join(at)} ({how})." if at else ""
    return joined(words, broken(load), load.words)


def efficiencies(curve: Curve) -> list[tuple[PointRow, Reading]]:
    """Point by point, with one user as whole."""
    single = next((readings.total(p) for p in curve.points if p.figures.cell.concurrency == 1), None)
    return [(p, r) for p in curve.points if (r := readings.efficiency(p, single)) is not None]


def knee(found: Knee) -> str:
    """`knee at 8 users: 11.2 tok/s more with each user before it, 0.300 after (derived)`."""
    return (
        f"knee at {found.concurrency:g} users: {rate(found.slope_before)} tok/s more with each user before it, "
        f"{rate(found.slope_after)} after (derived)"
    )


def _knees(knees: Mapping[str, Knee]) -> str:
    """`Knees (derived): 8 users for X, Y; 4 users for Z.`; of one alone in full."""
    if len(knees) < 2:
        return "".join(f"{knee(found).capitalize()}." for found in knees.values())
    at: dict[float, list[str]] = {}
    for label, found in knees.items():
        at.setdefault(found.concurrency, []).append(label)
    parts = [f"{x:g} users for {listed(labels)}" for x, labels in sorted(at.items(), reverse=True)]
    return f"Knees (derived): {'; '.join(parts)}."


def broken(load: Load) -> str:
    """`2 points broke a guard (client_lag): hollow and crossed.`"""
    found = [p for c in load.curves for p in c.points if not p.figures.is_valid]
    if not found:
        return ""
    names = ", ".join(dict.fromkeys(name for p in found for name in guard_names(p)))
    count = "1 point" if len(found) == 1 else f"{len(found)} points"
    return f"{count} broke a guard ({names}): hollow and crossed."


def joined(*sentences: str) -> str:
    return " ".join(s for s in sentences if s)


def users(point: PointRow) -> str:
    count = point.figures.cell.concurrency
    return "1 user" if count == 1 else f"{count} users"


def _alone(curve: Curve, whole: Read) -> str:
    """`X: 31.0 tok/s with 1 user, 89.8 with 8 users (×2.90); each user gets 31.0, then 11.2 (36%).`"""
    points = _valid(curve, whole)
    if not points:
        return f"{curve.label}: no valid point."
    (first, a), (last, b) = points[0], points[-1]
    words = f"{curve.label}: {rate(a.value)} tok/s with {users(first)}"
    if last is first:
        return f"{words}."
    words += f", {rate(b.value)} with {users(last)} ({times(b.value / a.value)})" if a.value > 0 else ""
    one, other = readings.per_user(first), readings.per_user(last)
    if one is not None and other is not None and one.value > 0:
        words += f"; each user gets {rate(one.value)}, then {rate(other.value)} ({share(other.value / one.value)})"
    return f"{words}."


def _fastest(load: Load, whole: Read) -> str:
    level, ranked = _ranked(load, whole)
    if not ranked:
        return "No valid point."
    (best, point, found), *others = ranked
    each = readings.per_user(point)
    of_each = f", {rate(each.value)} for each user" if each is not None else ""
    then = f"; then {_then(others[0])}" if others else ""
    at = "1 user" if level == 1 else f"{level} users"
    missing = [c.label for c in load.curves if c not in [r[0] for r in ranked]]
    none = f" No valid figure there: {listed(missing)}." if missing else ""
    return f"At {at} {best.label} is fastest: {rate(found.value)} tok/s together{of_each}{then}.{none}"


def _then(ranked: tuple[Curve, PointRow, Reading]) -> str:
    curve, _, found = ranked
    return f"{curve.label} with {rate(found.value)}"


def _ranked(load: Load, whole: Read) -> tuple[int, list[tuple[Curve, PointRow, Reading]]]:
    """At the highest level that has a valid figure, the fastest first."""
    found = [(c, p, r) for c in load.curves for p, r in _valid(c, whole)]
    level = max((p.figures.cell.concurrency for _, p, _ in found), default=0)
    at = [f for f in found if f[1].figures.cell.concurrency == level]
    return level, sorted(at, key=lambda f: -f[2].value)


def _quickest(load: Load) -> str:
    if len(load.curves) < 2:
        return ""
    _, ranked = _ranked(load, readings.first_token)
    if len(ranked) < 2:
        return ""
    curve, point, found = ranked[-1]
    return f"Soonest with {users(point)}: {curve.label}, {seconds(found.value * 1000)} s."


def _kept(curve: Curve) -> str:
    """`X meets chat up to 8 users, misses it at 16.`"""
    judged = [(p, p.figures.goodput) for p in curve.points if p.figures.is_valid and p.figures.goodput is not None]
    if not judged:
        return ""
    name = next((str(g.slo.get("name")) for _, g in judged if g is not None and g.slo.get("name")), "the service level")
    met = [p for p, g in judged if g is not None and g.verdict is SloVerdict.MET]
    missed = [p for p, g in judged if g is not None and g.verdict is SloVerdict.MISSED]
    parts = [f"meets {name} with {users(met[-1])}"] if met else []
    parts += [f"misses {name if not met else 'it'} with {users(missed[0])}"] if missed else []
    return f"{curve.label} {', '.join(parts)}." if parts else f"{curve.label}: {name} is undecided."


def _valid(curve: Curve, read: Read) -> list[tuple[PointRow, Reading]]:
    return list(_valid_pairs(curve, read))


def _valid_pairs(curve: Curve, read: Read) -> Iterator[tuple[PointRow, Reading]]:
    for point in curve.points:
        if point.figures.is_valid and (found := read(point)) is not None:
            yield point, found
