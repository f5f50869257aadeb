"""Pictures as files for slides: title inside, light, twice the size. The same records give the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.records.store import write_atomically, write_bytes_atomically
from orchestrator.report.notebook.book import Chart

WIDTH = 880
SCALE = 2.0
TITLE_PX = 7.6
"""Mean width of a letter of the title."""
LIGHT: dict[str, Any] = {
    "background": "white",
    "font": "Helvetica, Arial, sans-serif",
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#e3e3e3"},
    "legend": {"labelFontSize": 12},
    "title": {"fontSize": 16, "anchor": "start", "offset": 14, "limit": 0},
}


def slide_spec(chart: Chart) -> dict[str, Any]:
    """The chart's spec with its title, a fixed width and the light theme; stays as bright as it is on a dark page."""
    spec = dict(chart.spec)
    width = WIDTH if spec.get("width") == "container" else spec.get("width", WIDTH)
    return {
        **spec,
        "width": width,
        "autosize": {"type": "pad"},
        "padding": 16,
        "title": {"text": _wrapped(chart.title, int(WIDTH / TITLE_PX))},
        "config": LIGHT,
    }


def write_chart(chart: Chart, folder: Path, style: str) -> Path:
    """`<folder>/<id>.svg` or `.png`.

    Raises:
        OSError: It cannot be written.
    """
    import vl_convert

    spec = json.dumps(slide_spec(chart), ensure_ascii=False)
    path = folder / f"{chart.id}.{style}"
    if style == "svg":
        write_atomically(path, str(vl_convert.vegalite_to_svg(spec)))
    else:
        write_bytes_atomically(path, bytes(vl_convert.vegalite_to_png(spec, scale=SCALE)))
    return path


def _wrapped(text: str, width: int) -> list[str]:
    """In lines; a word that is longer is cut."""
    lines = [""]
    for word in text.split():
        part = word if len(word) <= width else f"{word[: width - 1]}…"
        if len(lines[-1]) + len(part) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return lines[:3]
