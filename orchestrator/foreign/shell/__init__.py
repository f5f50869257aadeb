"""Shell text read without running it: words, variables, commands, and which of them serves."""

from orchestrator.foreign.shell.commands import Command, Script
from orchestrator.foreign.shell.expanding import Word
from orchestrator.foreign.shell.script import ReadFile, read_script, split_words
from orchestrator.foreign.shell.serving import Served, find_engine_command, find_servers, unwrap

__all__ = [
    "Command",
    "ReadFile",
    "Script",
    "Served",
    "Word",
    "find_engine_command",
    "find_servers",
    "read_script",
    "split_words",
    "unwrap",
]
