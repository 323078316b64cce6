"""The files of a dataset in a copied workspace: links to the workspace's own until they are altered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_gate.selftest.bench import Untried, toml

#: Files that name documents: one that they name cannot be dropped without another fault.
_NAMING = ("timeline.jsonl", "links.jsonl", "concepts.json")


@dataclass(slots=True)
class SetFiles:
    """A dataset folder, and which of its splits is measured."""

    folder: Path
    split: str

    @classmethod
    def linked(cls, own: Path, place: Path, split: str) -> SetFiles:
        """Make a folder at `place` whose files are links to those of the dataset `own`."""
        for path in own.rglob("*"):
            target = place / path.relative_to(own)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(path)
        return cls(place, split)

    def _replace(self, path: Path, lines: Iterable[str]) -> None:
        """Write a file where the link to the workspace's own was."""
        text = [*lines]
        path.unlink(missing_ok=True)
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in text)

    @property
    def _queries(self) -> Path:
        return self.folder / "queries.jsonl"

    @property
    def _qrels(self) -> Path:
        return self.folder / "qrels" / f"{self.split}.tsv"

    def queries(self) -> list[dict[str, Any]]:
        """The lines of queries.jsonl."""
        return [json.loads(line) for line in _lines(self._queries)]

    def judgements(self) -> dict[str, dict[str, str]]:
        """Query to document to grade, as written."""
        found: dict[str, dict[str, str]] = {}
        for line in _lines(self._qrels)[1:]:
            query, document, grade = line.split("\t")[:3]
            found.setdefault(query, {})[document] = grade
        return found

    def _write_queries(self, queries: Iterable[Mapping[str, Any]]) -> None:
        self._replace(self._queries, (json.dumps(query, ensure_ascii=False) for query in queries))

    def _write_judgements(self, found: Mapping[str, Mapping[str, object]]) -> None:
        head = _lines(self._qrels)[0]
        rows = [f"{query}\t{name}\t{grade}" for query, held in found.items() for name, grade in held.items()]
        self._replace(self._qrels, [head, *rows])

    def keep_queries(self, wanted: Callable[[str], bool]) -> None:
        """Leave out the other queries, and their judgements in every split."""
        self._write_queries(query for query in self.queries() if wanted(query["_id"]))
        for path in sorted((self.folder / "qrels").glob("*.tsv")):
            head, *rows = _lines(path)
            self._replace(path, [head, *(row for row in rows if wanted(row.split("\t")[0]))])

    def repeat_query(self, name: str, other: str) -> None:
        """Add a query that is another in all but its id."""
        queries, judged = self.queries(), self.judgements()
        queries += [{**query, "_id": other} for query in queries if query["_id"] == name]
        self._write_queries(queries)
        self._write_judgements({**judged, other: judged.get(name, {})})

    def judge(self, changed: Mapping[str, Mapping[str, int]]) -> None:
        """Replace the judgements of some queries."""
        self._write_judgements({**self.judgements(), **changed})

    def shuffle_labels(self, filters: Sequence[str]) -> None:
        """Give each query the judgements of another that may have them: same scope, filter and time, and no document
        that it excludes.

        Raises:
            Untried: fewer than half of the queries find another one.
        """
        judged = self.judgements()
        queries = [query for query in self.queries() if query["_id"] in judged]
        made: dict[str, dict[str, str]] = {}
        free = [query["_id"] for query in queries]
        about = {query["_id"]: query.get("metadata") or {} for query in queries}
        # From the middle of those that are left, so that neighbours, which may be about one thing, are parted.
        for name in list(free):
            start = len(free) // 2
            order = free[start:] + free[:start]
            other = next((one for one in order if _may(name, one, about, judged, filters)), None)
            if other is not None:
                made[name] = judged[other]
                free.remove(other)
        if len(made) * 2 < len(queries):
            raise Untried("too few of its queries can have each other's labels")
        # A query that found no other keeps its own.
        self._write_judgements({**judged, **made})

    def _naming(self) -> list[Path]:
        return [path for name in _NAMING if (path := self.folder / name).exists()]

    def drop_document(self, corpus: Path) -> None:
        """Leave out a document that nothing names.

        Raises:
            Untried: there is none.
        """
        named = "".join(path.read_text(encoding="utf-8") for path in self._naming())
        kept = {name for query in self.queries() for name in (query.get("metadata") or {}).get("exclude", ())}
        for path in (self.folder / "qrels").glob("*.tsv"):
            kept |= {row.split("\t")[1] for row in _lines(path)[1:]}
        lines = _lines(corpus)
        for place in range(len(lines) - 1, -1, -1):
            name = json.loads(lines[place])["_id"]
            if name not in kept and json.dumps(name) not in named:
                self._put_corpus([*lines[:place], *lines[place + 1 :]])
                return
        raise Untried("every document is judged or named by something")

    def swap_texts(self, corpus: Path) -> None:
        """Exchange the texts of two documents; their ids stay.

        Raises:
            Untried: all texts are one.
        """
        lines = _lines(corpus)
        first = json.loads(lines[0])
        for place in range(len(lines) - 1, 0, -1):
            last = json.loads(lines[place])
            if last["text"] != first["text"]:
                first["text"], last["text"] = last["text"], first["text"]
                lines[0], lines[place] = (json.dumps(one, ensure_ascii=False) for one in (first, last))
                self._put_corpus(lines)
                return
        raise Untried("all its documents have one text")

    def _put_corpus(self, lines: Sequence[str]) -> None:
        """Have the set lie as these documents, whatever its recipe was: who alters a corpus that is pinned must write
        another recipe."""
        import tomllib

        self._replace(self.folder / "corpus.jsonl", lines)
        path = self.folder / "dataset.toml"
        if not path.exists():
            return
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        sources = table.get("corpus", {}).get("source", [])
        if any(source["type"] != "inline" for source in sources):
            table["corpus"] = {"source": [{"type": "inline", "name": "self-test"}]}
            path.unlink()
            path.write_bytes(toml(table))


def _lines(path: Path) -> list[str]:
    # Not splitlines(): JSON may hold separators that it would cut at.
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _may(
    name: str,
    other: str,
    about: Mapping[str, Mapping[str, Any]],
    judged: Mapping[str, Mapping[str, str]],
    filters: Sequence[str],
) -> bool:
    """Whether a query may have another's judgements, and they are not its own."""
    ours, theirs = about[name], about[other]
    if any(ours.get(key) != theirs.get(key) for key in ("scope", "time", *filters)):
        return False
    barred = {*ours.get("exclude", ()), *(doc for doc, grade in judged[name].items() if int(grade) > 0)}
    return barred.isdisjoint(judged[other])
