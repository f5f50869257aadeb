"""How a finding is put: which list was used, where the word was declared, and how sure the list is."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.engines.engine import ADDED
from orchestrator.engines.flags.loading import is_certain
from orchestrator.engines.flags.model import Catalogue, Chosen, Finding, Severity
from orchestrator.engines.flags.reading import Given
from orchestrator.engines.flags.values import Fault

PROGRAMS = {"llamacpp": "llama-server"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Makes findings about the words of one command line."""

    chosen: Chosen
    origins: tuple[str, ...] = ()

    @property
    def catalogue(self) -> Catalogue:
        return self.chosen.catalogue

    @property
    def engine(self) -> str:
        """The engine's own name: `vllm`, `sglang`, `llama-server`."""
        return PROGRAMS.get(self.catalogue.engine, self.catalogue.engine)

    @property
    def release(self) -> str:
        """Whose list was used: `vllm 0.31.0`, `this image (vllm 0.31.0)`."""
        told = f"{self.engine} {self.catalogue.version}"
        return f"this image ({told})" if self.catalogue.is_own else told

    def path(self, index: int) -> str:
        """Where the word was declared."""
        return self.origins[index] if index < len(self.origins) else f"word {index + 1}"

    def absence(self, *, is_elsewhere: bool) -> Severity:
        """How grave it is that the list lacks something.

        Args:
            is_elsewhere: Another version has it: it may be there, if nobody knows the version that runs.
        """
        if is_certain(self.chosen):
            return Severity.ERROR
        is_guess = self.chosen.wanted is None and not self.catalogue.is_partial
        return Severity.ERROR if is_guess and not is_elsewhere else Severity.WARNING

    def lack(self, fault: Fault) -> Severity:
        """How grave it is that the list lacks a value, or a key of a JSON value.

        A fork whose version nobody tells may well have it; a slip of the pen in a name that it has is none of its own.
        """
        if fault.severity is not Severity.ERROR or not fault.is_list_bound or is_certain(self.chosen):
            return fault.severity
        is_guess = self.chosen.wanted is None and not self.catalogue.is_partial
        return Severity.ERROR if is_guess and fault.is_slip and not fault.is_elsewhere else Severity.WARNING

    def of(
        self, given: Given, code: str, message: str, *, hint: str | None = None, severity: Severity = Severity.ERROR
    ) -> Finding:
        """A finding about a flag, or a word without one; `message` follows its spelling."""
        path = self.path(given.index)
        if path == ADDED and given.spelling.startswith("-"):
            left_out = f"refuse_added: [{given.spelling.lstrip('-')}] leaves out what gate0 adds"
            hint = f"{hint}; {left_out}" if hint else left_out
        return Finding(
            severity=severity, code=code, path=path, message=f"{_shown(given)} {message}", hint=hint, flag=given.name
        )

    def of_value(self, given: Given, offset: int, fault: Fault) -> Finding:
        """A finding about the value at `offset` of a flag."""
        index = given.index if given.is_joined else given.index + 1 + offset
        severity = self.lack(fault)
        hint = fault.hint
        if fault.is_list_bound and severity is Severity.ERROR:
            name = given.name.lstrip("-") + (f".{fault.key}" if fault.key else "")
            hint = f"{hint}; allow_unknown_flags: [{name}] accepts a fork's own"
        return Finding(
            severity=severity,
            code=fault.code,
            path=self.path(index),
            message=f"{given.spelling}{'' if fault.code == 'json_key' else ':'} {fault.message} ({self.release})",
            hint=hint,
            flag=given.name,
        )


def _shown(given: Given) -> str:
    if not given.spelling.startswith("-"):
        return f"`{given.spelling}`"
    return f"{given.spelling}.{given.dotted}" if given.dotted else given.spelling
