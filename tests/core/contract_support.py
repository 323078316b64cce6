"""What the tests of the comparison contract share: small trees, manifests, and the contract checked by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_core.contract import as_json, compare_backends
from eval_core.contract.models import Comparison

#: What the single-backend form has at its top, with the JSON types that a reader of it relies on.
SINGLE = {
    "id": str,
    "backend": str,
    "manifest_path": str,
    "search_root": str,
    "queries": int,
    "k": int,
    "hits": int,
    "missing_ground_truth": int,
    "any_relevant_at_k": float,
    "avg_precision_at_k": float,
    "mean_reciprocal_rank": float,
    "results": list,
}
TOP = {"id": str, "manifest_path": str, "search_root": str, "queries": int, "k": int, "backends": list}
RESULT = {
    "id": str,
    "backend": str,
    "query": str,
    "intent": str,
    "ground_truth": list,
    "missing_ground_truth": list,
    "result_paths": list,
    "hit_paths": list,
    "any_relevant": bool,
    "precision_at_k": float,
    "reciprocal_rank": float,
}

#: Four notes, each of one word that no other has.
NOTES = {"a.md": "apple", "b.md": "banana", "docs/c.txt": "cherry", "src/d.py": "date = 1"}


def tree(root: Path, files: Mapping[str, str | bytes] = NOTES) -> Path:
    """Write files below a root, which is made."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def manifest(path: Path, queries: Mapping[str, tuple[str, Sequence[str]]]) -> Path:
    """Write a manifest: query id to (text, ground truth). The intent of a query is `intent of ID`."""
    rows = [
        {"id": name, "query": text, "intent": f"intent of {name}", "ground_truth": list(truth)}
        for name, (text, truth) in queries.items()
    ]
    path.write_text(json.dumps({"id": "notes", "queries": rows}, ensure_ascii=False), "utf-8")
    return path


def legacy(path: Path, entries: Sequence[tuple[str, Sequence[str]]]) -> Path:
    """Write a legacy array: (text, relevant)."""
    rows = [{"query": text, "relevant": list(paths), "category": "old"} for text, paths in entries]
    path.write_text(json.dumps(rows), "utf-8")
    return path


def compared(
    root: Path, queries: Mapping[str, tuple[str, Sequence[str]]], *backends: str, k: int = 2
) -> Comparison:
    """Compare backends over a root, the manifest beside it."""
    return compare_backends(manifest(root.parent / "manifest.json", queries), root, list(backends), k)


def has(value: Mapping[str, Any], fields: Mapping[str, type]) -> None:
    """Each field is there, of its JSON type and no other: `true` is no number, 1 no truth value."""
    for name, kind in fields.items():
        assert type(value[name]) is kind, (name, value.get(name))


def held(comparison: Comparison, root: Path, backends: Sequence[str]) -> dict[str, Any]:
    """The JSON, held against the contract by a computation of its own."""
    value: dict[str, Any] = json.loads(as_json(comparison))
    has(value, TOP)
    assert value["schema"] == "retrieval-comparison-v1"
    assert [report["backend"] for report in value["backends"]] == list(backends)
    for report in value["backends"]:
        has(report, SINGLE)
        assert {name: report[name] for name in TOP if name != "backends"} == {
            name: value[name] for name in TOP if name != "backends"
        }
        _figures(report, root, value["k"])
    return value


def _figures(report: Mapping[str, Any], root: Path, k: int) -> None:
    reciprocal, precision, hits, missing = 0.0, 0.0, 0, 0
    for row in report["results"]:
        has(row, RESULT)
        assert row["backend"] == report["backend"]
        assert len(row["result_paths"]) <= k
        assert all((root / path).is_file() for path in row["result_paths"])
        good = set(row["result_paths"]) & set(row["ground_truth"])
        assert sorted(good) == sorted(row["hit_paths"])
        assert row["any_relevant"] is bool(good)
        assert row["precision_at_k"] == len(good) / min(len(row["ground_truth"]), k)
        assert row["missing_ground_truth"] == [p for p in row["ground_truth"] if not (root / p).is_file()]
        if good:
            rank = min(row["result_paths"].index(path) for path in good) + 1
            assert type(row["first_relevant_rank"]) is int
            assert row["first_relevant_rank"] == rank
            assert row["reciprocal_rank"] == 1 / rank
            reciprocal += 1 / rank
        else:
            assert "first_relevant_rank" not in row
            assert row["reciprocal_rank"] == 0
        precision += row["precision_at_k"]
        hits += bool(good)
        missing += len(row["missing_ground_truth"])
    n = len(report["results"])
    assert (report["hits"], report["missing_ground_truth"]) == (hits, missing)
    assert abs(report["any_relevant_at_k"] - hits / n) < 1e-12
    assert abs(report["avg_precision_at_k"] - precision / n) < 1e-12
    assert abs(report["mean_reciprocal_rank"] - reciprocal / n) < 1e-12
