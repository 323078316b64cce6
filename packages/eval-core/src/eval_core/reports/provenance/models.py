"""The form of a provenance sidecar: an in-toto statement of one measurement."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from eval_core.files import digest
from eval_core.models import Closed

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileDigest(Closed):
    """The digest of a file's bytes."""

    sha256: Sha256


class Subject(Closed):
    """The file that the statement is about: a report's, by its arm's name."""

    name: str
    digest: FileDigest


class Tool(Closed):
    """What measured."""

    name: Literal["eval-core"]
    version: str


class Producer(Closed):
    """What produced the numbers: the tool, what answered and what was asked."""

    tool: Tool
    system: dict[str, JsonValue] = Field(
        description="The parts of the system key: backend, options as written, digests of the files that they name, "
        "scoping, expansion, and the implementation (versions of libraries, model and weight digest)."
    )
    task: dict[str, JsonValue] = Field(
        description="The parts of the task key, which hold the digests of corpus and set, but the cut-offs: one more "
        "of them changes no number that there was."
    )


class Made(Closed):
    """Where and when the run was made. The parts that a committed copy of the report keeps."""

    started: str
    commit: str | None
    dirty: bool | None
    class_: str = Field(alias="class")
    ci_run: str | None
    python: str
    platform: str


class Rankings(Closed):
    """The report's digests of what was answered."""

    rankings: Sha256
    quality: Sha256


class Predicate(Closed):
    """What is said of the subject."""

    arm: str
    run_id: str
    producer: Producer
    fingerprint: Sha256 = Field(description="SHA-256 over the canonical form of the producer.")
    cutoffs: tuple[int, ...]
    environment: Made
    digests: Rankings


class Statement(Closed):
    """An in-toto statement of one measurement."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[Subject, ...] = Field(min_length=1, max_length=1)
    predicate_type: Literal["urn:ladder:retrieval-measurement:v1"] = Field(alias="predicateType")
    predicate: Predicate

    @property
    def fingerprint(self) -> str | None:
        """The digest of its producer, taken anew; None where what is written beside it is another."""
        found = digest(self.predicate.producer.model_dump(mode="json"))
        return found if found == self.predicate.fingerprint else None
