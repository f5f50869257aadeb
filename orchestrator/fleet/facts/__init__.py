"""What a box says of itself: commands and their parse, the facts as a value, what is worth worrying about."""

from orchestrator.fleet.facts.concerns import Concern, Level, concerns
from orchestrator.fleet.facts.differences import differences, same_machine
from orchestrator.fleet.facts.model import Container, Docker, Gpu, GpuProcess, HostFacts, Memory
from orchestrator.fleet.facts.reading import read_facts
from orchestrator.fleet.facts.table import FACTS, Fact

__all__ = [
    "FACTS",
    "Concern",
    "Container",
    "Docker",
    "Fact",
    "Gpu",
    "GpuProcess",
    "HostFacts",
    "Level",
    "Memory",
    "concerns",
    "differences",
    "read_facts",
    "same_machine",
]
