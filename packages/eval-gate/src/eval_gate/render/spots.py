"""Where in the repository a finding belongs: the line of a judgement, of a floor, of an arm, or the file concerned."""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from eval_core.config import Arm, Workspace, load_workspace
from eval_core.errors import EvalError
from eval_core.faults import line_of
from eval_core.files import read_text, refuse_special
from eval_core.policy import BUDGETS, is_name, path_of
from eval_gate.render.place import Place
from eval_gate.verdict import ArmVerdict, Reason

#: Files of the set, by the reason code that speaks of them.
_OF_THE_SET: Mapping[str, str] = {
    "query-set-differs": "queries.jsonl",
    "queries-differ": "queries.jsonl",
    "must-pass-lost": "queries.jsonl",
    "corpus-differs": "dataset.toml",
    "corpus-size-differs": "dataset.toml",
    "recipe-differs": "dataset.toml",
    "kind-differs": "dataset.toml",
    "timeline-differs": "timeline.jsonl",
    "links-differ": "links.jsonl",
    "concepts-differ": "concepts.json",
}

#: Codes about how the arm is configured.
_CONFIGURED = (
    *("split-differs", "limit-differs", "filter-differs", "scale-differs", "metric-missing"),
    *("latency-not-measurable", "provenance-diverges", "index-cached", "rows-errored"),
)


class Spot(NamedTuple):
    """A file, as the forge names it, and a line of it, where one is known."""

    file: str
    line: int | None = None


class Judgement(NamedTuple):
    """A judgement that is looked for."""

    arm: str
    query: str
    document: str


class Spots:
    """Finds places for findings. What cannot be read leads to a place that is less exact, never to an error."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._top = os.environ.get("GITHUB_WORKSPACE") or None
        self._workspace: Workspace | None = None
        with contextlib.suppress(EvalError):
            self._workspace = load_workspace(place.config)
        self._read = cache(_parsed)

    def judgements(self, wanted: Iterable[Judgement]) -> dict[Judgement, Spot]:
        """The line of each judgement; the query's first line where the document is not judged there any more.

        The judgements of a set are read once, and no further than needed. What has no line has no entry.
        """
        by_file: dict[Path, list[Judgement]] = {}
        for one in wanted:
            if (path := self._qrels(one.arm)) is not None:
                by_file.setdefault(path, []).append(one)
        found: dict[Judgement, Spot] = {}
        for path, several in by_file.items():
            lines, queries = _lines(path, {(one.query, one.document) for one in several})
            for one in several:
                line = lines.get((one.query, one.document)) or queries.get(one.query)
                if line is not None:
                    found[one] = Spot(self._named(path), line)
        return found

    def same(self, one: Judgement) -> tuple[str, str, str]:
        """What is equal for two arms that were lost at the same judgement."""
        return str(self._qrels(one.arm) or one.arm), one.query, one.document

    def arm(self, name: str, *keys: str) -> Spot:
        """The line of an arm's floors, or of a key of them; that of the arm in eval.toml where it has none."""
        floors = self._toml(self._place.floors, ["arms", name, *keys], 2)
        if floors is not None:
            return floors
        # Plain floors have a table an arm, and none around them.
        plain = self._toml(self._place.floors, [name], 1)
        return plain or self._configured(name)

    def budget(self, name: str) -> Spot:
        return self._toml(self._place.policy / BUDGETS, ["arms", name], 2) or self.arm(name)

    def reason(self, arm: ArmVerdict, reason: Reason) -> Spot:
        """The file that a reason is about, and the line where it is a floor or a table of the arm."""
        name, code = arm.arm, reason.code
        folder = self._folder(name)
        if code in ("floor-breached", "baseline-drop", "floor-not-derived") and reason.key is not None:
            category = () if reason.category is None else ("categories", reason.category)
            return self.arm(name, *category, *self._keys(arm, reason))
        if code == "latency-over-budget":
            return self.budget(name)
        if code == "judgements-differ" and (path := self._qrels(name)) is not None:
            return Spot(self._named(path))
        if code in _OF_THE_SET and folder is not None:
            path = folder / _OF_THE_SET[code]
            return Spot(self._named(path)) if path.is_file() else self._configured(name)
        if code in _CONFIGURED:
            return self._configured(name)
        if code.startswith("evidence-") and is_name(name):
            return Spot(self._named(path_of(self._place.policy, name)), reason.line)
        return self.arm(name)

    def _keys(self, arm: ArmVerdict, reason: Reason) -> Sequence[str]:
        """The keys below an arm's table that a reason about a measure speaks of."""
        for grade in arm.graded:
            if (grade.measure, grade.category) == (reason.key, reason.category):
                return ("floors" if grade.misses is None else "misses_allowed", grade.measure)
        return (str(reason.key).split(".", 1)) if "." in str(reason.key) else (str(reason.key),)

    def policy(self) -> Spot:
        """The floors file as a whole."""
        return Spot(self._named(self._place.floors))

    def _configured(self, name: str) -> Spot:
        found = self._toml(self._place.config, ["arms", name], 2)
        return found or self.policy()

    def _toml(self, path: Path, keys: list[str], needed: int) -> Spot | None:
        """The line of a key, or of the table around it; nothing where the first `needed` keys are not in the file."""
        text, table = self._read(path)
        for key in keys[:needed]:
            if not isinstance(table, dict) or key not in table:
                return None
            table = table[key]
        return Spot(self._named(path), line_of(text, keys))

    def _arm(self, name: str) -> Arm | None:
        return None if self._workspace is None else self._workspace.arms.get(name)

    def _folder(self, name: str) -> Path | None:
        arm = self._arm(name)
        return None if arm is None or self._workspace is None else self._workspace.dataset_folder(arm)

    def _qrels(self, name: str) -> Path | None:
        arm, folder = self._arm(name), self._folder(name)
        if arm is None or folder is None:
            return None
        splits = sorted(folder.glob("qrels/*.tsv"))
        if arm.split is not None or len(splits) != 1:
            path = folder / "qrels" / f"{arm.split or 'test'}.tsv"
        else:
            path = splits[0]
        return path if path.is_file() else None

    def _named(self, path: Path) -> str:
        """The path as the forge knows it: from the top of the checkout, where the job says which that is."""
        if self._top is not None:
            whole, top = os.path.abspath(path), os.path.abspath(self._top)
            if whole.startswith(top + os.sep):
                return Path(whole[len(top) + 1 :]).as_posix()
        return Path(os.path.normpath(path)).as_posix()


def _parsed(path: Path) -> tuple[str, object]:
    """The text of a TOML file and its table; nothing of one that cannot be read."""
    try:
        text = read_text(path, "file")
        return text, tomllib.loads(text)
    except (EvalError, OSError, ValueError, RecursionError):
        return "", {}


def _lines(
    path: Path, wanted: Collection[tuple[str, str]]
) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """The lines of judgements, and the first line of each of their queries."""
    found: dict[tuple[str, str], int] = {}
    queries: dict[str, int] = {}
    names = {query for query, _ in wanted}
    try:
        refuse_special(path)
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                fields = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
                if len(fields) != 3 or fields[0] not in names:
                    continue
                queries.setdefault(fields[0], number)
                if (fields[0], fields[1]) in wanted:
                    found.setdefault((fields[0], fields[1]), number)
                    if len(found) == len(wanted):
                        break
    except OSError:
        pass
    return found, queries
