"""Files that people write are read strictly, and every fault names line, key, value and mend."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from eval_core.config import EvalFile
from eval_core.errors import Faults, Misuse, did_you_mean
from eval_core.faults import first_fault
from eval_core.models import Closed, parse_toml
from eval_core.sets.definition import Definition

PATH = Path("file.toml")


def faults(text: str, model: type[Closed] = EvalFile) -> list[str]:
    with pytest.raises(Faults) as caught:
        parse_toml(text, model, PATH, "configuration")
    return [str(fault) for fault in caught.value.faults]


ARM = '[arms."a.b"]\ndataset = "d"\nbackend = "bm25"\n'


def test_a_file_that_fits_is_a_model() -> None:
    arms = parse_toml(ARM + "cutoffs = [1, 3]\noptions.k1 = 1\n", EvalFile, PATH, "configuration").arms
    assert (arms["a.b"].cutoffs, arms["a.b"].options, arms["a.b"].repetitions) == ((1, 3), {"k1": 1}, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ARM + "limt = 5\n",
            "file.toml:4: arms.\"a.b\".limt: unknown key; did you mean 'limit'?  (known: dataset, ",
        ),
        (ARM + "zzz = 5\n", 'file.toml:4: arms."a.b".zzz: unknown key  (known: dataset, '),
        ("top = 1\n" + ARM, "file.toml:1: top: unknown key  (known: arms, audit, default)"),
        ("arm.x = 1\n" + ARM, "file.toml:1: arm: unknown key; did you mean 'arms'?"),
        ('[arms."a"]\nbackend = "b"\n', "file.toml:1: arms.a.dataset: it is missing"),
        (ARM + "limit = true\n", 'file.toml:4: arms."a.b".limit = True: should be a valid integer'),
        (ARM + "limit = 10.0\n", 'file.toml:4: arms."a.b".limit = 10.0: should be a valid integer'),
        (ARM + 'limit = "10"\n', "file.toml:4: arms.\"a.b\".limit = '10': should be a valid integer"),
        (ARM + "limit = 0\n", 'file.toml:4: arms."a.b".limit = 0: should be greater than or equal to 1'),
        (ARM + "cutoffs = 10\n", 'file.toml:4: arms."a.b".cutoffs = 10: should be a valid array'),
        (ARM + "cutoffs = []\n", 'file.toml:4: arms."a.b".cutoffs = []: should have at least 1 item'),
        (ARM + "cutoffs = [1, 2.5]\n", 'file.toml:4: arms."a.b".cutoffs[1] = 2.5: should be a valid integer'),
        (ARM + 'expand = "no"\n', "file.toml:4: arms.\"a.b\".expand = 'no': should be a valid boolean"),
        (
            ARM + 'lane = "night"\n',
            "file.toml:4: arms.\"a.b\".lane = 'night': should be 'pull-request' or 'owner'",
        ),
        (ARM + "options.k1 = nan\n", 'file.toml:4: arms."a.b".options.k1 = nan: should be a finite number'),
        (
            ARM + "options.x = [1, -inf]\n",
            'file.toml:4: arms."a.b".options.x[1] = -inf: should be a finite number',
        ),
        (
            '[arms.a]\ndataset = ""\nbackend = "b"\n',
            "file.toml:2: arms.a.dataset = '': should have at least 1 char",
        ),
        ("", "file.toml: arms: it is missing"),
        ("arms = {}\n", "file.toml:1: arms = {}: should have at least 1 item"),
        ("arms = 3\n", "file.toml:1: arms = 3: should be an object"),
    ],
)
def test_a_fault_names_line_key_value_and_mend(text: str, expected: str) -> None:
    (found,) = faults(text)
    assert found.startswith(expected)


def test_every_fault_is_told() -> None:
    text = (
        '[arms.a]\ndataset = 1\nlimit = 0\nlanes = "x"\n\n[arms.b]\ndataset = "d"\nbackend = "b"\nsplit = 2\n'
    )
    found = faults(text)
    assert [fault.partition(": ")[0] for fault in found] == [f"file.toml:{line}" for line in (2, 1, 3, 4, 9)]


SOURCES = 'name = "n"\n[[corpus.source]]\ntype = "inline"\nname = "own"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            SOURCES + '[[corpus.source]]\ntype = "gti"\nname = "x"\n',
            ":5: corpus.source[1].type = 'gti': there is no such type; did you mean 'git'?  (known: inline, git, ",
        ),
        (
            SOURCES + '[[corpus.source]]\nname = "x"\n',
            ":5: corpus.source[1]: has no type; give one of inline, git, archive, dir",
        ),
        (
            SOURCES + '[[corpus.source]]\ntype = "dir"\nname = "x"\npath = "p"\nexlude = []\n',
            ":9: corpus.source[1].exlude: unknown key; did you mean 'exclude'?",
        ),
        (
            SOURCES + '[[corpus.source]]\ntype = "dir"\nname = "own"\npath = "p"\n',
            ":2: corpus: sources share the name 'own'; give each its own",
        ),
        (
            SOURCES + '[[corpus.source]]\ntype = "git"\nname = "x"\nurl = "u"\ncommit = "abc"\n',
            ":5: corpus.source[1]: source 'x': commit 'abc' is not a full commit id of 40 or 64 hexadecimal digits",
        ),
    ],
)
def test_the_right_one_of_several_tables_is_pointed_at(text: str, expected: str) -> None:
    assert any(fault.startswith("file.toml" + expected) for fault in faults(text, Definition))


@pytest.mark.parametrize("text", ["[arms", 'a = "x', "a = 1\na = 2\n", "a = {b = 1}\na.c = 2\n", "\x00"])
def test_what_is_no_toml_is_told(text: str) -> None:
    with pytest.raises(Misuse, match=r"^file.toml: the configuration is not TOML: ") as caught:
        parse_toml(text, EvalFile, PATH, "configuration")
    assert caught.value.code == "file-malformed"


def test_the_first_fault_stands_for_a_file_that_one_is_enough_to_refuse() -> None:
    with pytest.raises(ValidationError) as caught:
        EvalFile.model_validate_json('{"arms": {"a": {"dataset": 1}}, "x": 2}')
    assert first_fault(caught.value, EvalFile) == "arms.a.dataset = 1: should be a valid string (and 2 more)"


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ("densse", ["dense", "bm25"], "; did you mean 'dense'?"),
        ("zzz", ["dense"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_name_is_suggested(given: str, known: list[str], expected: str) -> None:
    assert did_you_mean(given, known) == expected


@pytest.mark.parametrize(
    "text",
    [f"a = {'9' * 5000}", f"a = 0x{'f' * 9000}", "a." * 3000 + "b = 1", f"a = {'[' * 3000}{']' * 3000}"],
    ids=["digits", "hexadecimal", "dotted", "nested"],
)
def test_toml_at_the_edge_of_its_grammar_is_a_fault_of_the_file(text: str) -> None:
    with pytest.raises(Misuse, match="the thing "):
        parse_toml(text, EvalFile, Path("file.toml"), "thing")
