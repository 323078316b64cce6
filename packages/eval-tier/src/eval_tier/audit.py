"""The audit of a fleet: each repository opened, placed and closed, one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from eval_core.config import Audit
from eval_core.errors import CouldNot, EvalError, Misuse
from eval_core.files import unreadable
from eval_tier.evidence.files import Absent, Below, Files, Working, base_of, committed, top_of
from eval_tier.evidence.repository import Evidence, place_of
from eval_tier.evidence.settings import Settings, Unknown, read_settings
from eval_tier.fleet import Repository
from eval_tier.models import Placement
from eval_tier.placement import place
from eval_tier.rules import Rule
from eval_tier.workflow.models import Defect, Place

SETTINGS = "policy/settings"


@dataclass(frozen=True)
class Subject:
    """A repository to audit: a folder, or a table of a fleet file; `base` is what its paths are relative to."""

    base: Path
    repository: Repository
    named: Path | None = None  # as it was typed

    @property
    def path(self) -> Path | None:
        """Its checkout."""
        return None if self.repository.path is None else self.base / self.repository.path

    @property
    def title(self) -> str:
        """How it is called in tables."""
        return self.repository.title

    def words(self, fleet: Path | None) -> str:
        """What `eval-tier why` is given to find it again from here."""
        if self.named is not None:
            return shlex.quote(str(self.named))
        return shlex.quote(self.title) + (f" --fleet {shlex.quote(str(fleet))}" if fleet is not None else "")


def folder(path: Path, settings: Path | None = None) -> Subject:
    """A repository that is named by its folder alone."""
    held = Repository(
        path=str(path.absolute()),
        name=place_of(path),
        settings=None if settings is None else str(settings.absolute()),
    )
    return Subject(path, held, path)


@contextmanager
def opened(subject: Subject, revision: str, now: datetime, *, work_tree: bool = False) -> Iterator[Evidence]:
    """The evidence of one repository.

    Raises:
        EvalError: it is no repository, or it has no such commit.
    """
    path = subject.path
    if path is None:
        yield _evidence(subject, Absent(), now, known=False)
        return
    if not path.is_dir():
        mend = "name a folder: a checkout, or a folder of one"
        raise CouldNot("source-absent", f"{str(path)!r} is no folder", mend=mend)
    top = top_of(path)
    if work_tree:
        yield _evidence(subject, Working(top), now, branch=default_branch(top), base=base_of(path, top))
    else:
        with committed(path, revision) as (files, base):
            yield _evidence(subject, files, now, branch=default_branch(top), base=base)


def default_branch(path: Path) -> str | None:
    """The default branch that a clone knows: that of its origin, else the one that is checked out, if it may be it."""
    for name, start in (
        (".git/refs/remotes/origin/HEAD", "refs/remotes/origin/"),
        (".git/HEAD", "refs/heads/"),
    ):
        try:
            text = (path / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        found = text.removeprefix(f"ref: {start}")
        if found != text and (name != ".git/HEAD" or found in ("main", "master", "trunk", "develop")):
            return found
    return None


def audited(
    subject: Subject, rules: tuple[Rule, ...], revision: str, now: datetime, *, work_tree: bool = False
) -> Placement:
    """Place one repository; see `opened` for what is raised."""
    said = subject.repository
    if said.not_applicable is not None:
        return Placement(said.title, None, "not-applicable", said.not_applicable, declared=said.tier)
    with opened(subject, revision, now, work_tree=work_tree) as evidence:
        return place(evidence, rules, declared=said.tier, final=said.final)


def broken(subject: Subject, error: EvalError) -> Placement:
    """The placement of a repository that could not be read."""
    said = subject.repository
    mend = (error.details.mend or "name a checkout of it").replace(
        ", or name one: --repo DIR", ", or name one"
    )
    return Placement(said.title, None, "unread", error.message, mend, declared=said.tier)


def _evidence(
    subject: Subject,
    files: Files,
    now: datetime,
    *,
    known: bool = True,
    branch: str | None = None,
    base: str = ".",
) -> Evidence:
    settings: Settings | None = None
    faults = []
    missing: Unknown | None
    try:
        settings, missing = _settings(subject, files if base == "." else Below(files, base), now)
    except EvalError as error:  # a snapshot that is malformed hides what is required, and nothing else
        missing = Unknown(
            f"its snapshot cannot be read: {error.message}", error.details.mend or "take it anew"
        )
        faults.append(Defect(Place(str(error.details.file or SETTINGS), error.details.line), error.message))
    if settings is not None and (other := _other(subject, settings, branch)):
        settings, missing = None, other
    audit: Audit | None = subject.repository.audit
    return Evidence(
        subject.repository.title,
        files,
        audit=audit,
        settings=settings,
        missing=missing,
        known=known,
        branch=branch,
        faults=tuple(faults),
        base=base,
    )


def _other(subject: Subject, settings: Settings, branch: str | None) -> Unknown | None:
    """Why a snapshot is not of this repository's pull requests."""
    name = subject.repository.name or ""
    if "/" not in name:
        name = origin(top_of(subject.path)) or "" if subject.path is not None else ""
    if name and name.lower() != settings.repository.lower():
        what = f"the snapshot {settings.file} is of {settings.repository}, not of {name}"
        return Unknown(what, f"eval-tier snapshot {name}")
    for wanted in (settings.default, branch):
        if wanted is not None and wanted != settings.branch:
            what = f"the snapshot {settings.file} is of {settings.branch!r}, and the default branch is {wanted!r}"
            return Unknown(what, f"eval-tier snapshot {settings.repository} --branch {wanted}")
    return None


def origin(path: Path) -> str | None:
    """OWNER/NAME of where a clone comes from, where its address says it."""
    try:
        text = (path / ".git" / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    section = text.partition('[remote "origin"]')[2].partition("\n[")[0]
    found = re.search(r"^\s*url\s*=\s*\S+?[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?\s*$", section, re.MULTILINE)
    # A path on this machine names no owner.
    return found[1] if found and re.search(r"url\s*=\s*(\w+://|[\w.-]+@)", section) else None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Misuse("file-missing", "there is no such snapshot", file=path) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _settings(subject: Subject, files: Files, now: datetime) -> tuple[Settings | None, Unknown | None]:
    """The snapshot that is named, that the fleet's folder holds, or that the repository holds of itself."""
    said = subject.repository
    if said.settings is not None:
        path = subject.base / said.settings if not Path(said.settings).is_absolute() else Path(said.settings)
        return read_settings(_content(path), str(path), now), None
    if said.name is not None and said.name.count("/") == 1:
        path = subject.base / SETTINGS / f"{said.name.replace('/', '--')}.json"
        if path.is_file():
            return read_settings(_content(path), str(path), now), None
    own = [name for name in files.folder(SETTINGS) if name.endswith(".json")]
    if len(own) == 1:
        name = f"{SETTINGS}/{own[0]}"
        return read_settings(files.read(name) or b"", name, now, inside=True), None
    if own:
        what = f"{SETTINGS} holds {len(own)} snapshots, and none is named"
        return None, Unknown(what, "name it: --settings FILE, or settings in the fleet file")
    owner = said.name if said.name is not None and "/" in said.name else f"OWNER/{said.title}"
    return None, Unknown(
        "the repository's settings were never observed",
        f"eval-tier snapshot {owner}  with a token that reads the rules of branches",
    )
