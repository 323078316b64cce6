"""Files at the edge: whole or not at all, canonical bytes, digests."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from eval_core.errors import CouldNot, Misuse

#: The UTF-8 byte order mark, which some editors put before a text: no format here has one.
BOM = b"\xef\xbb\xbf"
BOM_FAULT = "begins with a byte order mark; save it as UTF-8 without one"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def conflict(path: Path) -> int | None:
    """The line on which git's marks of a merge conflict begin in a file; None where there are none, or no file."""
    begun = None
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.startswith(b"<<<<<<< ") and begun is None:
                    begun = number
                elif line.startswith(b">>>>>>> ") and begun is not None:
                    return begun
    except OSError:
        pass
    return None


def canonical(value: Any) -> bytes:
    """The one JSON form that digests are taken over.

    Keys sorted, no white space, UTF-8 without escapes, no NaN or infinity.

    Raises:
        ValueError: a number is not finite, or a text holds a lone surrogate.
    """
    return _CANONICAL.encode(value).encode("utf-8")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of the bytes of a file, 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


#: What a full, limited or failing disk answers while a file is being written.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing so that it appears whole or not at all.

    The bytes go to a temporary file of the same folder, are synced, and take the name in one step. On any error,
    Ctrl-C included, the temporary file is removed and what stood under the name stays; what a kill leaves goes with the
    next write.

    Raises:
        CouldNot: the folder cannot be written, or the disk is full.
    """
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = stack.enter_context(beside(path, ".tmp"))
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp makes files private; a report is as readable as any file the user makes.
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(name)
            if isinstance(error, OSError) and error.errno in FULL:
                raise unwritable(path, error) from error
            raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def beside(path: Path, suffix: str) -> Iterator[tuple[int, str]]:
    """Make a hidden file beside `path`: its handle and its name, as of `tempfile.mkstemp`.

    Whoever makes it removes it. It is locked until then, so that what the writers of `path` that were killed left, and
    nothing else, is removed first.

    Raises:
        OSError: the folder cannot be written.
    """
    sweep(path, suffix)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=suffix, dir=path.parent)
    lock = os.dup(handle)
    try:
        with contextlib.suppress(OSError):
            _lock(lock)
        yield handle, name
    finally:
        os.close(lock)


def sweep(path: Path, *suffixes: str) -> None:
    """Remove hidden files that writers of `path` made with these suffixes and, being killed, could not remove."""
    own = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}(" + "|".join(map(re.escape, suffixes)) + ")")
    with contextlib.suppress(OSError):
        for left in [entry.path for entry in os.scandir(path.parent) if own.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                handle = os.open(left, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                try:
                    _lock(handle)
                    os.unlink(left)
                finally:
                    os.close(handle)


@contextlib.contextmanager
def staged(place: Path) -> Iterator[Path]:
    """Make a hidden folder beside `place`, in which what is to stand there is made; it is removed at the end.

    It is locked until then. What writers of `place` that were killed left goes first, see `recover`.

    Raises:
        OSError: the folder cannot be written.
    """
    recover(place)
    folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        lock = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):
                _lock(lock)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)  # where a folder cannot be opened, as on Windows
        raise


def swap(folder: Path, *places: Path, replace: bool) -> None:
    """Let `new-NAME` of a staged folder take each place, all or none, where it was made.

    A kill on the way is made good by the next writer, which goes on with what was begun.

    Args:
        places: files or folders of one parent; NAME is each one's own.
        replace: whether what stands there goes; an empty folder always does.

    Raises:
        OSError: a place is taken, or cannot be written; all is as before.
    """
    made = {place.name: (folder / f"new-{place.name}").exists() for place in places}
    # What takes no place of a new one goes, too; after a kill this tells it from what has taken its place.
    (folder / _READY).write_text(json.dumps(made))
    done: list[tuple[Path, Path]] = []
    try:
        for place in places:
            new, was = folder / f"new-{place.name}", folder / f"was-{place.name}"
            if place.exists() and replace:
                place.rename(was)
                done.append((was, place))
            elif place.exists():
                place.rmdir()  # empty, or this fails
            if made[place.name]:
                new.rename(place)
                done.append((place, new))
    except BaseException:
        (folder / _READY).unlink(missing_ok=True)
        for source, target in reversed(done):
            with contextlib.suppress(OSError):
                source.rename(target)
        raise


#: Stands in a staged folder from when all of it is made: by the name of each place, whether a new one is to take it.
_READY = "ready"


def recover(place: Path) -> None:
    """Finish or remove what writers of `place` that were killed left beside it; of those at work, nothing is touched.

    A swap that was begun is gone on with: what it replaced may lie in that folder alone.
    """
    own = re.compile(re.escape(f".{place.name}.") + "[a-z0-9_]{8}")
    with contextlib.suppress(OSError):
        for name in [entry.name for entry in os.scandir(place.parent) if own.fullmatch(entry.name)]:
            left = place.parent / name
            with contextlib.suppress(OSError):
                lock = os.open(
                    left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
                )
                try:
                    if os.fstat(lock).st_uid != os.geteuid():
                        continue  # anyone may make a folder in a shared one
                    _lock(lock)
                    if (left / _READY).exists():
                        _finish(left)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(lock)


def _finish(folder: Path) -> None:
    """Go on with the swap of a staged folder."""
    with contextlib.suppress(
        ValueError
    ):  # it was killed before its list was whole, and so before the first move
        for name, is_made in json.loads((folder / _READY).read_text()).items():
            place, new = folder.parent / Path(name).name, folder / f"new-{name}"
            if place.exists() and (new.exists() or not is_made):
                place.rename(folder / f"was-{name}")
            if new.exists():
                new.rename(place)


def _lock(handle: int) -> None:
    """Lock an open file for as long as it, or a duplicate of it, is open.

    Raises:
        OSError: another process has locked it, or there are no such locks here.
    """
    try:
        import fcntl
    except ImportError as error:  # not on Windows
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from error
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable; not every platform lets a folder be opened, and none needs it to be right."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(path: Path, error: OSError) -> CouldNot:
    """The error of a file or folder that cannot be written."""
    return CouldNot("cannot-write", f"cannot be written: {error.strerror or error}", file=path)


def unreadable(path: Path, error: OSError) -> CouldNot:
    """The error of a file that is there and cannot be read."""
    return CouldNot("read-failed", f"cannot be read: {error.strerror or error}", file=path)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, with the newlines as given."""
    with atomic(path) as stream:
        stream.write(text.encode("utf-8"))


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write lines atomically; each gets a newline. An iterator is consumed as it is written, never held."""
    with atomic(path) as stream:
        for line in lines:
            stream.write(line + b"\n")


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy a file with its mode, also as the `copy_function` of `shutil.copytree`, which would list all that fails.

    Raises:
        CouldNot: one of the two cannot be read, or written.
    """
    try:
        shutil.copy2(source, target)
    except OSError as error:
        if error.filename == os.fspath(source) and error.filename2 is None:
            raise unreadable(Path(source), error) from error
        raise unwritable(Path(target), error) from error


def refuse_input(option: str, output: Path, inputs: Iterable[Path]) -> None:
    """Refuse to write where the same command reads: one of these files, or anything in one of these folders; and what
    is git's.

    Raises:
        Misuse: `output-is-input`.
    """
    own = output.resolve()
    if ".git" in own.parts or own.name in (".gitattributes", ".gitignore", ".gitmodules"):
        what, mend = "git reads it, and would be misled", "Name a file or folder elsewhere."
        raise Misuse("output-is-input", what, key=option, value=str(output), mend=mend)
    for place in inputs:
        whole = place.resolve()
        if own == whole or (whole.is_dir() and own.is_relative_to(whole)):
            what = "it is read by this command, and would be overwritten"
            if own != whole:
                what = f"it lies in {place}, which this command reads"
            mend = "Name a file or folder elsewhere."
            raise Misuse("output-is-input", what, key=option, value=str(output), mend=mend)


def refuse_special(path: Path) -> None:
    """Refuse what is there and is no file: reading a pipe waits for ever, reading a device never ends.

    Raises:
        OSError: it is a pipe, a socket or a device.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, and not a file", str(path))


def read_text(path: Path, what: str) -> str:
    """Read UTF-8 text. `what` names the thing in the error: "policy file", "report".

    Raises:
        Misuse: absent, unreadable, not UTF-8, or with a byte order mark.
    """
    try:
        refuse_special(path)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise Misuse("file-missing", f"there is no such {what}", file=path) from error
    except UnicodeDecodeError as error:
        what = f"the {what} is not UTF-8 text (byte {error.start})"
        raise Misuse("file-malformed", what, file=path) from error
    except OSError as error:
        raise Misuse("file-unreadable", f"cannot be read: {error.strerror or error}", file=path) from error
    if text.startswith("\ufeff"):
        raise Misuse("file-malformed", f"the {what} {BOM_FAULT}", file=path)
    return text
