"""`eval-core compare`: what a person sees, what a machine reads, what is refused, and the exit codes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from compare_support import Rankings, holm, midp, values, write_runs
from core_support import Done, Space, Told, call, write_policy
from scipy import stats

from eval_core.cli.app import run
from eval_core.cli.compare import compare
from eval_core.compare.models import Comparison, of_line, of_report
from eval_core.compare.tasks import task_changes
from eval_core.console import width
from eval_core.policy.evidence import line_of
from eval_core.reports.keys import digested_parts
from eval_core.reports.report import read_report

ROOT = Path(__file__).resolve().parents[2]

ARMS = """
[arms."usual"]
dataset = "memory"
backend = "bm25"
repetitions = 1

[arms."flat"]
dataset = "memory"
backend = "bm25"
options.k1 = 0.1
repetitions = 1

[arms."chance"]
dataset = "memory"
backend = "random"
repetitions = 1

[arms."pairs"]
dataset = "memory"
backend = "bm25"
repetitions = 1
select = { category = ["pair"] }

[arms."kind"]
dataset = "memory"
backend = "bm25"
repetitions = 1
filter_from = ["kind"]
"""


def held(*arguments: str | Path, where: Path) -> Done:
    """Run the verb in this process."""
    return call(lambda: run(compare, "eval-core compare"), *arguments, where=where)


@pytest.fixture(scope="session")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a report of each of five arms on datasets/memory."""
    root = tmp_path_factory.mktemp("arms")
    shutil.copytree(ROOT / "datasets" / "memory", root / "memory")
    (root / "eval.toml").write_text(ARMS)
    from eval_core.cli import main

    done = call(main, "measure", "-q", where=root)
    assert done.code == 0, done.err
    write_policy(root / "policy", {"flat": [read_report(root / ".eval" / "reports" / "flat.json")]})
    return root


def read(done: Done) -> Any:
    """The JSON of a comparison, sound by its schema."""
    value = json.loads(done.out)
    schema = Comparison.model_json_schema(by_alias=True)
    jsonschema.Draft202012Validator(schema).validate(value)
    assert value["schema"] == "comparison-v1"
    return value


# --------------------------------------------------------------------------------------------- what is seen


def test_a_person_sees_the_answer_first(arms: Path) -> None:
    done = held("usual", "chance", where=arms)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert re.match(
        r"LOWER  recall@10 0\.891 → 0\.\d{3}, −0\.\d{3} \(95% −0\.\d+ to −0\.\d+\), p <0\.001", lines[0]
    )
    for start in (
        " before  usual  .eval/reports/usual.json, run ",
        " after   chance  .eval/reports/chance.json, run ",
        " system  changed: backend 'bm25' → 'random'",
        " joined  55 queries scored in both",
        " n = 55 ",
        " recall@10 ",
        " 55 queries resolve no change of one measure alone under 5 lost (9.1 points);",
        " paraphrase ",
        " lost  −1.000  q02  which port is postgres on in de…  fact-26  1 → ",
        " … ",
    ):
        assert any(line.startswith(start) for line in lines), (start, done.out)
    assert max(map(width, lines)) <= 100


def test_what_the_set_cannot_resolve_is_called_so(arms: Path) -> None:
    """S3: three queries lost of 55 are no finding, and the word stands in the table too."""
    done = held("usual", "flat", where=arms)
    assert done.code == 0
    head = " ".join(done.out.split())
    assert head.startswith("UNCLEAR recall@10 0.891 → 0.836, −0.055 (95% ")
    assert "3 lost, 0 gained of 55; unresolvable at this n before usual" in head
    assert re.search(r"^ recall@10 .* 3 +0  unresolvable$", done.out, re.MULTILINE)


def test_several_arms_are_each_held_against_the_first(arms: Path) -> None:
    done = held("usual", "flat", "chance", "--limit", "1", where=arms)
    assert [line.split()[0] for line in done.out.splitlines() if re.match(r"[A-Z]{4,} ", line)] == [
        "UNCLEAR",
        "LOWER",
    ]
    assert done.out.count(" before  usual ") == 2


def test_the_same_report_twice_is_said_in_words(arms: Path) -> None:
    done = held("usual", arms / ".eval" / "reports" / "usual.json", where=arms)
    assert done.code == 0
    assert done.out.startswith("SAME  no query differs: every judged document has the rank it had.")
    assert "difference 0, p = 1" in " ".join(done.out.split())
    assert "the same run twice" in " ".join(done.out.split())
    assert " system  the same system" in done.out


def test_a_selection_is_joined_and_the_rest_counted(arms: Path) -> None:
    done = held("usual", "pairs", where=arms)
    text = " ".join(done.out.split())
    assert (
        "joined 16 queries scored in both; not compared: 39 scored before and absent after (q01, q02," in text
    )
    assert "before was asked 55 queries and after 16; 16 are common" in text


def test_as_many_queries_are_listed_as_asked_for(arms: Path) -> None:
    def listed(*options: str) -> tuple[int, list[str]]:
        out = held("usual", "chance", *options, where=arms).out
        return len(re.findall(r"^ (?:lost|gained|moved) .* → ", out, re.MULTILINE)), re.findall(
            r"^ … (\d+) more", out, re.MULTILINE
        )

    total = len(read(held("usual", "chance", "--format", "json", where=arms))["arms"][0]["queries"])
    assert listed() == (20, [str(total - 20)])
    assert listed("--limit", "3") == (3, [str(total - 3)])
    assert listed("--limit", "0") == (0, [str(total)])
    assert listed("--all") == listed("--limit", str(total)) == (total, [])


def test_long_measures_still_fit(arms: Path) -> None:
    done = held("usual", "chance", "-m", "ndcg@10(gain=exp)", "-m", "recall_cap@10", where=arms)
    lines = done.out.splitlines()
    assert max(map(width, lines)) <= 100
    assert any(line.startswith(" ndcg@10(gain=exp) ") for line in lines)


def test_colour_is_sparing_and_can_be_refused(arms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No colour carries meaning alone, and NO_COLOR turns it off."""
    from eval_core.compare import compare as hold
    from eval_core.compare import render as compare_render
    from eval_core.compare.models import of_report

    reports = [
        of_report(name, read_report(arms / ".eval" / "reports" / f"{name}.json"))
        for name in ("usual", "chance")
    ]
    found = hold(reports)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert compare_render.terminal(found).startswith("\x1b[31m\x1b[1mLOWER\x1b[0m  recall@10")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in compare_render.terminal(found)


# --------------------------------------------------------------------------------------- machines and pages


def test_json_holds_the_whole_comparison(arms: Path) -> None:
    value = read(held("usual", "flat", "chance", "--format", "json", "--limit", "1", where=arms))
    assert value["headline"] == "recall@10"
    assert value["before"]["label"] == "usual"
    assert [arm["side"]["label"] for arm in value["arms"]] == ["flat", "chance"]
    flat = value["arms"][0]
    assert [effect["measure"] for effect in flat["effects"]] == ["recall@10", "ndcg@10", "hit@1", "mrr"]
    assert {"part": "options.k1", "before": None, "after": 0.1, "detail": ""} in flat["system"]
    lost = [moved["query"] for moved in flat["queries"] if moved["change"] == "lost"]
    assert len(lost) == flat["effects"][0]["lost"] == 3
    assert sum(category["n"] for category in flat["categories"]) == 55
    # The figures are those of the reports' own summaries.
    for label, side in (("usual", "before"), ("flat", "after")):
        summary = read_report(arms / ".eval" / "reports" / f"{label}.json").summary.overall.metrics
        for effect in flat["effects"]:
            assert effect[side] == pytest.approx(summary[effect["measure"]], abs=1e-12)


def test_markdown_has_the_decision_in_sight_and_the_rest_folded(arms: Path) -> None:
    done = held("usual", "chance", "--format", "markdown", where=arms)
    assert done.code == 0
    first, *_ = done.out.split("\n\n")
    assert first.startswith("**LOWER** **usual** → **chance**: recall@10 0.891 → 0.")
    open_text = re.sub(r"<details>.*?</details>", "", done.out, flags=re.DOTALL)
    assert "| recall@10 | 55 | 0.891 |" in open_text
    assert "q02" not in open_text and "paraphrase" not in open_text
    folded = re.findall(r"<details><summary>(.*?)</summary>\n\n(.*?)\n\n</details>", done.out, re.DOTALL)
    assert [title for title, _ in folded][0::2] == ["4 categories", "What was compared"]
    assert re.match(r"Queries: \d+ lost, \d+ gained, \d+ moved", folded[1][0])
    tables = grids(done.out)
    assert [len(table) for table in tables] == [6, 6, 22]


def grids(page: str) -> list[list[list[str]]]:
    """The tables of a page, as GitHub's Markdown reads them: a cell ends at a `|` without a backslash before it."""
    found: list[list[list[str]]] = []
    for block in re.split(r"\n\s*\n", page):
        lines = [line for line in block.strip("\n").split("\n") if line.startswith("|")]
        if lines:
            assert len(lines) == len(block.strip("\n").split("\n")), block
            cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
            assert {len(row) for row in cells} == {len(cells[0])}, block
            found.append(cells)
    return found


HOSTILE = {
    "q1": "a | b || c",
    "q2": "`rm -rf` ``` and \\| and \\",
    "q3": "<script>alert(1)</script> <!-- </details>",
    "q4": "two\nlines\r\nand\u2028a third\x1b[31m",
    "q5": "![x](http://example.org/x.png) [l](y) *b* _i_ ~~s~~ # h",
    "q6": "@somebody see #12 &lt;",
}


def test_texts_of_others_do_nothing_in_a_page(space: Space) -> None:
    """Pipes, backticks, tags and newlines of queries and ids break no table, fold and line."""
    odd = "d|<b>`"
    space.set({"d1": "t", odd: "t"}, HOSTILE, [(name, odd, 1) for name in HOSTILE])
    space.register("told", Told({key: [odd] for key in HOSTILE.values()}))
    space.arm("limit = 5\ncutoffs = [1]\nrepetitions = 1\n", name="one")
    assert space.core("measure", "-q").code == 0
    space.register("told", Told({}))
    space.arm("limit = 5\ncutoffs = [1]\nrepetitions = 1\n", name="two")
    assert space.core("measure", "-q", "two").code == 0
    page = held("one", "two", "--format", "markdown", where=space.root).out
    table = grids(page)[1]
    assert [row[2].strip() for row in table[2:]] == list(HOSTILE)
    texts = {row[2].strip(): row[3].strip() for row in table[2:]}
    assert texts["q1"] == r"a \| b \|\| c"
    assert texts["q2"] == r"\`rm -rf\` \`\`\` and \\\| and \\"
    assert texts["q3"] == r"&lt;script&gt;alert(1)&lt;/script&gt; &lt;\!-- &lt;/details&gt;"
    assert texts["q4"].startswith(r"two\\nlines\\r\\nand\\u2028a third\\x1b\[31m")
    assert texts["q5"].startswith(r"\!\[x\](http://example.org/x.png) \[l\](y) \*b\* \_i\_ \~\~s\~\~ \# h")
    assert texts["q6"] == r"@<!-- -->somebody see \#12 &amp;lt;"
    assert {row[4].strip() for row in table[2:]} == {r"d\|&lt;b&gt;\`"}
    assert page.count("<details>") == page.count("</details>") == 2
    # On a terminal: one line a query, nothing steers it.
    text = held("one", "two", where=space.root).out
    assert "\x1b" not in text and len(re.findall(r"^ lost ", text, re.MULTILINE)) == len(HOSTILE)
    assert max(map(width, text.splitlines())) <= 100


def test_a_refusal_shows_the_texts_of_others_and_does_nothing_else(space: Space) -> None:
    """M7: the query that was changed is named, on one line, whatever its id and text hold."""
    query = "q|<b>`"
    space.register("told", Told({}))
    for name, text in (("one", "old | text"), ("two", "new\n<i>")):
        space.set({"d1": "t"}, {query: text}, [(query, "d1", 1)])
        space.arm("limit = 5\ncutoffs = [1]\nrepetitions = 1\n", name=name)
        assert space.core("measure", "-q", name).code == 0
    done = held("one", "two", "--format", "markdown", where=space.root)
    assert done.code == 1
    head, empty, item = done.out.splitlines()
    assert (head.startswith("**REFUSED** one and two answered"), empty) == (True, "")
    told = r"q\|&lt;b&gt;\` (text: 'old \| text' → 'new\\n&lt;i&gt;')"
    assert item == f"- queries: {told}"
    assert len(done.err.splitlines()) == 3
    assert held("one", "no\x1b<b>.json", "--format", "markdown", where=space.root).out == (
        "**REFUSED** no\\\\x1b&lt;b&gt;.json: there is no such report\n"
    )


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_another_task_is_refused_in_every_format(arms: Path, form: str) -> None:
    """M7: exit 1, the part by its name with both values; machines get the reason code."""
    done = held("usual", "kind", "--format", form, where=arms)
    assert done.code == 1
    assert "usual and kind answered different tasks, and cannot be compared (task-differs):" in done.err
    assert "filter  [] → ['kind']" in done.err
    if form == "table":
        assert done.out == ""
    elif form == "markdown":
        assert done.out.startswith("**REFUSED** usual and kind answered different tasks")
        assert r"- filter: \[\] → \['kind'\]" in done.out
    else:
        value = read(done)
        assert value["refused"]["reason"] == "task-differs"
        assert value["refused"]["differences"] == [
            {"part": "filter", "before": [], "after": ["kind"], "detail": "[] → ['kind']"}
        ]
        assert value["arms"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "reason", "told"),
    [
        (["usual", "flat", "-m", "recall@11"], 1, "cutoff-beyond-limit", "take a cut-off of 10 at most"),
        (["usual", "gone.json"], 1, "report-missing", "gone.json: there is no such report"),
        (
            ["usual", "usualy"],
            2,
            None,
            "there is neither a report nor an arm 'usualy'; did you mean 'usual'?",
        ),
        (["baseline:kind", "flat"], 2, None, "set its bar: eval-gate floor kind --measure --write"),
        (["usual", "torn.json"], 1, "report-malformed", "torn.json: is not whole JSON"),
        (["deep", "deep"], 1, "report-malformed", "deep: is not whole JSON"),
        (["memory", "memory"], 1, "report-missing", "memory: is a folder, not a file"),
        (["./memory", "usual"], 1, "report-missing", "./memory: is a folder, not a file"),
        (["usual", "flat", "-m", "recal@10"], 2, None, "did you mean 'recall@10'?"),
        (
            ["usual", ".eval/runs/flat.trec"],
            2,
            None,
            "flat.trec: is a run, not a report; say --qrels FILE",
        ),
        (["usual", ".eval/runs/flat.jsonl"], 2, None, "flat.jsonl: is a run, not a report"),
        (["usual"], 2, None, "give two at least, before and after"),
        ([], 2, None, "give two at least"),
        (["usual", "flat", "--all", "--limit", "3"], 2, None, "give one of them"),
        (["usual", "flat", "--ties", "trec"], 2, None, "--ties goes with --qrels"),
        (["usual", "flat", "--k", "5"], 2, None, "--k goes with --backends A,B"),
        (["usual", "flat", "--root", "."], 2, None, "--root goes with --backends A,B"),
        (["--manifest", "m.json"], 2, None, "--manifest goes with --backends A,B"),
        (["--backends", "bm25"], 2, None, "--backends needs --manifest"),
        (["usual", "--backends", "bm25", "--manifest", "m"], 2, None, "'usual' is given"),
        (
            ["--backends", "bm25", "--manifest", "m", "-m", "mrr"],
            2,
            None,
            "--measure does not go with --backends",
        ),
        (
            ["--backends", "bm25", "--manifest", "m", "--qrels", "q"],
            2,
            None,
            "--qrels does not go with --backends",
        ),
    ],
)
def test_what_cannot_be_done_is_told_with_its_mend(
    arms: Path, arguments: list[str], code: int, reason: str | None, told: str
) -> None:
    (arms / "torn.json").write_text('{"schema": "report-v1", ')
    (arms / "deep").write_text("[" * 100_000)
    done = held(*arguments, "--format", "json", where=arms)
    assert done.code == code, done
    assert told in " ".join(done.err.split()).replace("Make it: ", "Make it:  "), done.err
    if reason is None:
        assert done.out == ""
    else:
        assert read(done)["refused"]["reason"] == reason


# ------------------------------------------------------------------------------------------- names and paths


def test_a_name_stands_for_a_report_or_a_baseline(arms: Path, tmp_path: Path) -> None:
    """Also from another folder, by --config; a path is a path even where an arm has its name."""
    value = read(
        held("baseline:flat", "usual", "--format", "json", "--config", arms / "eval.toml", where=tmp_path)
    )
    assert value["before"]["path"].endswith("policy/evidence/flat.jsonl")
    assert value["arms"][0]["side"]["path"].endswith(".eval/reports/usual.json")
    shutil.copy(arms / ".eval" / "reports" / "flat.json", tmp_path / "usual")
    value = read(held("usual", "usual", "--format", "json", where=tmp_path))
    assert value["before"]["arm"] == "flat"
    # A folder of an arm's name does not stand in its way.
    assert held("memory", "usual", where=arms).code == 1
    (arms / "chance").mkdir(exist_ok=True)
    assert held("usual", "chance", where=arms).code == 0


@pytest.mark.parametrize("sides", [("baseline:flat", "usual"), ("usual", "baseline:flat")])
def test_a_baseline_compares_like_the_report_that_it_was(arms: Path, sides: tuple[str, str]) -> None:
    """Evidence holds no texts: those of the other side are shown."""
    value = read(held(*sides, "--format", "json", where=arms))["arms"][0]
    whole = read(held(*(side.removeprefix("baseline:") for side in sides), "--format", "json", where=arms))[
        "arms"
    ][0]
    for part in (
        "n",
        "finding",
        "effects",
        "resolves",
        "system",
        "unjoined",
        "categories",
        "queries",
        "notes",
    ):
        assert value[part] == whole[part], part
    assert value["queries"] and all(query["text"] for query in value["queries"])


def test_between_two_baselines_ids_stand_for_texts(arms: Path) -> None:
    value = read(held("baseline:flat", "baseline:flat", "--format", "json", where=arms))["arms"][0]
    assert (value["identical"], value["same_run"]) == (True, True)


def test_a_query_that_was_reworded_since_the_baseline_is_named(arms: Path, tmp_path: Path) -> None:
    """Evidence holds digests of text and meaning, so a changed query is known by its id."""
    line = line_of(read_report(arms / ".eval" / "reports" / "flat.json"))
    first, *others = line.entries
    entries = (first.model_copy(update={"query": "0" * 32}), *others)
    task = {**line.task, **digested_parts(((e.id, e.query) for e in entries), ())}
    task["judgements"] = line.task["judgements"]
    changed = of_line(
        "policy/evidence/flat.jsonl", "flat", line.model_copy(update={"entries": entries, "task": task})
    )
    report = of_report("flat.json", read_report(arms / ".eval" / "reports" / "flat.json"))
    for sides in ((changed, report), (report, changed)):
        assert [(part.part, part.detail) for part in task_changes(*sides)] == [
            ("queries", f"{first.id} (text or meaning)")
        ]


# ------------------------------------------------------------------------------------------------------ runs


def longmemeval(find: Callable[[str], Path]) -> Rankings:
    """What two published systems returned for the questions of LongMemEval that have an answer."""
    tables = []
    for system in ("bm25", "dense"):
        value = json.loads(find(f"longmemeval/rankings_{system}_n500.json").read_text("utf-8"))
        tables.append({row["question_id"]: row for row in value["results"] if not row["abstention"]})
    return {
        query: (row["evidence_sessions"], row["retrieved_sessions"], tables[1][query]["retrieved_sessions"])
        for query, row in tables[0].items()
    }


def made_up() -> Rankings:
    """The same in small: 90 queries of one to three answers, two systems of which the second is worse, repeats."""
    chance = random.Random(7)
    found = {}
    for number in range(90):
        wanted = [f"s{number}-{place}" for place in range(chance.randint(1, 3))]
        others = [f"x{place}" for place in range(12)]
        ours, theirs = (chance.sample(others, 9) for _ in range(2))
        for ranking, reach in ((ours, 4), (theirs, 9)):
            for document in wanted:
                ranking.insert(chance.randint(0, reach), document)
            ranking.insert(5, ranking[2])
        found[f"q{number}"] = (wanted, ours[:10], theirs[:10])
    return found


def check_runs(rankings: Rankings, folder: Path) -> None:
    """Every figure equals one computed here, by the definitions."""
    before, after, qrels = write_runs(folder, rankings)
    measures = ("hit@1", "recall@5", "recall@10", "mrr")
    flags = [word for measure in measures for word in ("-m", measure)]
    done = held(before, after, "--qrels", qrels, *flags, "--format", "json", where=folder)
    assert (done.code, done.err) == (0, "")
    (versus,) = read(done)["arms"]
    assert versus["n"] == len(rankings) and versus["unjoined"] == []
    p_values = []
    for effect in versus["effects"]:
        old, new = (values(rankings, side, effect["measure"]) for side in (0, 1))
        change = {query: new[query] - old[query] for query in rankings}
        assert effect["before"] == pytest.approx(float(sum(old.values()) / len(old)), abs=1e-12)
        assert effect["after"] == pytest.approx(float(sum(new.values()) / len(new)), abs=1e-12)
        assert effect["difference"] == pytest.approx(float(sum(change.values()) / len(change)), abs=1e-12)
        assert effect["lost"] == sum(value < 0 for value in change.values())
        assert effect["gained"] == sum(value > 0 for value in change.values())
        p_values.append(effect["p"])
        if effect["measure"] == "hit@1":
            assert effect["p"] == pytest.approx(midp(effect["lost"], effect["gained"]), rel=1e-9)
            for word, sign in (("lost", -1), ("gained", 1)):
                names = {moved["query"] for moved in versus["queries"] if moved["change"] == word}
                assert names == {query for query, value in change.items() if value * sign > 0}
        else:
            # scipy's own randomisation of signs; both are Monte Carlo, with 10,000 patterns.
            theirs = stats.permutation_test(
                ([float(value) for value in change.values()],),
                lambda sample, axis: sample.mean(axis=axis),
                permutation_type="samples",
                n_resamples=9_999,
                vectorized=True,
                rng=3,
            ).pvalue
            assert effect["p"] == pytest.approx(theirs, abs=0.02)
        ours = stats.bootstrap(
            ([float(value) for value in change.values()],),
            lambda s, axis: s.mean(axis=axis),
            method="percentile",
            rng=3,
        ).confidence_interval
        assert (effect["low"], effect["high"]) == pytest.approx(tuple(ours), abs=0.005 + 1 / len(change))
    assert [effect["p_holm"] for effect in versus["effects"]] == pytest.approx(holm(p_values), abs=1e-12)
    for moved in versus["queries"]:
        wanted, *lists = rankings[moved["query"]]
        for document in moved["documents"]:
            assert document["id"] in wanted
            for side, ranking in zip(("before", "after"), lists, strict=True):
                distinct = list(dict.fromkeys(ranking))
                place = distinct.index(document["id"]) + 1 if document["id"] in distinct else None
                assert document[side] == place
    # A page and a terminal show the same runs, without texts, which runs do not hold.
    text = held(before, after, "--qrels", qrels, *flags, where=folder).out
    assert "is taken on trust" in " ".join(text.split())
    assert max(map(width, text.splitlines())) <= 100


def test_real_rankings_of_longmemeval(shared_data: Callable[[str], Path], tmp_path: Path) -> None:
    """470 questions, as two published systems answered them; repeated sessions in a list are real. S3."""
    rankings = longmemeval(shared_data)
    assert len(rankings) == 470
    check_runs(rankings, tmp_path)


def test_runs_of_two_systems(tmp_path: Path) -> None:
    """The same on rankings made here. S3."""
    check_runs(made_up(), tmp_path)


def test_runs_give_what_their_reports_give(arms: Path) -> None:
    """Our own runs keep their keys, so that another task is refused and the system shown; TREC files have none."""
    qrels = ("--qrels", "memory/qrels/test.tsv", "--format", "json")
    report = read(held("usual", "flat", "--format", "json", where=arms))["arms"][0]
    names = ("usual", "flat"), (".eval/runs/usual.trec", ".eval/runs/flat.trec")
    for pair, known in zip(names, (True, False), strict=True):
        found = read(held(*pair, *qrels, where=arms))["arms"][0]
        assert found["effects"] == report["effects"]
        assert [m["documents"] for m in found["queries"]] == [m["documents"] for m in report["queries"]]
        assert (found["system"] is not None) is known
        assert (found["side"]["run_id"] is not None) is known
    refused = held("usual", "kind", *qrels, where=arms)
    assert refused.code == 1 and read(refused)["refused"]["reason"] == "task-differs"
    part = read(held("usual", "pairs", *qrels, where=arms))["arms"][0]
    assert part["n"] == 16 and part["unjoined"][0]["after"] == "absent"


def test_rows_of_our_own_run_that_failed_are_told_by_outcome(arms: Path, tmp_path: Path) -> None:
    """S3: an errored row of a run is no zero, and the comparison no finding; one that is missing counts 0, as said."""
    lines = (arms / ".eval" / "runs" / "flat.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows[3] = {"id": rows[3]["id"], "outcome": "errored", "ids": [], "latencies": [], "detail": "no"}
    (tmp_path / "failed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    qrels = ("--qrels", "memory/qrels/test.tsv", "--format", "json")
    found = read(held("usual", tmp_path / "failed.jsonl", *qrels, where=arms))["arms"][0]
    assert found["finding"] == "none"
    assert found["unjoined"] == [{"before": "scored", "after": "errored", "queries": [rows[3]["id"]]}]
    trec = (arms / ".eval" / "runs" / "flat.trec").read_text().splitlines(keepends=True)
    (tmp_path / "short.trec").write_text("".join(line for line in trec if not line.startswith("q04 ")))
    found = read(held("usual", tmp_path / "short.trec", *qrels, where=arms))["arms"][0]
    assert found["n"] == 55 and found["unjoined"] == []
    assert any(
        n == "after has judged queries that are not in the run and count 0, as in trec_eval -c: 1"
        for n in found["notes"]
    )


@pytest.mark.parametrize(("ties", "hit"), [("trec", 0.0), ("id", 1.0)])
def test_equal_scores_are_ordered_as_said(tmp_path: Path, ties: str, hit: float) -> None:
    (tmp_path / "q").write_text("q1 0 a 1\n")
    (tmp_path / "one").write_text("q1 Q0 a 1 0.5 x\nq1 Q0 b 2 0.5 x\n")
    done = held(
        "one", "one", "--qrels", "q", "--ties", ties, "-m", "hit@1", "--format", "json", where=tmp_path
    )
    assert read(done)["arms"][0]["effects"][0]["after"] == hit


def test_a_report_among_runs_is_told(arms: Path) -> None:
    done = held("usual", ".eval/reports/flat.json", "--qrels", "memory/qrels/test.tsv", where=arms)
    assert done.code == 2
    assert ".eval/reports/flat.json: is a report, and --qrels goes with runs" in done.err


@pytest.mark.parametrize(
    "header",
    [
        {"schema": "run-v1"},
        {"schema": "run-v1", "task": {"parts": {}, "sha256": "0"}, "system": {}, "environment": {}},
    ],
)
def test_a_run_with_a_broken_header_is_no_run_of_ours(arms: Path, tmp_path: Path, header: Any) -> None:
    lines = (arms / ".eval" / "runs" / "flat.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "odd.jsonl").write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
    done = held("usual", tmp_path / "odd.jsonl", "--qrels", "memory/qrels/test.tsv", where=arms)
    assert done.code == 2
    assert "odd.jsonl:1: is not a sound header of a run" in done.err
    assert "pydantic" not in done.err


@pytest.mark.parametrize(
    ("part", "value", "told"),
    [
        ("run_id", 7, "run_id = 7: should be a text"),
        ("arm", ["flat"], "arm = ['flat']: should be a text"),
        ("task", None, "has no 'task'"),
        ("system", 7, "system: "),
        ("environment", {"python": 3}, "environment: "),
    ],
)
def test_what_a_header_says_in_another_shape_is_told_by_its_name(
    arms: Path, tmp_path: Path, part: str, value: Any, told: str
) -> None:
    first, *rest = (arms / ".eval" / "runs" / "flat.jsonl").read_text().splitlines(keepends=True)
    header = json.loads(first)
    header[part] = value
    if value is None:
        del header[part]
    (tmp_path / "odd.jsonl").write_text(json.dumps(header) + "\n" + "".join(rest))
    for form in ("table", "json"):
        done = held(
            "usual", tmp_path / "odd.jsonl", "--qrels", "memory/qrels/test.tsv", "--format", form, where=arms
        )
        assert done.code == 2
        assert f"odd.jsonl:1: is not a sound header of a run: {told}" in done.err
        assert "pydantic" not in done.err


@pytest.mark.parametrize("ids", ["[" * 3000 + "]" * 3000, "[" * 100_000])
def test_a_run_of_deeply_nested_ids_is_refused(tmp_path: Path, ids: str) -> None:
    (tmp_path / "q").write_text("q1 0 a 1\n")
    (tmp_path / "deep.jsonl").write_text(f'{{"id": "q1", "ids": {ids}}}\n')
    done = held("deep.jsonl", "deep.jsonl", "--qrels", "q", where=tmp_path)
    assert done.code == 2
    assert "deep.jsonl:1: " in done.err


def test_measures_may_be_given_with_commas(arms: Path) -> None:
    """As to `score`."""
    value = read(held("usual", "flat", "-m", "mrr, map", "-m", "hit@1", "--format", "json", where=arms))
    assert [effect["measure"] for effect in value["arms"][0]["effects"]] == ["mrr", "map", "hit@1"]


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_no_name_or_id_acts_on_the_terminal(tmp_path: Path, form: str) -> None:
    """Names of files that are not UTF-8, and ids with control and bidirectional characters."""
    query = "\x9b31m\u202eq\x1b[2J"
    names = [os.fsdecode(b"r\xff\x1b"), os.fsdecode(b"s\xfe\xc2\x9b")]
    (tmp_path / "q").write_text(f"{query} 0 a 1\n", "utf-8")
    for name, document in zip(names, ("a", "b"), strict=True):
        (tmp_path / name).write_text(f"{query} Q0 {document} 1 0.5 x\n", "utf-8")
    done = held(*names, "--qrels", "q", "-m", "mrr", "--format", form, where=tmp_path)
    assert done.code == 0, done.err
    assert all(line.isprintable() for line in done.out.split("\n"))
    if form == "json":
        value = read(done)
        assert value["before"]["path"] == "r\\udcff\x1b"
        assert [moved["query"] for moved in value["arms"][0]["queries"]] == [query]


# -------------------------------------------------------------------------------------------------- backends


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_backends_are_compared_over_a_manifest(tmp_path: Path, form: str) -> None:
    """The third form goes to its own comparison, with its own exit code."""
    root = tmp_path / "notes"
    root.mkdir()
    for name, text in (
        ("retry.md", "how retries back off"),
        ("cache.md", "where the cache lies"),
        ("z.md", "more"),
    ):
        (root / name).write_text(text)
    manifest = {
        "id": "small",
        "queries": [{"id": "q1", "query": "how do retries back off", "ground_truth": ["retry.md"]}],
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    arguments = ("--backends", "bm25, overlap", "--manifest", tmp_path / "manifest.json", "--root", root)
    from eval_core import contract

    wanted = contract.compare_backends(tmp_path / "manifest.json", root, ["bm25", "overlap"], 3)
    done = held(*arguments, "--k", "3", "--format", form, where=tmp_path)
    assert done.code == wanted.exit_code == 0
    if form == "json":
        value = json.loads(done.out)
        assert value["schema"] == "retrieval-comparison-v1"
        assert ([backend["backend"] for backend in value["backends"]], value["k"]) == (["bm25", "overlap"], 3)
    else:
        assert "bm25" in done.out and "overlap" in done.out
    assert done.out.endswith("\n") and not done.out.endswith("\n\n")


# --------------------------------------------------------------------------------------------------- process


@pytest.fixture
def script(arms: Path) -> Iterator[Any]:
    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        source = "from eval_core.cli.app import run\nfrom eval_core.cli.compare import compare\nrun(compare, 'compare')"
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", source, *arguments],
            cwd=arms,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"},
        )

    yield start


def test_as_a_process_of_its_own(arms: Path, script: Any) -> None:
    """Each format gives the same code and the same bytes each time, done and refused."""
    for form in ("table", "markdown", "json"):
        done, refused = script("usual", "flat", "--format", form), script("usual", "kind", "--format", form)
        assert (done.returncode, refused.returncode) == (0, 1), done.stderr
        assert done.stderr == ""
        assert done.stdout == held("usual", "flat", "--format", form, where=arms).out
        assert "task-differs" in refused.stderr


def test_help_is_there_without_models(script: Any) -> None:
    done = script("--help")
    assert done.returncode == 0
    assert "baseline:NAME" in done.stdout and "--qrels" in done.stdout
    assert max(map(width, done.stdout.splitlines())) <= 120
