"""`policy/fleet.toml`: the repositories of a team, and what is declared of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from eval_core.config import Audit
from eval_core.errors import Fault, Faults
from eval_core.files import read_text
from eval_core.models import Closed, line_in, read_toml

FLEET = Path("policy/fleet.toml")


class Repository(Closed):
    """One table `[[repository]]`."""

    path: str | None = Field(
        default=None, min_length=1, description="Its checkout, relative to this repository."
    )
    name: str | None = Field(
        default=None,
        min_length=1,
        description="How it is called; OWNER/NAME where only its settings are known.",
    )
    tier: Annotated[int, Field(ge=0, le=3)] | None = Field(
        default=None, description="The tier it should be at."
    )
    final: bool = Field(default=False, description="It rests at its tier: there is no next step.")
    not_applicable: str | None = Field(
        default=None, min_length=1, description="Why it has no evaluation, and needs none."
    )
    settings: str | None = Field(
        default=None, min_length=1, description="Its snapshot; policy/settings/OWNER--NAME.json by default."
    )
    audit: Audit | None = Field(default=None, description="What the audit is told of it.")

    @property
    def title(self) -> str:
        """How it is called in tables."""
        return self.name or Path(self.path or ".").resolve().name

    @model_validator(mode="after")
    def _known(self) -> Repository:
        if self.path is None and self.name is None:
            raise ValueError("name it: path = 'FOLDER' or name = 'OWNER/NAME'")
        return self


class Fleet(Closed):
    """The whole of `fleet.toml`."""

    schema_: Literal["fleet-v1"] = Field(alias="schema")
    repository: tuple[Repository, ...] = Field(min_length=1)


def read_fleet(path: Path) -> Fleet:
    """Read a fleet file.

    Raises:
        Misuse: absent, or not TOML.
        Faults: it does not fit, or names a repository twice.
    """
    fleet = read_toml(path, Fleet, "fleet file")
    text = read_text(path, "fleet file")
    seen: set[str] = set()
    wrong = []
    for place, repository in enumerate(fleet.repository):
        if repository.title in seen:
            line = line_in(text, ["repository", f"[{place}]"])
            wrong.append(
                Fault("is named twice", file=path, line=line, key="repository", value=repository.title)
            )
        seen.add(repository.title)
    if wrong:
        raise Faults(wrong, consequence="nothing was audited")
    return fleet
