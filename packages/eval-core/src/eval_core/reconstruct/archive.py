"""The files of one wheel of a package registry, pinned by its digest and read in place, never unpacked or installed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shlex
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from eval_core.errors import CouldNot, EvalError, Fault, Faults
from eval_core.files import atomic
from eval_core.reconstruct.overrides import elsewhere
from eval_core.reconstruct.selection import Entry, State
from eval_core.sets.definition import Archive

#: A network that does not answer is told of soon: one retry, seconds a try.
_PATIENCE = ("--retries", "1", "--timeout", "15")


def location(source: Archive) -> str:
    """What the recipe asks a registry for."""
    return f"{source.package}=={source.version}"


@contextlib.contextmanager
def opened(
    source: Archive, override: Path | None, cache: Path, progress: Callable[[str], None]
) -> Iterator[tuple[State, Iterator[Entry]]]:
    """Yield the state of a source and the members of its wheel, in byte order of their names.

    Args:
        override: the wheel, or a folder that holds it, instead of the cache and the registry.
        cache: where fetched wheels are kept, by digest.

    Raises:
        CouldNot: the wheel is not there and cannot be fetched, or is not the one that the recipe pins.
        Faults: it is no sound zip file; every bad member is named.
    """
    path = _local(source, override) if override is not None else _cached(source, cache, progress)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise _error(source, "source-absent", f"{path} cannot be read: {error.strerror or error}") from error
    with stream:
        # Digest and content are read through one handle: a file that is exchanged in between changes nothing.
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != source.sha256:
            raise _differs(
                source, path, found, None if override is not None else f"rm {shlex.quote(str(path))}"
            )
        yield State(pinned=True, sha256=source.sha256), _entries(stream, source, path)


def _error(source: Archive, code: str, what: str, mend: str | None = None) -> CouldNot:
    return CouldNot(code, what, subject=f"source {source.name!r}", mend=mend)


def _differs(source: Archive, path: Path, found: str, mend: str | None = None) -> CouldNot:
    what = f"{path} has sha256 {found[:12]}…, the recipe pins {source.sha256[:12]}…; it was not used"
    return _error(source, "archive-digest-differs", what, mend and f"{mend}  (it is fetched again)")


def _local(source: Archive, override: Path) -> Path:
    """The wheel that an override names, or the one with the right digest of the folder that it names."""
    if override.is_file():
        return override
    if not override.is_dir():
        raise _error(source, "source-absent", f"{str(override)!r} does not exist")
    wheels = sorted(override.glob("*.whl"))
    for wheel in wheels:
        with wheel.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == source.sha256:
                return wheel
    count = f"{len(wheels)} wheel{'' if len(wheels) == 1 else 's'}"
    what = f"none of {count} in {str(override)!r} has the pinned sha256 {source.sha256[:12]}…"
    raise _error(source, "archive-digest-differs" if wheels else "source-absent", what)


def _cached(source: Archive, cache: Path, progress: Callable[[str], None]) -> Path:
    """The wheel in the cache, fetched there first if need be."""
    path = cache / "archives" / f"{source.sha256}.whl"
    if path.exists():
        return path
    progress(f"source {source.name!r}: fetching the wheel of {location(source)}")
    with tempfile.TemporaryDirectory(prefix="eval-wheel-") as folder:
        wheel = _downloaded(source, Path(folder))
        with wheel.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != source.sha256:
                raise _differs(source, Path(wheel.name), found)
            stream.seek(0)
            with atomic(path) as kept:
                while chunk := stream.read(1 << 20):
                    kept.write(chunk)
    return path


def _downloaded(source: Archive, folder: Path) -> Path:
    """Have pip fetch the wheel into `folder`; which index it asks is pip's own configuration."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{location(source)} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    target = folder / "wheels"
    # -P: a file `pip.py` where we happen to stand is not what is meant by pip.
    # A wheel is only read here, so what Python it is made for does not matter.
    command = (
        *(sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"),
        *("--require-hashes", "--ignore-requires-python", "--disable-pip-version-check", "--no-input"),
        *(
            "--quiet",
            "--progress-bar",
            "off",
            *_PATIENCE,
            "--dest",
            str(target),
            "--requirement",
            str(wanted),
        ),
    )
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=_environment()
    )
    found = sorted(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode != 0 or len(found) != 1:
        raise _not_fetched(source, done.stderr.decode("utf-8", "replace"))
    return found[0]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}


def _not_fetched(source: Archive, stderr: str) -> CouldNot:
    mend = f"if the wheel is on this machine: {elsewhere(source.name)}"
    if "DO NOT MATCH THE HASHES" in stderr:
        what = f"the registry's {location(source)} does not have the pinned sha256 {source.sha256[:12]}…"
        return _error(source, "archive-digest-differs", what, mend)
    if "No module named pip" in stderr:
        what = "pip is not installed beside this Python, and an archive source needs it"
        return _error(source, "pip-missing", what, f"{shlex.quote(sys.executable)} -m ensurepip")
    lines = [line.removeprefix("ERROR: ").strip() for line in stderr.splitlines() if line.strip()]
    # The last line sums up; those before tell one failed try after the other.
    last = lines[-1][:300] if lines else "no reason given"
    silent = "no package index answered; " if "connection broken" in stderr else ""
    what = f"the wheel of {location(source)} could not be fetched: {silent}{last}"
    return _error(source, "source-absent", what, mend)


def _entries(stream: IO[bytes], source: Archive, path: Path) -> Iterator[Entry]:
    """The members of a wheel in byte order of their names; all bad names are told at once, before any is read."""
    try:
        stream.seek(0)
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError, ValueError, OSError) as error:
        raise _faults(path, [f"is not a sound zip file: {error}"]) from error
    with archive:
        members = archive.infolist()
        faults = [fault for member in members if (fault := _fault(member))]
        names = [member.orig_filename for member in members]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            faults += [f"holds the member {name!r} more than once" for name in twice]
        if faults:
            raise _faults(path, faults)
        for member in sorted(members, key=_name):
            name = _name(member)
            if member.is_dir():
                continue
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                yield Entry(name, "symlink")
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                yield Entry(name, "special")
            else:
                yield Entry(name, "file", member.file_size, functools.partial(_read, archive, member, path))


def _name(member: zipfile.ZipInfo) -> bytes:
    # The name as it is stored; `filename` is changed to suit the machine.
    return member.orig_filename.encode()


def _fault(member: zipfile.ZipInfo) -> str | None:
    """What makes a member one that is not to be trusted, or None."""
    name = member.orig_filename
    parts = name.removesuffix("/").split("/")
    if "\\" in name or "\0" in name or name[1:2] == ":":
        return f"holds the member {name!r}, whose name has a backslash, a zero byte or a drive"
    if any(part in ("", ".", "..") for part in parts):
        return f"holds the member {name!r}, whose name is not a plain relative path"
    if member.flag_bits & 0x1:
        return f"holds the encrypted member {name!r}"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"holds the member {name!r}, compressed by method {member.compress_type}; wheels are stored or deflated"
    return None


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, most: int) -> bytes:
    """At most `most` bytes of a member. A member that holds more than it declares does not fit its checksum."""
    try:
        with archive.open(member) as stream:
            return stream.read(most)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise _faults(path, [f"holds the damaged member {member.orig_filename!r}: {error}"]) from error


def _faults(path: Path, messages: list[str]) -> EvalError:
    return Faults([Fault(message, file=path) for message in messages], consequence="nothing was written")
