"""From a cell to what the load process does: one module a kind, each a pure function over fitted prompts."""

from __future__ import annotations

from orchestrator.sweep.scripts.script import Script, Texts, script_of

__all__ = ["Script", "Texts", "script_of"]
