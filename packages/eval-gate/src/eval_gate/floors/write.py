"""Files that belong together, written all or none: half of a change would be graded as if it were meant."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from eval_core.errors import CouldNot, Refused
from eval_core.files import atomic, beside, sweep
from eval_core.policy import BUDGETS, FLOORS, ArmPolicy, Budget, Policy, dump, path_of, read_evidence

#: Endings of the hidden files that a write makes: what stood, and what is to stand.
KEPT = ".kept"
LEFT = (KEPT, ".tmp")


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write all files or none: each under a temporary name first, then all take their names, in order.

    On any error, Ctrl-C included, what stood before is put back byte by byte, and folders that were made are gone. A
    file that holds these bytes already is not touched. Only a machine that stops between two names can leave a part, so
    the order is the caller's: whatever is cut off after any of them should be the old state, or one that is refused.

    Args:
        files: the bytes by path, in the order in which they take their names.

    Raises:
        CouldNot: a file cannot be read or written, or the disk is full; or what stood cannot be put back, and then the
            message says where it is kept.
    """
    # Ctrl-C waits for this: the change is made, or not begun.
    with _undisturbed(), contextlib.ExitStack() as copies:
        for path in files:
            sweep(path, *LEFT)
        changed = [path for path, content in files.items() if _bytes(path) != content]
        made = [
            folder
            for path in changed
            for folder in (path.parent, *path.parent.parents)
            if not folder.exists()
        ]
        kept: dict[Path, Path | None] = {}
        try:
            for path in changed:
                kept[path] = _copy(path, copies) if path.exists() else None
            with contextlib.ExitStack() as stack:
                # What is entered last is renamed first.
                for path in reversed(changed):
                    stream = stack.enter_context(atomic(path))
                    stream.write(files[path])
                    stream.flush()
                    os.fsync(stream.fileno())  # a full disk shows here, before anything took its name
        except BaseException as error:
            _put_back(kept, error)
            for folder in sorted(set(made), key=lambda folder: len(folder.parts), reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise
        _drop(kept.values())


def sweep_policy(policy: Policy, arms: Iterable[str]) -> None:
    """Remove what a killed write left beside the files of a policy, those of these arms among them."""
    for path in (
        policy.folder / FLOORS,
        policy.folder / BUDGETS,
        *(path_of(policy.folder, arm) for arm in arms),
    ):
        sweep(path, *LEFT)


def policy_files(policy: Policy, arms: Mapping[str, ArmPolicy]) -> dict[Path, bytes]:
    """The files of a policy in which some arms are put in the place of those that stand, in the order of writing.

    The floors come last: evidence that no floors cite leaves the old bar, or one that is refused. Runs of these arms
    that neither their floors nor a promotion record cite are swept.

    Raises:
        Refused: the evidence that stands is malformed, or holds one of the runs and says something else of it.
    """
    from eval_gate.floors.text import budgets_text, floors_text

    files: dict[Path, bytes] = {}
    records = "".join(
        path.read_text(encoding="utf-8") for path in sorted((policy.folder / "promotions").glob("*.json"))
    )
    for name, arm in arms.items():
        path = path_of(policy.folder, name)
        lines = {line.run_id: line for line in arm.lines}
        for line in read_evidence(path) if path.exists() else ():
            if lines.get(line.run_id, line).line != line.line:
                what = "the evidence that stands says something else of this run"
                raise Refused("evidence-rewritten", what, file=path, subject=line.run_id)
            if line.line in records:
                lines.setdefault(line.run_id, line)
        files[path] = dump(lines.values())
    floors, budgets = policy.floors, policy.budgets
    tables = {**floors.arms, **{name: arm.floors for name, arm in arms.items()}}
    retired = {name: why for name, why in floors.retired.items() if name not in arms}
    floors = floors.model_copy(update={"arms": dict(sorted(tables.items())), "retired": retired})
    held = {**budgets.arms, **{name: arm.budget for name, arm in arms.items() if arm.budget != Budget()}}
    budgets = budgets.model_copy(update={"arms": dict(sorted(held.items()))})
    if held or (policy.folder / BUDGETS).exists():
        files[policy.folder / BUDGETS] = budgets_text(budgets).encode("utf-8")
    files[policy.folder / FLOORS] = floors_text(floors).encode("utf-8")
    return files


def _bytes(path: Path) -> bytes | None:
    """What stands under a name; None for nothing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CouldNot("cannot-write", f"cannot be written: {error.strerror or error}", file=path) from error


def _copy(path: Path, copies: contextlib.ExitStack) -> Path:
    """Keep what stands under a name beside it, so that putting it back takes no room on the disk."""
    name: str | None = None
    try:
        handle, name = copies.enter_context(beside(path, KEPT))
        os.close(handle)
        shutil.copy2(path, name)
    except BaseException as error:
        if name is not None:
            _drop([Path(name)])
        if isinstance(error, OSError):
            raise CouldNot(
                "cannot-write", f"cannot be written: {error.strerror or error}", file=path
            ) from error
        raise
    return Path(name)


def _put_back(kept: Mapping[Path, Path | None], error: BaseException) -> None:
    """Put back what took another's name. What cannot be is left where it is kept, and said."""
    failed = []
    for path, copy in kept.items():
        try:
            if copy is None:
                path.unlink(missing_ok=True)
            elif not path.exists() or path.read_bytes() != copy.read_bytes():
                os.replace(copy, path)
            else:
                _drop([copy])
        except OSError:
            failed.append(f"{path}, kept as {copy}" if copy else f"{path}, which is new")
    if failed:
        raise CouldNot(
            "cannot-write",
            f"{'; '.join(failed)}: cannot be put back after a change that was broken off ({error})",
            mend="Restore what git holds:  git status",
        ) from error


def _drop(copies: Iterable[Path | None]) -> None:
    for copy in copies:
        if copy is not None:
            with contextlib.suppress(OSError):
                copy.unlink(missing_ok=True)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals that end a program wait. Where threads cannot hold them, they break off what is then put back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
