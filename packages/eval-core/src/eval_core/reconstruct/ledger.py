"""The account of a corpus as it is written: ids, digests, who gave each document, and what is wrong with them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from eval_core.backend import Document
from eval_core.errors import Fault, Faults
from eval_core.sets.corpus import document_line

#: As many faults are named; the rest are counted.
NAMED = 20

CONSEQUENCE = "nothing was written"


class Ledger:
    """The ids that were given, their digests and who gave them; the digest of the whole file; and what was wrong."""

    def __init__(self, recipe: Path) -> None:
        self.file = hashlib.sha256()
        self.digests: dict[str, bytes] = {}
        self._givers: dict[str, tuple[str, int]] = {}
        self._recipe = recipe
        self._faults: list[Fault] = []
        self._unnamed = 0

    def fault(self, fault: Fault) -> None:
        """Note what makes the corpus refused in the end."""
        if len(self._faults) < NAMED:
            self._faults.append(fault)
        else:
            self._unnamed += 1

    def enter(self, source: str, document: Document, line: int = 0) -> bytes:
        """Note a document, of a line where it has one, and return its line of the corpus."""
        text = document_line(document)
        if document.id in self.digests:
            self._again(source, document.id, line)
        else:
            self.digests[document.id] = hashlib.sha256(text).digest()
            self._givers[document.id] = (source, line)
        text += b"\n"
        self.file.update(text)
        return text

    def _again(self, source: str, name: str, line: int) -> None:
        first, first_line = self._givers[name]
        file = self._recipe.parent / "corpus.jsonl" if line else self._recipe
        if first == source and line:
            self.fault(Fault(f"_id {name!r} again (first at line {first_line})", file=file, line=line))
        else:
            self.fault(
                Fault(
                    f"gives the document {name!r}, and so does source {first!r}; give one of them another prefix",
                    file=file,
                    line=line or None,
                    subject=f"source {source!r}",
                )
            )

    def check(self) -> None:
        """Refuse the corpus if anything was wrong with it.

        Raises:
            Faults: the first ones by name, the others counted.
        """
        if self._faults:
            more = f"{self._unnamed:,} more not shown; " if self._unnamed else ""
            raise Faults(self._faults, consequence=f"{more}{CONSEQUENCE}")
