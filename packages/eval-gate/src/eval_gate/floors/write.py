"""Files that belong together, written all or none: half of a change would be graded as if it were meant."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from eval_core.errors import CouldNot
from eval_core.files import atomic, canonical
from eval_core.reports import provenance
from eval_core.reports.report import Report, dump


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
    with _undisturbed():
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
                kept[path] = _copy(path) if path.exists() else None
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


def with_sidecar(path: Path, report: Report) -> dict[Path, bytes]:
    """A report's file at `path` and its provenance sidecar, which comes first: a report grades without one."""
    raw = dump(report)
    return {
        provenance.sidecar(path): canonical(provenance.statement(report, raw)) + b"\n",
        path: raw,
    }


def _bytes(path: Path) -> bytes | None:
    """What stands under a name; None for nothing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CouldNot(
            f"{path}: cannot be written: {error.strerror or error}", reason="cannot-write"
        ) from error


def _copy(path: Path) -> Path:
    """Keep what stands under a name beside it, so that putting it back takes no room on the disk."""
    name: str | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".kept", dir=path.parent)
        os.close(handle)
        shutil.copy2(path, name)
    except BaseException as error:
        if name is not None:
            _drop([Path(name)])
        if isinstance(error, OSError):
            raise CouldNot(
                f"{path}: cannot be written: {error.strerror or error}", reason="cannot-write"
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
            f"{'; '.join(failed)}: cannot be put back after a change that was broken off ({error})",
            reason="cannot-write",
            remedy="Restore what git holds:  git status",
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
