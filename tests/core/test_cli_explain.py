"""`eval-core explain`: what a person sees, what a machine reads, what is refused, and the exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import QUERIES, RIGHT, Done, Space, Told, call, told, write_policy

from eval_core.backend import BackendError, Reply
from eval_core.cli.app import run
from eval_core.cli.explain import explain
from eval_core.console import clip, width
from eval_core.explain.models import Explanation
from eval_core.reports.report import read_report

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = jsonschema.Draft202012Validator(Explanation.model_json_schema(by_alias=True))


def asked(space: Space, *arguments: str | Path, where: Path | None = None) -> Done:
    return call(lambda: run(explain, "explain"), *arguments, where=where or space.root)


def machine(space: Space, *arguments: str | Path) -> Any:
    done = asked(space, *arguments, "--format", "json")
    assert (done.code, done.err) == (0, "")
    value = json.loads(done.out)
    SCHEMA.validate(value)
    return value


@pytest.fixture
def delays(space: Space) -> Space:
    """Two queries over five documents: the target of `q031` is at rank 4 of 5, cut at 2; `q044` is answered rightly."""
    space.set(
        {
            "pkg/backoff.py": "Sleeps between attempts, longer each time: exponential with jitter; a retry at last",
            "pkg/http/retry.py": "the retry of http; delays between",
            "pkg/delays.py": "delays are computed",
            "pkg/other.py": "where are things",
            "pkg/graph.py": "DependencyCycleError of a graph",
        },
        {
            "q031": {
                "text": "where are retry delays computed",
                "metadata": {"category": "semantic", "source": "docstring"},
            },
            "q044": "DependencyCycleError",
        },
        [("q031", "pkg/backoff.py", 1), ("q044", "pkg/graph.py", 1)],
        'name = "code"\nheadline = "recall@2"\ncutoffs = [1, 2]\nlimit = 5\n',
    )
    ids = ["pkg/http/retry.py", "pkg/delays.py", "pkg/other.py", "pkg/backoff.py"]
    answers = {
        "where are retry delays computed": Reply(ids, [9.8, 9.1, 4.0, 3.1]),
        "DependencyCycleError": Reply(["pkg/graph.py"], [7.0]),
    }
    space.register("told", Told(answers))
    space.arm(name="code-bm25")
    assert space.core("measure").code == 0
    return space


def test_the_answer_first_then_why(delays: Space) -> None:
    done = asked(delays, "code-bm25", "q031")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        'q031  "where are retry delays computed"                                   semantic, source docstring\n'
        " recall@2  0.000\n"
        " judged  pkg/backoff.py     rank 4 (cut at 2)  shares: retry                  3.1\n"
        " above   pkg/http/retry.py  rank 1             shares: retry, delays          9.8\n"
        " above   pkg/delays.py      rank 2             shares: computed, are, delays  9.1\n"
        " above   pkg/other.py       rank 3             shares: where, are               4\n"
        " the backend returned 4 of the 5 asked for\n"
        "\n"
        " pkg/backoff.py  (judged)                        │ pkg/http/retry.py  (rank 1)\n"
        " Sleeps between attempts, longer each time:      │ the retry of http; delays between\n"
        " exponential with jitter; a retry at last        │\n"
        "\n"
        ' The judged text shares 1 of 5 words with the query ("retry"); its own rarest words: at, attempts,\n'
        " each, exponential, jitter.\n"
    )


def test_a_report_is_named_by_its_path_too_and_the_workspace_by_its_configuration(delays: Space) -> None:
    there = delays.root.parent
    by_name = asked(delays, "code-bm25", "q031")
    assert asked(delays, ".eval/reports/code-bm25.json", "q031").out == by_name.out
    configured = ("q031", "--config", delays.config)
    assert asked(delays, "code-bm25", *configured, where=there).out == by_name.out
    alone = asked(delays, delays.reports / "code-bm25.json", "q031", where=there)
    assert alone.code == 0
    assert alone.out.startswith(
        "note: explained from the report alone, without texts: there is no arm 'code-bm25' in"
    )
    assert " judged  pkg/backoff.py     rank 4 (cut at 2)\n" in alone.out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["code-bm25"], 2, r"name them .*QUERY.*--lost .*--missed "),
        (["code-bm25", "--against", "old.json"], 2, r"say which queries"),
        (["code-bm25", "q31"], 2, r"code-bm25\.json: there is no query 'q31'; did you mean 'q031'\?"),
        (
            ["code-bm24", "q031"],
            2,
            r"there is neither a report nor an arm 'code-bm24'; did you mean 'code-bm25'\?",
        ),
        (["nothing.json", "q031"], 1, r"nothing\.json: there is no such report"),
        (["code-bm25", "--lost"], 2, r"policy/floors\.toml: there are no floors.*eval-gate floor --measure"),
        (["code-bm25", "q031", "--config", "no.toml"], 2, r"no\.toml: there is no such file"),
        (
            ["unmeasured", "q031"],
            1,
            r"unmeasured\.json: there is no such report\n  eval-core measure unmeasured",
        ),
        (["set/queries.jsonl", "q031"], 1, r"set/queries\.jsonl: "),
    ],
)
def test_what_cannot_be_explained_is_said_with_the_way_out(
    delays: Space, words: list[str], code: int, told: str
) -> None:
    delays.arm(name="unmeasured")
    done = asked(delays, *words)
    assert (done.code, done.out) == (code, "")
    assert re.search(told, " ".join(done.err.split(" ")), re.DOTALL), done.err


def test_a_report_that_lies_under_another_arms_name_is_refused(delays: Space) -> None:
    shutil.copy(delays.reports / "code-bm25.json", delays.reports / "other.json")
    done = asked(delays, "other", "q031")
    assert done.code == 1
    assert "is a report of arm 'code-bm25', not of 'other'" in done.err


def test_two_documents_in_question_stand_beside_two_that_outrank_them(space: Space) -> None:
    """Each beside another, so that more is seen; each closes with what it shares, under its name."""
    space.set(
        {"a": "old red", "b": "old blue", "x": "thing one", "y": "thing two"},
        {"q": "thing red"},
        [("q", "a", 1), ("q", "b", 1)],
    )
    space.register("told", Told({"thing red": ["x", "y"]}))
    space.arm()
    assert space.core("measure").code == 0
    out = asked(space, "arm", "q").out
    assert [line.split() for line in out.splitlines() if "(judged)" in line] == [
        ["a", "(judged)", "│", "x", "(rank", "1)"],
        ["b", "(judged)", "│", "y", "(rank", "2)"],
    ]
    assert out.endswith(
        ' a shares 1 of 2 words with the query ("red"); its own rarest words: old.\n'
        " b shares none of 2 words with the query; its own rarest words: blue, old.\n"
    )


def test_each_unknown_query_is_named(delays: Space) -> None:
    done = asked(delays, "code-bm25", "q031", "q31", "zzz")
    assert done.code == 2
    assert [line.partition(": there is no query ")[2] for line in done.err.splitlines()[:-1]] == [
        "'q31'; did you mean 'q031'?",
        "'zzz'",
    ]


# --------------------------------------------------------------------------------------------- lost, missed


@pytest.fixture
def fallen(space: Space) -> Space:
    """An arm whose committed baseline found all; now q2 is at rank 4 of a cut at 3, q3 is gone, q4 errors."""
    space.set(
        {f"d{n}": f"thing {n}" for n in range(1, 9)},
        QUERIES,
        [(f"q{n}", f"d{n}", 1) for n in range(1, 7)],
        'name = "things"\nheadline = "hit@3"\n',
    )
    space.arm("limit = 5\ncutoffs = [1, 3]\n")
    space.register("told", Told(RIGHT))
    assert space.core("measure").code == 0
    write_policy(space.root / "policy", {"arm": [read_report(space.reports / "arm.json")]})
    shutil.copy(space.reports / "arm.json", space.root / "old.json")
    space.register("told", told(q2=["d1", "d3", "d4", "d2"], q3=["d1"], q4=BackendError("it broke")))
    assert space.core("measure").code == 3
    return space


def test_lost_tells_every_query_that_the_baseline_scores_better(fallen: Space) -> None:
    """K3: explaining judges nothing: the exit code is 0."""
    done = asked(fallen, "arm", "--lost")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == (
        "arm · 3 queries lost against policy/evidence/arm.jsonl: hit@3 1.000 → 0.600"
    )
    assert re.findall(r"^(q\d)  ", done.out, re.MULTILINE) == ["q2", "q3", "q4"]
    assert " judged  d2  rank 1 → 4 (cut at 3)  shares: 2\n" in done.out
    assert " judged  d3  rank 1 → – (limit 5)  shares: 3\n" in done.out
    assert " errored, hit@3 1.000 in the baseline: it broke\n judged  d4  not ranked" in done.out
    value = machine(fallen, "arm", "--lost")
    assert value["lost"] == ["q2", "q3", "q4"]
    assert value["baseline_mean"] == 1.0
    same = asked(fallen, "old.json", "--lost", "--against", "old.json")
    assert same.out == "arm · no queries lost against old.json: hit@3 1.000 → 1.000\n"


def test_missed_needs_no_baseline(fallen: Space) -> None:
    shutil.rmtree(fallen.root / "policy")
    done = asked(fallen, "arm", "--missed")
    assert done.code == 0
    assert done.out.splitlines()[:2] == [
        "note: not among the missed: 1 errored or unscored, such as 'q4'",
        "arm · 2 of 5 queries missed: hit@3 0.600, cut at 3",
    ]
    assert machine(fallen, "arm", "--missed")["missed"] == ["q2", "q3"]
    nothing = asked(fallen, "arm", "q1").out
    assert nothing.endswith("Nothing was lost: every relevant document is where the measure wants it.\n")


def test_a_query_is_compared_where_another_report_is_named(fallen: Space) -> None:
    """S7: by the names that `compare` takes, too."""
    for old in ("old.json", "baseline:arm"):
        assert " hit@3  1.000 → 0.000\n" in asked(fallen, "arm", "q2", "--against", old).out
    assert " hit@3  0.000 → 0.000\n" in asked(fallen, "arm", "q2", "--against", "arm").out
    assert " hit@3  0.000\n" in asked(fallen, "arm", "q2").out


# --------------------------------------------------------------------------------------------- any text at all


HOSTILE = (
    "\x1b[31mred\x1b[0m | a `b` <script>*x*</script>\n| cell \u202e \x9b2J [l](http://x) www.x.y \\| $z$ ~s~"
)


@pytest.fixture
def hostile(space: Space) -> Space:
    """A set of texts and ids that would move a terminal or break a table."""
    ids = ["d|1", "`d`2", "<d>3", "d\\|4", "d5"]
    space.set(
        {name: {"title": HOSTILE, "text": HOSTILE * 3, "metadata": {"kind": HOSTILE}} for name in ids}
        | {"wide": "漢字 " * 200, "long": "x" * 500},
        {
            "q|<1>`": {
                "text": HOSTILE,
                "metadata": {"category": HOSTILE, "source": HOSTILE, "kind": HOSTILE, "exclude": ["d5"]},
            }
        },
        [("q|<1>`", "d|1", 1), ("q|<1>`", "wide", 0), ("q|<1>`", "d5", 0), ("q|<1>`", "long", 0)],
        'name = "s"\nheadline = "mrr"\n',
    )
    answers = {HOSTILE: Reply(["`d`2", "<d>3", "d\\|4", "d|1"], [1e300, 4.0, 1e-300, -5.0])}
    space.register("told", Told(answers, ("filter",)))
    space.arm('filter_from = ["kind"]')
    done = space.core("measure")
    assert done.code == 0, done.err
    return space


def acting(text: str) -> Iterator[str]:
    """Characters that do something to a terminal, but for the end of a line."""
    return (character for character in text if not character.isprintable() and character != "\n")


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
@pytest.mark.parametrize("more", [[], ["--full"]], ids=["clipped", "full"])
def test_no_text_of_a_set_acts_on_the_terminal(hostile: Space, form: str, more: list[str]) -> None:
    done = asked(hostile, "arm", "q|<1>`", "--format", form, *more)
    assert (done.code, done.err) == (0, "")
    assert list(acting(done.out)) == []
    if form == "table":
        assert max(width(line) for line in done.out.splitlines()) <= 100
        assert "\\x1b[31mred" in done.out
    elif form == "json":
        value = json.loads(done.out)
        SCHEMA.validate(value)
        # Escaped for the terminal, and the same text to whoever reads it.
        assert value["queries"][0]["text"] == HOSTILE


def test_a_page_gets_tables_of_six_cells_and_nothing_that_is_markup(hostile: Space) -> None:
    done = asked(hostile, "arm", "q|<1>`", "--format", "markdown", "--full")
    rows = [line for line in done.out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 4 + 3
    assert {len(re.findall(r"\|", row)) for row in rows} == {7}
    outside = re.sub(r"`[^`]*`", "", done.out)
    assert "<script>" not in outside
    assert not re.search(r"\*x\*|\]\(|://|www\.", outside)
    assert set(re.findall(r"</?\w+>", outside)) == {"<code>", "</code>", "<br>"}


def test_whole_texts_are_whole(hostile: Space) -> None:
    """--full: both texts stand side by side to their ends, and the query above them."""
    whole = asked(hostile, "arm", "q|<1>`", "--full").out
    beside = [line.partition(" │ ")[::2] for line in whole.splitlines() if " │" in line]
    text = "".join(clip(f"{HOSTILE}\n{HOSTILE * 3}".replace("\n", " "), 10_000).split())
    assert "".join("".join(left for left, _ in beside[1:]).split()) == text
    assert "".join("".join(right for _, right in beside[1:]).split()) == text
    assert re.sub(r"\s", "", clip(HOSTILE, 1000)) in re.sub(r"\s", "", whole.partition(" mrr")[0])
    assert "…" in asked(hostile, "arm", "q|<1>`").out.partition(" │")[2]


# --------------------------------------------------------------------------------------------- as a process


def test_the_script_explains_a_committed_set_that_it_measured(tmp_path: Path) -> None:
    """The whole way as a user goes it: measure, explain, in processes of their own; the exit codes are the contract."""
    (tmp_path / "eval.toml").write_text(
        f'[arms."memory"]\ndataset = "{(ROOT / "datasets" / "memory").as_posix()}"\nbackend = "bm25"\nrepetitions = 1\n'
    )

    def process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-W", "error", *code.split(" ", 1), *arguments]
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=False
        )

    script = "-c from eval_core.cli.app import run; from eval_core.cli.explain import explain; run(explain, 'explain')"
    assert process("-m eval_core", "measure", "memory").returncode == 0
    done = process(script, "memory", "q22")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('q22  "why don\'t we use semver?"')
    assert "The judged text shares none of 6 words with the query; its own rarest words: " in done.stdout
    assert process(script, "memory", "q222").returncode == 2
    assert process(script, "memory", "--lost").returncode == 2
    assert process(script, "memory", "--missed", "--format", "json").returncode == 0


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
def test_a_report_whose_name_is_not_utf8_is_explained(delays: Space, form: str) -> None:
    name = os.fsdecode(b"r\xff\x1b.json")
    shutil.copy(delays.reports / "code-bm25.json", delays.root / name)
    done = asked(delays, name, "q031", "--against", name, "--lost", "--format", form)
    assert (done.code, done.err) == (0, "")
    assert list(acting(done.out)) == []
    if form == "json":
        assert json.loads(done.out)["report"] == "r\\udcff\x1b.json"
