"""The page about the JSON-lines protocol: what it shows works."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from eval_backends.jsonl import JsonLines
from eval_backends.serve import parse_request
from eval_core.backend import Request
from eval_core.sets.corpus import CorpusFile

ROOT = Path(__file__).parents[2]


def examples(language: str) -> list[str]:
    page = (ROOT / "docs" / "backends" / "jsonl-protocol.md").read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for name, text in fences if name == language]


@pytest.mark.parametrize(
    ("language", "name", "program"), [("python", "adapter.py", "{python}"), ("js", "adapter.mjs", "node")]
)
def test_the_adapters_of_the_page_work(
    facts: CorpusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, name: str, program: str
) -> None:
    """A1: any command is a backend."""
    if program == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it would hide that an adapter does not flush
    (source,) = examples(language)
    assert len([line for line in source.splitlines() if line.strip()]) <= 12
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    backend = JsonLines([program, str(path), "{corpus}"])
    try:
        backend.index(facts)
        assert backend.search(Request("the VPN on friday", 9)).ids == ["f1", "f2", "f3"]
        assert backend.search(Request("the VPN on friday", 1)).ids == ["f1"]
        assert backend.search(Request("größenwahn: über", 3)).ids == ["f5"]
        assert backend.search(Request("unheard", 3)).ids == []
    finally:
        backend.close()


def test_the_requests_and_replies_of_the_page_are_valid() -> None:
    block = examples("")[0]
    request, reply = map(json.loads, block.splitlines())
    assert parse_request(request, frozenset(), "any").text == "where are retry delays computed"
    assert len(reply["ids"]) == len(reply["scores"])
