"""Whether runs of two commits are of one system, as far as git tells: a command's imports are in no system key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from eval_core.measuring import git
from eval_core.policy import Line

#: Files that are named of those that differ.
_NAMED = 5


def beside_the_command(root: Path, lines: Sequence[Line], known: Iterable[Path]) -> Iterator[str]:
    """What differs between the commits of an arm's runs in the folders of the files that its command names, in words.

    Args:
        root: the folder of eval.toml, which the command's paths are relative to.
        lines: the runs.
        known: files and folders whose changes are told elsewhere: the set, the policy, eval.toml.
    """
    commits = list(dict.fromkeys(line.commit for line in lines if line.commit))
    options, files = lines[-1].system.get("options"), lines[-1].system.get("files")
    command = options.get("command") if isinstance(options, dict) else None
    if len(commits) < 2 or not isinstance(command, list) or not isinstance(files, dict):
        return
    named = [word for word in command if isinstance(word, str) and word in files]
    folders = dict.fromkeys(PurePosixPath(word).parent.as_posix() for word in named)
    told = [*files, *(name for path in known if not (name := os.path.relpath(path, root)).startswith(".."))]
    specs = [*(f":(literal){name}" for name in folders), *(f":(exclude,literal){name}" for name in told)]
    if not folders:
        return
    first, *others = commits
    for other in others:
        # What a report calls its commit is no option of git.
        revisions = ("--end-of-options", first, other, "--", *specs)
        found = git(root, "diff", "--name-only", "--no-renames", "-z", *revisions)
        if found is None:
            yield (
                f"its runs are of commits {first[:7]} and {other[:7]}, which git here cannot compare: nothing says "
                "whether what its command imports is the same"
            )
        elif names := [name for name in found.split("\0") if name]:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield (
                f"its runs are of commits {first[:7]} and {other[:7]}, and beside its command differ: "
                f"{', '.join(names[:_NAMED])}{more}. Where it imports them, name them in options.files"
            )
