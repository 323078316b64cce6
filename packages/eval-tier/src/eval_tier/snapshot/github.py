"""Takes a snapshot: asks GitHub for the settings of a branch and writes them down, whole or not at all."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from eval_core.console import as_json, clip
from eval_core.errors import CouldNot, EvalError, Misuse, Refused
from eval_core.files import write_text
from eval_tier import __version__
from eval_tier.evidence.github import branch_path, rules_path, ruleset_ids, ruleset_path
from eval_tier.evidence.settings import LIMIT, REPOSITORY, SCHEMA, Call, Snapshot, read_snapshot, sealed
from eval_tier.snapshot.forge import Answer, Forge

API: Final = "https://api.github.com"
PAGES: Final = 20
RULESETS: Final = 100


def default_file(repository: str) -> Path:
    """Where a repository's snapshot lies."""
    return Path("policy", "settings", repository.replace("/", "--") + ".json")


def take(
    repository: str,
    branch: str | None = None,
    *,
    into: Path,
    api: str = API,
    token: str | None = None,
    now: datetime | None = None,
    say: Callable[[str], None] = lambda text: None,
    wait: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Ask for the settings of a branch, the default one unless named, and write them to `into`.

    A snapshot that stands there is asked about with its ETags: what has not changed is kept, and the time moves on.

    Raises:
        Misuse: `repository-malformed`, `snapshot-place-taken`, `api-malformed`, `token-malformed`.
        CouldNot: the forge gave no answer, or the file cannot be written; what stood there stays.
    """
    check_name(repository)
    before = _before(into, repository)
    forge = Forge(api, token, say=say, wait=wait)
    known = before.answers() if before is not None else {}
    calls: list[Call] = []
    versions: list[str] = []

    def ask(path: str) -> tuple[Call, Answer]:
        old = known.get(path)
        answer = forge.get(path, old.etag if old is not None else None)
        if (version := answer.headers.get("x-github-enterprise-version", "")).isprintable() and version:
            versions.append(version[:40])
        if answer.status == 304 and old is not None:
            call = old
        else:
            etag = answer.etag if answer.status == 200 else None
            call = Call(path=path, status=answer.status, etag=etag, body=answer.body)
        calls.append(call)
        return call, answer

    first = ask(f"/repos/{repository}")[0]
    default = first.body.get("default_branch") if isinstance(first.body, dict) else None
    if first.status != 200 or not isinstance(default, str):
        what = f"the forge shows no such repository ({first.status}{_told(first)})"
        raise CouldNot("repository-not-shown", what, subject=repository)
    branch = branch or default
    own = ask(branch_path(repository, branch))[0]
    if own.status == 404 and isinstance(own.body, dict) and own.body.get("message") == "Branch not found":
        raise CouldNot("branch-not-shown", f"there is no branch {branch!r}", subject=repository)
    ask(f"{branch_path(repository, branch)}/protection")
    rules: list[Any] = []
    for page in count(1):
        if page > PAGES:
            raise CouldNot("forge-answer-odd", f"more than {PAGES} pages of rules", subject=repository)
        call, answer = ask(rules_path(repository, branch, page))
        if call.status != 200 or not isinstance(call.body, list):
            break
        rules += call.body
        following = re.search(r'rel="?next\b', answer.headers.get("link", ""))
        # A page that has not changed may come without its links.
        if (
            not following
            and len(call.body) < 100
            and not (answer.status == 304 and rules_path(repository, branch, page + 1) in known)
        ):
            break
    numbers = ruleset_ids(rules)
    if len(numbers) > RULESETS:
        raise CouldNot("forge-answer-odd", f"more than {RULESETS} rulesets", subject=repository)
    for number in numbers:
        ask(ruleset_path(repository, number))
    observed = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _written(
        {
            "schema": SCHEMA,
            "repository": repository,
            "branch": branch,
            "forge": "github",
            "forge_version": versions[0] if versions else None,
            "tool": f"eval-tier {__version__}",
            "observed": observed,
            "calls": [call.model_dump() for call in calls],
            "settings": None,
        },
        into,
    )


def check_name(repository: str) -> None:
    """Refuse what is not OWNER/NAME.

    Raises:
        Misuse: `repository-malformed`.
    """
    if not re.fullmatch(REPOSITORY, repository):
        what = "a repository is named OWNER/NAME, without its host"
        raise Misuse("repository-malformed", what, value=repository)


def _before(into: Path, repository: str) -> Snapshot | None:
    """The snapshot that stands where the new one goes. One that was edited is replaced, and nothing of it is kept."""
    try:
        if not into.exists():
            return None
        with into.open("rb") as stream:
            found = read_snapshot(stream.read(LIMIT + 1), str(into))
    except Refused:
        return None
    except (Misuse, OSError) as error:
        what = "what stands there is not a snapshot, and is not replaced"
        raise Misuse("snapshot-place-taken", what, file=into) from error
    if found.repository != repository:
        what = f"what stands there is the snapshot of {found.repository}, and is not replaced"
        raise Misuse("snapshot-place-taken", what, file=into)
    return found if found.forge == "github" else None


def _written(fields: dict[str, Any], into: Path) -> Snapshot:
    """Write the file, after it was read as anybody will read it."""
    try:
        text = as_json(sealed(fields)) + "\n"
        found = read_snapshot(text.encode("utf-8"), str(into))
    except (ValueError, EvalError) as error:
        what = f"the answers do not make a snapshot: {clip(str(error), 200)}"
        raise CouldNot("forge-answer-odd", what) from error
    write_text(into, text)
    return found


def _told(call: Call) -> str:
    message = call.body.get("message") if isinstance(call.body, dict) else None
    return f", {clip(message, 100)!r}" if isinstance(message, str) else ""
