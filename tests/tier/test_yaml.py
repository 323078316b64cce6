"""A YAML file is read as nodes with lines, and a hostile one ends in faults within a second."""

from __future__ import annotations

import time

import pytest

from eval_tier.workflow import yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("raw", "what", "line"),
    [
        (b"", "empty", None),
        (b"# only a comment\n", "empty", None),
        (b"- a\n- b\n", "not a mapping", 1),
        (b"a: 1\n---\nb: 2\n", "several documents", 2),
        (b"a: 1\nb: !Ref x\n", "tag '!Ref'", 2),
        (b"a: 1\nb: \xff\n", "not UTF-8", 2),
        (b"a: [1\nb: 2\n", "not YAML", 2),
        (b"a: *missing\n", "not YAML", 1),
        (b"a: \x00\n", "not YAML", None),
        (b"a: &a\n  b: *a\n", "contains itself", 1),
        (BOMB.encode(), "nodes once aliases", None),
        (b"a: " + b"[" * 100_000, "nests more than", None),
        (b"a: " + b"{a: " * 100_000, "nests more than", None),
        (b"- " * 100_000 + b"a", "nests more than", None),
        (b"? " * 100_000 + b"a", "nests more than", None),
        ("".join(" " * i + "a:\n" for i in range(150)).encode(), "nests more than", 101),
        (b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a, " * 50 + b"]\n", "characters once aliases", None),
        (b"a: " + b"x" * 50_000_000, "50,000,003 bytes", None),
    ],
)
def test_unreadable_file_is_one_whole_fault_within_a_second(raw: bytes, what: str, line: int | None) -> None:
    begin = time.process_time()
    document = yaml.compose("ci.yml", raw)
    assert time.process_time() - begin < 1
    assert document.root is None
    (fault,) = document.faults
    assert fault.whole and what in fault.what
    assert line is None or fault.place.line == line


def test_a_duplicate_key_is_a_fault_and_the_rest_is_read() -> None:
    document = yaml.compose("ci.yml", b"a: 1\nb:\n  c: 1\n  c: 2\n")
    assert [(str(f.place), f.what, f.whole) for f in document.faults] == [
        ("ci.yml:4", "duplicate key 'c'", False)
    ]
    assert yaml.text(yaml.get(yaml.get(document.root, "b"), "c")) == "2"


def test_legal_forms_are_read_with_lines() -> None:
    raw = b"\xef\xbb\xbfon: push\nx: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nrun: |\n  make\n"
    document = yaml.compose("ci.yml", raw)
    assert document.faults == ()
    assert list(yaml.entries(document.root)) == ["on", "x", "y", "run"]
    merged = {key: yaml.text(value) for key, (_, value) in yaml.entries(yaml.get(document.root, "y")).items()}
    assert merged == {"a": "1", "b": "3"}
    run = yaml.get(document.root, "run")
    assert run is not None and (yaml.line(run), yaml.script_line(run)) == (6, 7)


def test_without_the_c_loader_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "has_c_loader", lambda: False)
    document = yaml.compose("ci.yml", b"on: push\njobs: {a: {steps: [{run: x}]}}\n")
    assert list(yaml.entries(document.root)) == ["on", "jobs"]
    assert yaml.compose("ci.yml", b"a: " + b"[" * 100_000).root is None
