from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Done, Space

#: Copies files to elsewhere: a verb, and a file that is not copied whole.
COPIES = {
    "demo": (("eval_gate", "demo", "--into", "d"), "notes/queries.jsonl"),
    "self-test": (("eval_gate", "self-test"), "workspace/policy/evidence/notes.jsonl"),
    "self-test, report": (("eval_gate", "self-test"), "workspace/.eval/reports/notes.json"),
    "query add": (("eval_core", "query", "add", "set", "asked.jsonl"), "queries.jsonl"),
}

SCHEMAS = Path(__file__).parents[2] / "schemas"


def validate(name: str, value: object) -> None:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)


def width(line: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line
    )


def passing(space: Space) -> None: ...


def failing(space: Space) -> None:
    space.measure({**space.losing(7), "q27": 2})
    space.edit(space.root / "eval.toml", '"jsonl"', '"jsonl"\noptions.timeout = 7')
    space.measure({**space.losing(7), "q27": 2})


def slow(space: Space) -> None:
    space.policy(budgets={"notes": {"p95_ms": 0.000001}})


def refused(space: Space) -> None:
    space.alter(space.report, lambda report: report["summary"]["overall"].update(n=26))


def another_set(space: Space) -> None:
    path = space.root / "set" / "queries.jsonl"
    path.write_text(path.read_text().replace("where is thing", "in which place is thing"))
    answers = space.root / "answers.json"
    answers.write_text(answers.read_text().replace("where is thing", "in which place is thing"))
    assert space.core("measure", "-q").code == 0


def missing(space: Space) -> None:
    space.report.unlink()


def no_arm(space: Space) -> None:
    space.floors.write_text('schema = "floors-v2"\n')


def errored(space: Space) -> None:
    space.measure(dict.fromkeys(list(space.losing(5)), "the index ran out of memory " * 10))


def ungated(space: Space) -> None:
    for number in range(30):
        shutil.copy(space.report, space.report.with_name(f"another-arm-of-ours-{number}.json"))


def several(space: Space) -> None:
    """Eleven arms with names and measures as long as usual ones get: most pass, one fails, one is missing."""
    names = [f"memory-bm25-kind-jsonl-{number}" for number in range(10)]
    config = space.root / "eval.toml"
    own = config.read_text()
    config.write_text(own + "".join(own.replace('"notes"', f'"{name}"') for name in names))
    for name in names:
        space.twin(name)
    space.measure()
    space.report.with_name("memory-bm25-kind-jsonl-3.json").unlink()
    space.answer(space.losing(6))
    assert space.core("measure", "-q", "notes").code == 0


def many_measures(space: Space) -> None:
    names = ["hit@1", "hit@5", "all@10", "recall@1", "recall@5", "recall@10", "ndcg@10", "mrr", "map"]
    space.policy(measures=names, reasons={"ndcg@10": "by hand"} if "ndcg@10" not in names else {})
    space.measure(space.losing(4))


STATES: list[tuple[Callable[[Space], None], int]] = [
    (passing, 0),
    (failing, 1),
    (slow, 1),
    (refused, 1),
    (another_set, 1),
    (missing, 1),
    (no_arm, 1),
    (errored, 1),
    (ungated, 0),
    (several, 1),
    (many_measures, 1),
]


@pytest.mark.parametrize(("state", "code"), STATES)
def test_a_verdict_is_one_answer_in_two_forms(
    space: Space, state: Callable[[Space], None], code: int
) -> None:
    """K3: JSON for machines fits its schema, text for people fits 100 columns, and both exit alike.

    The text says the answer first and ends in what to do next, and no escape reaches what is no terminal.
    """
    state(space)
    machine, person = space.check(), space.gate("check")
    assert (machine.code, person.code, machine.err, person.err) == (code, code, "", "")
    verdict = machine.verdict
    validate("verdict-v2", verdict)
    assert verdict["exit_code"] == code
    lines = person.out.splitlines()
    assert lines[0].split()[0] == {"pass": "PASS", "fail": "FAIL", "refused": "REFUSED"}[verdict["verdict"]]
    # A command stands in one line, so that it can be copied.
    assert [line for line in lines if width(line) > 100 and "eval-" not in line] == []
    assert "\x1b" not in person.out
    if code:
        assert lines[-1].strip().startswith(("eval-", "Do what", "If the latency", "Mend"))
    for arm in verdict["arms"]:
        for reason in arm["reasons"]:
            assert reason["code"] in person.out


def test_the_worst_comes_first(space: Space) -> None:
    several(space)
    out = space.gate("check").out
    assert out.startswith("REFUSED  2 of 11 arms")
    places = [out.index(text) for text in ("memory-bm25-kind-jsonl-3  REFUSED", "notes  FAIL", " arm ")]
    assert places == sorted(places)
    assert len(re.findall(r"^ memory-bm25-kind-jsonl-\d +27 ", out, re.MULTILINE)) == 9


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (passing, "No query was lost or gained against the baselines."),
        (failing, 'eval-gate floor notes --measure --reason floors="…" --write'),
        (slow, 'eval-gate floor notes --p95-ms … --reason p95_ms="…" --write'),
        (missing, "eval-core measure && eval-gate check"),
        (missing, "Measure it:  eval-core measure notes"),
        (another_set, "the text or meaning of queries changed: q01, q02, q03, q04, q05 and 22 more"),
        (failing, "7 queries lost, 0 gained"),
        (failing, "lost  q01  where is thing 1 kept  d01  rank 1 → –"),
        (failing, "… 2 more"),
        (failing, "8 > 3 misses"),
        (failing, "system changed since the baseline: options.timeout – → 7"),
        (passing, "1 ≤ 3 misses"),
        (ungated, "Not gated, without floors: another-arm-of-ours-0"),
        (ungated, "and 20 more"),
        (no_arm, "notes: it has evidence and no floors"),
    ],
)
def test_a_person_reads_what_was_lost_and_what_to_do(
    space: Space, state: Callable[[Space], None], told: str
) -> None:
    state(space)
    assert told in space.gate("check").out


HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\nnew line\r\u202eback\u2028 \x00 "


@pytest.mark.parametrize("place", ["query", "id", "error", "set", "option", "file"])
def test_what_others_wrote_cannot_steer_a_terminal(space: Space, place: str) -> None:
    """K3: escapes, newlines, directions and nulls in texts, ids, errors, options and names are shown, never sent."""
    if place == "file":
        (space.report.parent / "\x1b[31m\nx\u202e.json").write_text("{}")
        (space.report.parent / os.fsdecode(b"\xff\xfe.json")).write_text("{}")
        code = 0
    elif place == "error":
        assert space.measure({"q03": HOSTILE}).code == 3
        code = 1
    elif place == "set":
        space.forge(space.report, lambda report: report["dataset"].update(name=HOSTILE))
        space.alter(space.report, lambda report: report["summary"]["overall"].update(n=HOSTILE))
        code = 1
    elif place == "option":
        space.forge(
            space.report, lambda report: report["system"]["parts"]["options"].update({HOSTILE: HOSTILE})
        )
        code = 1  # eval.toml has no such option
    else:
        number = 0 if place == "query" else 1

        def change(report: Any) -> None:
            report["rows"][0]["text" if number == 0 else "id"] = HOSTILE
            row = report["rows"][0]
            row.update(ids=[], metrics=dict.fromkeys(row["metrics"], 0.0))
            row["judged"][0]["rank"] = None

        space.alter(space.report, change)
        code = 1
    done = space.gate("check")
    assert done.code == code, done.out + done.err
    strange = {c for c in done.out + done.err if not c.isprintable() and c != "\n"}
    assert strange == set()
    assert space.check().code == code
    validate("verdict-v2", space.check().verdict)


def test_hostile_query_texts_are_shown_where_they_are_lost(space: Space) -> None:
    """A set may hold any text; measured, floored and lost, it stands in the verdict as letters."""
    space.set({f"q{n:02}": f"{HOSTILE}{n}" for n in range(1, 28)})
    shutil.rmtree(space.root / "policy")
    shutil.rmtree(space.root / ".eval")
    texts = {f"{HOSTILE}{n}": [f"d{n:02}"] for n in range(1, 28)}
    answers = space.root / "answers.json"
    answers.write_text(json.dumps(texts))
    for _ in range(2):
        assert space.core("measure", "-q").code == 0
    assert space.gate("floor", "--write").code == 0
    answers.write_text(json.dumps({text: [] for text in texts}))
    assert space.core("measure", "-q").code == 0
    done = space.gate("check")
    assert (done.code, "27 queries lost" in done.out) == (1, True)
    assert "\\x1b[31mred" in done.out
    assert {c for c in done.out if not c.isprintable()} == {"\n"}
    assert [line for line in done.out.splitlines() if width(line) > 100 and "eval-" not in line] == []


def on_a_terminal(space: Space, **environment: str) -> str:
    """What `eval-gate check` prints where standard output is a terminal."""
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "eval_gate", "check"],
            cwd=space.root,
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != "NO_COLOR"} | environment,
            timeout=60,
        )
        os.close(slave)
        slave = -1
        text = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            text += part
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    assert done.returncode == 0, done.stderr
    return text.decode()


def test_colour_is_for_terminals_that_want_it(space: Space) -> None:
    assert "\x1b[" in on_a_terminal(space, TERM="xterm")
    plain = on_a_terminal(space, TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in plain
    assert plain.startswith("PASS  1 arm")
    piped = subprocess.run(
        [sys.executable, "-m", "eval_gate", "check"], cwd=space.root, capture_output=True, check=True
    )
    assert b"\x1b" not in piped.stdout


def test_files_that_the_tools_write_fit_their_schemas(space: Space) -> None:
    """K2, K5: floors and budgets, read as JSON, are what the schemas say; proposals too."""
    proposed = json.loads(space.gate("floor", "--format", "json").out)
    validate(proposed["schema"], proposed)
    written = space.gate("floor", "--write", "--margin", "4", "--reason", "margin=r", "--p95-ms", "200")
    assert written.code == 0, written.err
    floors = tomllib.loads(space.floors.read_text())
    validate("floors-v2", floors)
    validate("budgets-v2", tomllib.loads((space.root / "policy" / "budgets.toml").read_text()))
    changes: list[dict[str, Any]] = [{"schema": "floors-v1"}, {"extra": 1}, {"arms": {"notes": {}}}]
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            validate("floors-v2", floors | change)


def test_a_plain_verdict_fits_the_schema_too(space: Space) -> None:
    plain = space.gate("floor", "--form", "plain").out
    (space.root / "plain.toml").write_text(plain)
    for ranks, code in (({"q27": 2}, 0), (space.losing(9), 1)):
        assert space.measure(ranks).code == 0
        done: Done = space.check("--floors", "plain.toml", "--allow-unbound")
        assert done.code == code
        validate("verdict-v2", done.verdict)
        text = space.gate("check", "--floors", "plain.toml", "--allow-unbound")
        assert (text.code, "Unbound: nothing ties" in text.out) == (code, True)
        assert [line for line in text.out.splitlines() if width(line) > 100] == []


@pytest.mark.parametrize("case", COPIES)
def test_a_copy_that_finds_no_room_is_said_of_its_file(passes: None, space: Space, case: str) -> None:
    """An error for each file, a list of them or an internal error is not what a person can act on."""
    (module, *words), name = COPIES[case]
    if case.endswith("report"):
        space.evidence.unlink()
    question = {"text": "who lent me a red bicycle in spring", "relevant": ["d01"]}
    (space.root / "asked.jsonl").write_text(json.dumps(question) + "\n")
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-m", module, *words],
        cwd=space.root,
        capture_output=True,
        text=True,
        check=False,
    )
    *_, said, mend = done.stderr.splitlines()
    assert said.endswith(f"/{name}: cannot be written: File too large")
    assert mend == "  Check permissions and free space."
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 2


#: Each verb that takes the name of an arm, with one that nobody has.
UNKNOWN = [
    "eval_core measure nots",
    "eval_core show nots",
    "eval_core show baseline:nots",
    "eval_core explain nots q01",
    "eval_core explain notes q01 --against nots",
    "eval_core explain notes q01 --against baseline:nots",
    "eval_core compare notes nots",
    "eval_core compare baseline:nots notes",
    "eval_core compare notes nots --qrels set/qrels/test.tsv",
    "eval_core publish --check page.md",
    "eval_gate check nots",
    "eval_gate check --report nots=x.json",
    "eval_gate floor nots",
    "eval_gate floor nots --measure",
    "eval_gate floor nots --from .eval",
    "eval_gate power nots",
    "eval_gate aa nots",
    "eval_gate aa nots --evidence",
    "eval_gate promote nots --over notes",
    "eval_gate promote notes --over nots",
    "eval_gate self-test nots",
]


@pytest.mark.parametrize("command", UNKNOWN)
def test_an_arm_that_is_not_there_has_the_nearest_and_a_list_of_those_that_are(
    space: Space, command: str
) -> None:
    """One sentence, whichever verb was given the name, and none that says how to measure it."""
    (space.root / "page.md").write_text("<!-- metrics nots: mrr -->\n<!-- /metrics -->\n")
    (space.root / "policy" / "promotion.toml").write_text(
        'schema = "promotion-rules-v1"\n[[rule]]\nover = "n"\nconditions = [{ metric = "mrr", is = "higher" }]\n'
    )
    program, *words = command.split()
    done = (space.core if program == "eval_core" else space.gate)(*words)
    assert done.code == 2
    assert "'nots'; did you mean 'notes'?  (arms: notes)" in done.err
    assert "nots --measure" not in done.err
