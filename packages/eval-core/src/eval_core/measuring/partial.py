"""The file that answers are appended to while an arm is measured, so that a killed run can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_core.errors import Refused
from eval_core.files import canonical, unwritable
from eval_core.reports.keys import SYSTEM_PARTS, TASK_PARTS, differences
from eval_core.sets.corpus import read_json_lines


class Partial:
    """The file that rows are appended to while an arm is measured."""

    def __init__(self, path: Path, header: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.done: dict[tuple[int, str], dict[str, Any]] = {}
        self.resumed = False
        self.run_id = str(header["run_id"])
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and resume:
                self._take_up(header)
            elif path.exists():
                # Hours of work may lie in it, so it is set aside and not overwritten.
                os.replace(path, path.with_name(path.name + ".old"))
            if not self.resumed:
                path.write_bytes(canonical(dict(header)) + b"\n")
            self._stream = path.open("ab", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from error

    def _take_up(self, header: Mapping[str, Any]) -> None:
        raw = self.path.read_bytes()
        if not raw.endswith(b"\n"):
            # The kill cut the last line short; what it held is measured again.
            whole = raw.rfind(b"\n") + 1
            with self.path.open("r+b") as stream:
                stream.truncate(whole)
        lines = [value for _, value in read_json_lines(self.path, lambda line, message: None)]
        if not lines:
            return
        for key, parts in (("task", TASK_PARTS), ("system", SYSTEM_PARTS)):
            before, now = lines[0].get(key), header[key]
            if before != now:
                before = before if isinstance(before, dict) else {}
                names = ", ".join(d.part for d in differences(before, now, parts))
                raise Refused(
                    f"resume-{key}-differs",
                    f"the unfinished run had another {key} ({names} differ)",
                    file=self.path,
                    mend="Measure without --resume to begin again.",
                )
        self.run_id = str(lines[0].get("run_id", self.run_id))
        self.done = {(line["pass"], line["id"]): line for line in lines[1:] if is_whole(line)}
        self.resumed = True

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        """Append one answer; a kill loses at most the line in flight."""
        line = json.dumps({"pass": number, **record}, ensure_ascii=False).encode() + b"\n"
        try:
            self._stream.write(line)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def close(self) -> None:
        """Close the file; it stays for --resume."""
        self._stream.close()


def is_whole(line: Mapping[str, Any]) -> bool:
    """Whether a line holds one answer; what a power cut or an editor left of another is measured again."""
    if not isinstance(line.get("pass"), int) or not isinstance(line.get("id"), str):
        return False
    if "error" in line:
        return isinstance(line["error"], str)
    ids, scores, latency = line.get("ids"), line.get("scores"), line.get("latency")
    if not isinstance(ids, list) or not all(isinstance(i, str) for i in ids) or len(set(ids)) != len(ids):
        return False
    if scores is not None and (not isinstance(scores, list) or len(scores) != len(ids)):
        return False
    if not all(map(_is_number, scores or ())) or not _is_number(latency):
        return False
    return all(isinstance(line.get(key), int) for key in ("duplicates", "excess", "reordered"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
