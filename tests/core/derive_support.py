"""What the tests of deriving share: a repository of one commit, and a drafted set as a table."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in a folder."""
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, input=stdin, env=ENVIRONMENT, capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Commit exactly these files to a repository in `folder`, made where there is none; the commit's id.

    No working tree is written.
    """
    if not folder.exists():
        subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], env=ENVIRONMENT, check=True)
    lines = [b"commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nm\ndeleteall\n"]
    for path, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode()
        lines.append(f"M 100644 inline {json.dumps(path)}\ndata {len(raw)}\n".encode() + raw + b"\n")
    git(folder, "fast-import", "--quiet", "--force", stdin=b"".join(lines))
    return git(folder, "rev-parse", "refs/heads/main")


def queries(folder: Path) -> list[dict[str, Any]]:
    """The queries of a set, in the file's order."""
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]


def judged(folder: Path, split: str = "test") -> dict[str, list[str]]:
    """Documents judged relevant, by query, in the file's order."""
    header, *rows = (folder / "qrels" / f"{split}.tsv").read_text("utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    found: dict[str, list[str]] = {}
    for row in rows:
        query, document, grade = row.split("\t")
        assert grade != "0"
        found.setdefault(query, []).append(document)
    return found


def drafts(folder: Path) -> list[tuple[str, str, list[str]]]:
    """Source, text and documents of each query."""
    truth = judged(folder)
    return [(q["metadata"]["source"], q["text"], truth[q["_id"]]) for q in queries(folder)]


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
