"""What a forge enforces on a branch, as a snapshot file says it: checks that are required, and who may pass them by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator

from eval_core.errors import Fault, Faults, Misuse, Refused
from eval_core.files import digest
from eval_core.models import NAME, Closed

SCHEMA: Final = "snapshot-v1"

#: How a repository is named: an owner and a name, of signs that a URL's path and a file's name can hold.
REPOSITORY: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/[.]{0,99}[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$"

#: After that, what was observed says nothing of today.
LIFETIME: Final = timedelta(days=30)

#: Bytes of a snapshot file, at most.
LIMIT: Final = 5_000_000
#: Keys and places of lists in it, answers looked into one level deep, at most: each may be a fault of its own.
PARTS: Final = 20_000


class Call(Closed):
    """One question to the forge, and its answer."""

    path: str = Field(description="Below the API's address, with its query.")
    status: int = Field(ge=100, le=599)
    etag: str | None = None
    body: JsonValue = Field(description="Verbatim, but for tokens: JSON, or a text where it is not JSON.")


class RequiredCheck(Closed):
    """A check that must pass before a merge."""

    context: str = Field(min_length=1)
    app: int | None = Field(default=None, description="The app that has to post it; null for any.")


class Brought(Closed):
    """Settings brought by hand or by a script; null is what was not looked at."""

    required: tuple[RequiredCheck, ...] | None
    bypass: tuple[str, ...] | None = Field(default=None, description="Who may merge without the checks.")
    admins: bool | None = Field(default=None, description="Whether the checks bind administrators, too.")
    queue: bool | None = Field(default=None, description="Whether merges go through a queue.")
    pipelines: dict[str, JsonValue] | None = Field(
        default=None, description="Rules about whole pipelines, by the forge's own names."
    )


class Snapshot(Closed):
    """The settings of one branch of a repository, as observed at one time."""

    schema_: Literal["snapshot-v1"] = Field(alias="schema")
    repository: str = Field(pattern=REPOSITORY)
    branch: str = Field(min_length=1, max_length=255)
    forge: str = Field(pattern=NAME, description="github, gitlab, gitea, forgejo or another.")
    forge_version: str | None = None
    tool: str
    observed: str = Field(description="UTC, ISO 8601.")
    calls: tuple[Call, ...] = Field(default=(), description="Of GitHub.")
    settings: Brought | None = Field(default=None, description="Of other forges.")
    sha256: str = Field(description="Of the canonical JSON of all other keys.")

    @field_validator("observed")
    @classmethod
    def _a_time(cls, text: str) -> str:
        if _time(text) is None:
            raise ValueError("should be a UTC time such as 2026-11-30T09:00:00Z")
        return text

    @model_validator(mode="after")
    def _one_of_both(self) -> Snapshot:
        if bool(self.calls) == (self.settings is not None):
            raise ValueError("should hold either calls or settings")
        if bool(self.calls) != (self.forge == "github"):
            raise ValueError("should hold calls where the forge is github, and settings for any other")
        return self

    @property
    def time(self) -> datetime:
        """When it was observed."""
        found = _time(self.observed)
        return found if found is not None else datetime.max.replace(tzinfo=UTC)

    def answers(self) -> dict[str, Call]:
        """The calls by path."""
        return {call.path: call for call in self.calls}


@dataclass(frozen=True, slots=True)
class Unknown:
    """What was not observed: why, and what to do about it."""

    why: str
    mend: str


@dataclass(frozen=True, slots=True)
class Context:
    """A check that is required; `app` is the one that has to post it, None for any, `source` what requires it."""

    name: str
    app: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What is enforced on a branch.

    Attributes:
        file: where the snapshot stands.
        observed: when, UTC; `stale` where that is more than 30 days ago or lies in the future: all is unknown then.
        self_attested: the audited repository itself holds the snapshot.
        required: the checks that must pass; empty where the forge said that there are none.
        workflows: files of this repository that a ruleset requires to pass as a whole.
        queue: merges go through a queue.
        admins: what is required binds administrators, too.
        bypass: who may pass by every rule that requires one of the checks; one rule without them still enforces it.
        default: the repository's default branch, where the forge said it.
        partial: more may be required than `required` says: a check that it lacks is unknown then, not optional.
    """

    repository: str
    branch: str
    forge: str
    file: str
    observed: datetime
    self_attested: bool
    stale: bool
    required: tuple[Context, ...] | Unknown
    workflows: tuple[str, ...]
    queue: bool | Unknown
    admins: bool | Unknown
    bypass: tuple[str, ...] | Unknown
    notes: tuple[str, ...] = ()
    default: str | None = None
    partial: Unknown | None = None


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a snapshot with their digest.

    Raises:
        ValueError: JSON cannot hold one of the values.
    """
    rest = {key: value for key, value in fields.items() if key != "sha256"}
    return {**rest, "sha256": digest(rest)}


def read_snapshot(raw: bytes, file: str) -> Snapshot:
    """Read a snapshot file.

    Raises:
        Misuse: it is too large, or not JSON.
        Faults: it is not of the schema.
        Refused: it was edited.
    """
    if len(raw) > LIMIT:
        raise Misuse("file-malformed", f"the snapshot is larger than {LIMIT // 10**6} MB", file=file)
    try:
        table = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        if not isinstance(table, dict):
            raise ValueError("it should be an object")
        if _size(table, 4) > PARTS:
            raise ValueError(f"it has more than {PARTS:,} parts")
        seal = sealed(table)["sha256"]
    except (ValueError, RecursionError) as error:
        raise Misuse("file-malformed", f"the snapshot is not JSON: {error}", file=file) from error
    try:
        found = Snapshot.model_validate_json(raw)
    except ValidationError as error:
        from eval_core.faults import describe

        told = [describe(detail, Snapshot) for detail in error.errors(include_url=False)[:20]]
        raise Faults(Fault(one.what, file=file, key=one.key, value=one.value) for one in told) from error
    if found.sha256 != seal:
        mend = f"Take it anew: eval-tier snapshot {found.repository}"
        if found.settings is not None:
            mend = f'Observe the settings anew, and set sha256 to "{seal}".'
        what = "it is not the digest of what the snapshot holds, which was edited"
        raise Refused("snapshot-edited", what, file=file, key="sha256", value=found.sha256, mend=mend)
    return found


def read_settings(raw: bytes, file: str, now: datetime, *, inside: bool = False) -> Settings:
    """What a snapshot file says; `inside`: the audited repository itself holds it. For errors see `read_snapshot`."""
    snapshot = read_snapshot(raw, file)
    old = _outdated(snapshot, now)
    if old is not None:
        required: tuple[Context, ...] | Unknown = old
        found: dict[str, Any] = {"workflows": (), "queue": old, "admins": old, "bypass": old}
    elif snapshot.settings is not None:
        found = _brought(snapshot.settings, snapshot.forge)
        required = found.pop("required")
    else:
        from eval_tier.evidence.github import default_branch, interpret

        found = interpret(snapshot) | {"default": default_branch(snapshot)}
        required = found.pop("required")
    return Settings(
        repository=snapshot.repository,
        branch=snapshot.branch,
        forge=snapshot.forge,
        file=file,
        observed=snapshot.time,
        self_attested=inside,
        stale=old is not None,
        required=required,
        **found,
    )


def _outdated(snapshot: Snapshot, now: datetime) -> Unknown | None:
    age = now - snapshot.time
    again = f"eval-tier snapshot {snapshot.repository}"
    if snapshot.settings is not None:
        again = f"Observe the settings of {snapshot.repository} anew."
    if age < timedelta(days=-1):
        return Unknown(f"observed {snapshot.observed}, which lies in the future", again)
    if age > LIFETIME:
        days = f"{age.days} days ago, more than {LIFETIME.days}"
        return Unknown(f"observed {snapshot.observed}, {days}", again)
    return None


def _brought(given: Brought, forge: str) -> dict[str, Any]:
    """What was brought by hand or script, in which null is unknown."""

    def known(value: Any, what: str) -> Any:
        mend = f"Say it in the snapshot, as the settings of {forge} show it."
        return Unknown(f"the snapshot does not say {what}", mend) if value is None else value

    checks = given.required
    pipelines = given.pipelines or {}
    if forge == "gitlab" and checks:
        # A check of a pipeline binds a merge only where pipelines must succeed, skipped ones left out.
        if pipelines.get("only_allow_merge_if_pipeline_succeeds") is False:
            checks = ()
        elif pipelines.get("only_allow_merge_if_pipeline_succeeds") is not True or pipelines.get(
            "allow_merge_on_skipped_pipeline"
        ):
            checks = None
    source = f"settings of {forge}"
    return {
        "required": known(
            checks and tuple(Context(check.context, check.app, source) for check in checks),
            "which checks are required",
        )
        if checks != ()
        else (),
        "workflows": (),
        "queue": known(given.queue, "whether merges go through a queue"),
        "admins": known(given.admins, "whether the checks bind administrators"),
        "bypass": known(given.bypass, "who may bypass the checks"),
        "notes": tuple(f"{key} = {json.dumps(value)}" for key, value in (given.pipelines or {}).items()),
    }


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.utcoffset() == timedelta(0) else None


def _size(value: object, depth: int) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) + (sum(_size(one, depth - 1) for one in inner) if depth > 1 else 0)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
