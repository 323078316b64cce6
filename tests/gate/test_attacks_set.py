"""The attacks on a set, measured for real: queries, judgements, documents and configuration are changed on the disk.

The table of attacks (test_selftest) has each as a report; here it is what measuring makes of the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Space

pytestmark = pytest.mark.usefixtures("passes")


def delete_failing_queries(space: Space) -> None:
    gone = {"q01", "q02", "q03", "q04"}
    space.put_queries([row for row in space.queries() if row["_id"] not in gone])
    space.rejudge(lambda rows: [row for row in rows if row.split("\t")[0] not in gone])


def add_an_easy_query(space: Space) -> None:
    rows = space.queries()
    answers = json.loads((space.root / "answers.json").read_text())
    for number in range(28, 60):
        rows.append({"_id": f"q{number}", "text": f"easy {number}"})
        answers[f"easy {number}"] = ["d01"]
    space.put_queries(rows)
    (space.root / "answers.json").write_text(json.dumps(answers))
    space.rejudge(lambda rows: [*rows, *(f"q{number}\td01\t1" for number in range(28, 60))])


def swap_a_query(space: Space) -> None:
    """n stays 27: a failing query goes, an easy one comes."""
    rows = space.queries()
    rows[0] = {"_id": "q00", "text": rows[5]["text"]}
    space.put_queries(rows)
    space.rejudge(lambda rows: ["q00\td06\t1", *rows[1:]])


def rewrite_labels(space: Space) -> None:
    space.rejudge(lambda rows: [row.split("\t")[0] + "\td29\t1" if row < "q05" else row for row in rows])


def judge_more(space: Space) -> None:
    space.rejudge(lambda rows: [*rows, "q01\td29\t1"])


def raise_a_grade(space: Space) -> None:
    space.rejudge(lambda rows: [row[:-1] + "2" if row.startswith("q01") else row for row in rows])


def reword_a_query(space: Space) -> None:
    rows = space.queries()
    rows[0]["text"] = rows[5]["text"]
    space.put_queries(rows)


def give_a_query_a_meaning(space: Space) -> None:
    rows = space.queries()
    rows[0]["metadata"] = {"exclude": ["d29"]}
    space.put_queries(rows)


def drop_a_document(space: Space) -> None:
    space.rewrite_documents(lambda lines: lines[:-1])


def add_a_document(space: Space) -> None:
    space.rewrite_documents(lambda lines: [*lines, json.dumps({"_id": "d41", "text": "more"})])


def swap_a_text(space: Space) -> None:
    space.rewrite_documents(lambda lines: [*lines[:-1], lines[-1].replace("thing 40", "thing 1")])


def in_eval_toml(line: str) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        space.edit(space.root / "eval.toml", '"jsonl"', f'"jsonl"\n{line}')

    change.__name__ = line.replace(" ", "")
    return change


def in_dataset_toml(old: str, new: str) -> Callable[[Space], None]:
    def change(space: Space) -> None:
        space.edit(space.root / "set" / "dataset.toml", old, new)

    change.__name__ = new.replace(" ", "")
    return change


@pytest.mark.parametrize(
    ("attack", "codes"),
    [
        (delete_failing_queries, ["query-set-differs", "n-differs"]),
        (add_an_easy_query, ["query-set-differs", "n-differs"]),
        (swap_a_query, ["query-set-differs"]),
        (rewrite_labels, ["judgements-differ"]),
        (judge_more, ["judgements-differ"]),
        (raise_a_grade, ["judgements-differ"]),
        (reword_a_query, ["queries-differ"]),
        (give_a_query_a_meaning, ["queries-differ"]),
        (drop_a_document, ["corpus-differs"]),
        (add_a_document, ["corpus-differs"]),
        (swap_a_text, ["corpus-differs"]),
        (in_dataset_toml('"memory"', '"code"'), ["kind-differs"]),
        (in_eval_toml("limit = 20"), ["limit-differs"]),
        (in_eval_toml("cutoffs = [1, 5]"), ["metric-missing", "metric-missing"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_change_of_what_is_asked_is_refused_and_named(
    space: Space, attack: Callable[[Space], None], codes: list[str]
) -> None:
    """A4, K3: measured afresh on another set, by a retriever that lost four queries, the arm is not graded."""
    space.answer(space.losing(4))
    assert space.core("measure", "-q").code == 0
    failing = space.check()
    assert (failing.code, "baseline-drop" in failing.codes) == (1, True)
    attack(space)
    assert space.core("measure", "-q").code == 0
    done = space.check()
    assert (done.code, done.codes) == (1, codes)
    arm = done.verdict["arms"][0]
    assert (arm["verdict"], arm["graded"], arm["lost"]) == ("refused", [], [])
    assert arm["reasons"][0]["mend"]


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        (delete_failing_queries, "23 now, 27 in the baseline; gone: q01, q02, q03, q04"),
        (swap_a_query, "27 now, 27 in the baseline; gone: q01; new: q00"),
        (
            rewrite_labels,
            "judgements were changed: q01 (d01, d29), q02 (d02, d29), q03 (d03, d29), q04 (d04, d29)",
        ),
        (reword_a_query, "the text or meaning of queries changed: q01"),
        (drop_a_document, "(39 documents now, 40 in the baseline)"),
        (in_eval_toml("limit = 20"), "another number of documents was asked for: 20 now, 10 in the baseline"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_changed_is_told_by_name(space: Space, attack: Callable[[Space], None], told: str) -> None:
    """A4: the query, the judgement, the number; a person need not look for it."""
    attack(space)
    assert space.core("measure", "-q").code == 0
    assert space.check().verdict["arms"][0]["reasons"][0]["message"].endswith(told)


@pytest.mark.parametrize(
    ("part", "value", "code"),
    [
        ("weather", "fine", "weather-differs"),
        pytest.param("split", "x" * 5000, "split-differs", id="a long value"),
    ],
)
def test_a_part_that_a_later_version_adds_is_held_to_and_shown_short(
    space: Space, part: str, value: object, code: str
) -> None:
    """A4: the parts of the task that there are now are in the table of attacks."""
    space.forge(space.report, lambda report: report["task"]["parts"].update({part: value}))
    done = space.check()
    assert (done.code, done.codes) == (1, [code])
    assert len(done.verdict["arms"][0]["reasons"][-1]["message"]) < 200


def test_the_order_of_queries_documents_and_judgements_means_nothing(space: Space) -> None:
    """A4: pairing is by id."""
    space.put_queries(list(reversed(space.queries())))
    space.rejudge(lambda rows: list(reversed(rows)))
    space.rewrite_documents(lambda lines: list(reversed(lines)))
    assert space.measure().code == 0
    assert json.loads(space.report.read_text())["rows"][0]["id"] == "q27"
    assert space.check().code == 0
    # And what is lost is still told of the query that lost it.
    assert space.measure({**space.losing(4), "q27": 2}).code == 0
    assert [moved["query"] for moved in space.check().verdict["arms"][0]["lost"]] == [
        "q01",
        "q02",
        "q03",
        "q04",
    ]


def test_a_cutoff_that_the_floors_need_is_missed(space: Space) -> None:
    """A4: whichever measure it is of, not only the one that is held against the baseline."""
    why = dict.fromkeys(("hit@1", "ndcg@10", "mrr"), "hit@5 is what is shown")
    space.policy(measures=["hit@5", "recall@10"], reasons=why)
    assert space.check().code == 0
    in_eval_toml("cutoffs = [1, 10]")(space)
    assert space.measure().code == 0
    done = space.check()
    assert (done.code, done.codes) == (1, ["metric-missing"])
    assert done.verdict["arms"][0]["reasons"][0]["message"].startswith(
        "hit@5: it is held against the baseline, and the report lacks it"
    )


def test_more_cutoffs_than_the_floors_need_are_no_difference(space: Space) -> None:
    in_eval_toml("cutoffs = [1, 3, 5, 10]")(space)
    assert space.measure().code == 0
    assert space.check().code == 0


@pytest.mark.parametrize(("lost", "code"), [(3, 0), (4, 1)])
def test_a_changed_system_is_graded_and_named(space: Space, lost: int, code: int) -> None:
    """A4: a change of the backend's options is what the gate is there to judge."""
    in_eval_toml("options.timeout = 9")(space)
    space.edit(space.root / "adapter.py", "import json, sys", "import json, sys  # tuned")
    ranks = dict.fromkeys(list(space.losing(lost)), 2)
    assert space.measure(ranks).code == 0
    done = space.check()
    assert (done.code, done.codes) == (code, ["floor-breached"] if code else [])
    changes = {change["part"]: change for change in done.verdict["arms"][0]["system_changes"]}
    assert (changes["options.timeout"]["before"], changes["options.timeout"]["after"]) == (None, 9)
    assert "files.adapter.py" in changes
