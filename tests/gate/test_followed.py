"""A refusal says how to go on: its commands, followed as they are printed, bring the workspace back to a pass."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space


@pytest.fixture
def held(bare: Space) -> Space:
    """A workspace in git whose committed bar passes."""
    bare.answer()
    bare.commit()
    assert bare.gate("floor", "--measure", "--write").code == 0
    bare.commit("the bar")
    assert bare.core("measure", "-q").code == 0
    assert bare.check().code == 0
    return bare


def definition(old: str, new: str) -> Callable[[Space], object]:
    return lambda space: space.edit(space.root / "set" / "dataset.toml", old, new)


def arm(text: str) -> Callable[[Space], object]:
    return lambda space: space.edit(
        space.root / "eval.toml", 'backend = "jsonl"', f'backend = "jsonl"\n{text}'
    )


def floors(pattern: str, new: str) -> Callable[[Space], object]:
    def change(space: Space) -> None:
        text, found = re.subn(pattern, new, space.floors.read_text(), count=1)
        assert found == 1
        space.floors.write_text(text)

    return change


def budget(text: str) -> Callable[[Space], object]:
    return lambda space: space.budgets.write_text(f'schema = "budgets-v2"\n[arms."notes"]\n{text}\n')


def query_lost(space: Space) -> None:
    space.put_queries(space.queries()[1:])
    space.rejudge(lambda rows: [row for row in rows if not row.startswith("q01\t")])


def worse(space: Space) -> None:
    """Twelve of 27 queries are lost, and two runs of CI uploaded that."""
    space.answer(space.losing(12))
    for number, name in (("8812", "A.zip"), ("8813", "B.zip")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GITHUB_RUN_ID", number)
            assert space.core("measure", "-q").code == 0
        with zipfile.ZipFile(space.root.parent / name, "w") as archive:
            archive.write(space.report, "notes.json")
    for name in ("A.zip", "B.zip"):
        (space.root.parent / name).rename(space.root / name)


def unheld(space: Space) -> None:
    """An arm without floors, where each needs them."""
    text = (space.root / "eval.toml").read_text()
    (space.root / "eval.toml").write_text(text + text.replace('"notes"', '"other"'))
    space.edit(
        space.floors,
        'schema = "floors-v2"\n',
        'schema = "floors-v2"\nrequire = ["head", "clean", "provenance", "every-arm"]\n',
    )


def reworded(space: Space) -> None:
    """Said otherwise, and answered as before."""
    answers = json.loads((space.root / "answers.json").read_text())
    rows = space.queries()
    answers["where would one look for thing 1"] = answers[rows[0]["text"]]
    rows[0]["text"] = "where would one look for thing 1"
    space.put_queries(rows)
    (space.root / "answers.json").write_text(json.dumps(answers))


DEFAULT = '[default]\nset = "notes"\n\n[arms."notes"]'

#: What happened, and the code that the refusal has.
CASES: dict[str, tuple[Callable[[Space], object], str]] = {
    "a query went": (query_lost, "query-set-differs"),
    "a query was reworded": (reworded, "queries-differ"),
    "a judgement changed": (lambda s: s.rejudge(lambda rows: [*rows, "q01\td30\t1"]), "judgements-differ"),
    "a document changed": (
        lambda s: s.rewrite_documents(lambda rows: [*rows[:-1], rows[-1].replace("thing", "it")]),
        "corpus-differs",
    ),
    "fewer documents are asked for": (arm("limit = 5\ncutoffs = [1, 5]"), "limit-differs"),
    "the set asks for fewer": (
        definition('headline = "hit@1"', 'headline = "hit@1"\nlimit = 5\ncutoffs = [1, 5]'),
        "limit-differs",
    ),
    "another headline": (definition('headline = "hit@1"', 'headline = "mrr"'), "headline-differs"),
    "another kind": (definition('kind = "memory"', 'kind = "code"'), "kind-differs"),
    "more repetitions": (arm("repetitions = 9"), "repetitions-differ"),
    "a floor edited": (floors("mrr = [0-9.]+", "mrr = 0.1"), "floor-not-derived"),
    "a wider margin by hand": (floors("margin = 2", "margin = 6"), "floor-not-derived"),
    "a looser budget by hand": (budget("p95_ms = 900"), "reason-missing"),
    "a looser drop by hand": (budget('max_drop = { "recall@10" = 50 }'), "reason-missing"),
    "the evidence is gone": (lambda s: s.evidence.unlink(), "evidence-missing"),
    "a worse retriever": (worse, "floor-breached"),
    "too slow": (budget("p95_ms = 0.0001"), "latency-over-budget"),
    "an arm without floors": (unheld, "arm-not-gated"),
    "a default by hand": (
        lambda s: s.edit(s.root / "eval.toml", '[arms."notes"]', DEFAULT),
        "promotion-mixed",
    ),
}


def steps(text: str) -> list[list[str]]:
    """The commands of the gate that a text prints, with a reason where one is asked for."""
    found = re.findall(r"(?:^ *|  |: )(eval-(?:gate|core) (?:(?!  | && |\.$).)+)", text, re.MULTILINE)
    typed = dict.fromkeys(one.replace('"…"', '"it is meant"').replace("…", "500").strip() for one in found)
    return [
        shlex.split(one)
        for one in typed
        if " explain " not in one and not one.startswith(("eval-core measure", "eval-gate check"))
    ]


def follow(space: Space, command: list[str], times: int = 4) -> None:
    """Run a command, and where it is refused what it prints instead, until one is done."""
    script, *words = command
    done = space.gate(*words) if script == "eval-gate" else space.core(*words)
    if done.code != 0:
        (instead,) = steps(done.err) or [[]]
        assert instead, f"{command}\n{done.out}{done.err}"
        assert times, f"it goes on and on: {command}"
        follow(space, instead, times - 1)


@pytest.mark.parametrize("case", CASES)
def test_round2_s2_the_printed_commands_bring_the_gate_back_to_green(held: Space, case: str) -> None:
    """S2: with no option left to be found out, and no step in between that is not said."""
    change, code = CASES[case]
    change(held)
    answers = (held.root / "answers.json").read_text()
    measured = held.core("measure", "-q")
    refused = held.gate("check")
    assert code in refused.out, measured.err + refused.out + refused.err
    commands = steps(refused.out)
    assert commands, refused.out
    if "commit" in refused.out:
        held.commit(case)
    for command in commands:
        follow(held, command)
    held.commit("the bar")
    (held.root / "answers.json").write_text(answers)
    assert held.core("measure", "-q").code == 0
    done = held.gate("check")
    assert done.code == 0, f"{refused.out}\n{done.out}"


def test_round2_s2_what_query_add_prints_moves_the_bar(held: Space) -> None:
    """S2: each of its commands, git's among them, in the order in which they are printed."""
    answers = json.loads((held.root / "answers.json").read_text())
    answers["which shelf has the jars"] = ["d30"]
    (held.root / "answers.json").write_text(json.dumps(answers))
    asked = held.root.parent / "asked.jsonl"
    asked.write_text(json.dumps({"text": "which shelf has the jars", "relevant": ["d30"]}))
    done = held.core("query", "add", "set", asked, "--format", "json")
    assert done.code == 0, done.err
    for line in json.loads(done.out)["next"]:
        script, *words = shlex.split(line)
        if script == "git":
            held.git(*words)
        else:
            moved = held.gate(*words)
            assert moved.code == 0, f"{line}\n{moved.err}"
    held.commit("the bar")
    assert held.core("measure", "-q").code == 0
    assert held.check().code == 0


@pytest.mark.parametrize(
    "line", ["reconstruct set", "validate set", "inspect set", "measure -q", "floor --measure"]
)
def test_round2_s2_a_source_that_is_elsewhere_is_named_to_any_verb(held: Space, line: str) -> None:
    """S2: as it is printed, which is in the environment: not every verb has --source."""
    held.edit(
        held.root / "set" / "dataset.toml", 'type = "inline"', 'type = "dir"\npath = "gone"\nprefix = ""'
    )
    there = held.root.parent / "there"
    there.mkdir()
    for number in range(1, 41):
        (there / f"d{number:02}").write_text(f"thing {number}")
    held.commit()
    verb = held.gate if line.startswith("floor") else held.core
    done = verb(*line.split())
    said = re.search(r"give its place: (\w+)=PATH before the command", done.out + done.err)
    assert said, done.out + done.err
    assert done.code == 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(said[1], str(there))
        again = verb(*line.split())
    assert "give its place" not in again.out + again.err
    assert again.code == (1 if line.startswith("floor") else 0), again.err


def test_round2_s2_a_first_bar_that_holds_nothing_names_all_measures_at_once(bare: Space) -> None:
    """S2: told one by one, each command forgot the reason that the one before it had asked for."""
    bare.answer(bare.losing(26))
    bare.commit()
    done = bare.gate("floor", "--measure", "--write")
    assert (done.code, steps(done.err)) == (1, [])
    assert "No measure would be left: measure a better retriever" in done.err
    bare.answer(bare.losing(21))
    done = bare.gate("floor", "--measure", "--write", "--p95-ms", "200")
    assert done.code == 1
    (command,) = steps(done.err)
    assert command[:6] == ["eval-gate", "floor", "--measure", "--write", "--p95-ms", "200"]
    assert (command[6:8], len(command) > 10) == (["--reason", "recall@10=it is meant"], True)
    bare.answer(bare.losing(21))
    follow(bare, ["eval-gate", "floor", "--measure", "--write", "--p95-ms", "200"])
    bare.commit("the bar")
    assert bare.core("measure", "-q").code == 0
    assert bare.check().code == 0
