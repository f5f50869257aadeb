"""What of a page can be seen: contrast (WCAG 2.2), what is hidden, what sticks out, what axe finds."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from playwright.sync_api import Locator, Page

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
LEAST_CONTRAST = 4.5
"""Of text, for AA."""

COLOURS = """all => all.map((e) => {
  const own = getComputedStyle(e);
  let back = e;
  while (back && getComputedStyle(back).backgroundColor.endsWith(', 0)')) back = back.parentElement;
  return [own.color, back ? getComputedStyle(back).backgroundColor : 'rgb(255, 255, 255)'];
})"""
HIDDEN = """all => all
  .filter((e) => !e.checkVisibility({visibilityProperty: true}) || e.getBoundingClientRect().height === 0)
  .map((e) => e.textContent.trim().slice(0, 80))"""
STICKING_OUT = """() => [...document.querySelectorAll('body *')]
  .filter((e) => e.checkVisibility() && !e.closest('.scroll, .sr, .skip'))
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 3).map((e) => e.outerHTML.slice(0, 160))"""
BREAKS = """all => all.flatMap((e) => {
  const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), places = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let i = 0; i < node.data.length; i += 1) {
      const range = document.createRange();
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      const place = range.getBoundingClientRect();
      if (place.height) places.push([node.data[i], place.top]);
    }
  }
  const isNewLine = (i) => i > 0 && places[i][1] > places[i - 1][1] + 4;
  return places.map((_, i) => i).filter(isNewLine).map((i) => places[i - 1][0]);
})"""
"""The letters after which a line is broken."""
LABELS = "[data-chart] svg .role-axis-label text"
LABEL_COLOURS = "all => all.map((t) => getComputedStyle(t).fill)"
IS_OTHER_THAN = f"""(old) => {{
  const now = [...document.querySelectorAll('{LABELS}')].map((t) => getComputedStyle(t).fill);
  return now.length > 0 && now.every((colour) => !old.includes(colour));
}}"""
"""No axis has a label in one of these colours any more."""


def line_breaks(texts: Locator) -> list[str]:
    """The letters after which their lines are broken; [] when each stands on one line."""
    found: list[str] = texts.evaluate_all(BREAKS)
    return found


def luminance(colour: str) -> float:
    """Relative, 0 black to 1 white."""
    channels = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def colours(texts: Locator) -> set[tuple[str, str]]:
    """Of each element its text's colour and the one behind it."""
    return {(text, back) for text, back in texts.evaluate_all(COLOURS)}


def background(page: Page) -> str:
    found: str = page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    return found


def label_colours(page: Page) -> set[str]:
    """Of the numbers on the axes of all pictures."""
    return set(page.locator(LABELS).evaluate_all(LABEL_COLOURS))


def hidden(page: Page, selector: str) -> list[str]:
    """What of these a reader does not see."""
    found: list[str] = page.locator(selector).evaluate_all(HIDDEN)
    return found


def sticking_out(page: Page) -> list[str]:
    """What reaches past the right edge of the window and is not in a part that scrolls by itself."""
    found: list[str] = page.evaluate(STICKING_OUT)
    return found


def serious(page: Page) -> list[str]:
    """What axe finds that is serious or critical, with the first place."""
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    return [f"{v['id']} x{len(v['nodes'])}: {v['nodes'][0]['html'][:200]}" for v in bad]
