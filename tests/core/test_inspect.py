"""`eval-core inspect`, run as a user runs it, on sets of our own."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from eval_core.cli.inspect import CLOSE, OPEN, inspect
from eval_core.errors import Misuse, Refused

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four documents and three queries: one found by its words, one by nothing, one with two targets."""
    folder = tmp_path / "colours"
    (folder / "qrels").mkdir(parents=True)
    texts = {"d1": "red apples grow on trees", "d2": "green pears", "d3": "blue plums", "d4": "green grapes"}
    kinds = {"d1": "tree", "d2": "tree", "d3": "tree", "d4": "vine"}
    lines = [json.dumps({"_id": n, "text": t, "metadata": {"kind": kinds[n]}}) for n, t in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    queries = {"q1": "what do red apples grow on", "q2": "violet", "q3": "green"}
    asked = [json.dumps({"_id": n, "text": t, "metadata": {"category": "c"}}) for n, t in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n", "utf-8")
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t1\nq3\td2\t1\nq3\td4\t1\n", "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return folder


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(
        inspect, [str(word) for word in words], standalone_mode=False, catch_exceptions=False
    )


def test_it_counts_and_shows_the_extremes_and_the_limits(colours: Path) -> None:
    """A6: what the set is made of, and what its numbers cannot show."""
    done = run(colours, "--format", "json")
    found = json.loads(done.output)
    assert (found["documents"], found["queries"], found["judgements"]) == (4, 3, 4)
    assert found["kinds"] == {"tree": 3, "vine": 1}
    assert [(e["what"], e["id"], e["words"]) for e in found["extremes"]] == [
        ("longest document", "d1", 5),
        ("shortest document", "d2", 2),
        ("longest query", "q1", 6),
        ("shortest query", "q2", 1),
    ]
    # By hand: q1 has red, apples, grow, on of its six words; q2 none; q3 its one.
    assert found["limits"]["overlap"]["mean"] == pytest.approx((4 / 6 + 0 + 1) / 3)
    assert found["headroom"] == []
    schema = json.loads((ROOT / "schemas" / "inspection-v1.schema.json").read_text("utf-8"))
    jsonschema.validate(found, schema)


def test_headroom_measures_what_simple_rankers_score(colours: Path) -> None:
    """A6: by hand, for word overlap: q1 and q3 have a right document first, q2 finds nothing; all found otherwise."""
    found = json.loads(run(colours, "--headroom", "--format", "json").output)
    rankers = {ranker["name"]: ranker for ranker in found["headroom"]}
    assert list(rankers) == ["random", "popularity", "overlap", "bm25"]
    assert rankers["overlap"]["rank_1"] == pytest.approx(2 / 3)
    assert rankers["overlap"]["recall"] == pytest.approx(2 / 3)
    assert rankers["bm25"]["rank_1"] == pytest.approx(2 / 3)
    # Random and popularity return all four documents whatever is asked.
    assert rankers["random"]["recall"] == rankers["popularity"]["recall"] == 1.0


def test_the_table_is_put_between_the_marks_of_a_page_and_nothing_else_moves(colours: Path) -> None:
    page = colours / "README.md"
    page.write_text(f"# before\n\n{OPEN}\nold\n{CLOSE}\n\nafter\n", "utf-8")
    assert run(colours, "--headroom", "--into", page).return_value == 0
    once = page.read_text("utf-8")
    assert once.startswith(f"# before\n\n{OPEN}\n| ranker |")
    assert once.endswith(f"|\n{CLOSE}\n\nafter\n")
    assert "old" not in once
    run(colours, "--headroom", "--into", page)
    assert page.read_text("utf-8") == once


def test_check_says_whether_the_page_is_what_is_made_now_and_changes_nothing(colours: Path) -> None:
    page = colours / "README.md"
    page.write_text(f"{OPEN}\n{CLOSE}\n", "utf-8")
    with pytest.raises(Refused, match="out of date"):
        run(colours, "--headroom", "--check", "--into", page)
    assert page.read_text("utf-8") == f"{OPEN}\n{CLOSE}\n"
    run(colours, "--headroom", "--into", page)
    assert run(colours, "--headroom", "--check", "--into", page).return_value == 0


@pytest.mark.parametrize("text", ["no marks", f"{OPEN}\n{CLOSE}\n{OPEN}\n{CLOSE}\n"])
def test_a_page_without_the_marks_once_is_left_alone(colours: Path, text: str) -> None:
    page = colours / "README.md"
    page.write_text(text, "utf-8")
    with pytest.raises(Exception, match="once"):
        run(colours, "--headroom", "--into", page)
    assert page.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "nowhere: there is no such dataset folder"),
        (["colours", "--split", "dev"], "dev.tsv: there is no such split"),
    ],
)
def test_what_is_not_there_is_named_and_no_configuration_is_blamed(
    colours: Path, words: list[str], told: str
) -> None:
    with pytest.raises(Misuse, match=told) as caught:
        run(*words)
    assert "eval.toml" not in str(caught.value)
    assert "arms" not in str(caught.value)


def test_into_without_headroom_is_wrong_usage(colours: Path) -> None:
    with pytest.raises(Exception, match="--headroom"):
        run(colours, "--into", colours / "README.md")


@pytest.mark.parametrize("name", ["memory", "dedupe"])
def test_the_readme_of_a_set_shows_the_headroom_that_it_has(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6: at least a quarter of each set is missed at rank 1 by bm25; the table in git is the one that is made now."""
    monkeypatch.chdir(tmp_path)
    folder = ROOT / "datasets" / name
    found = json.loads(run(folder, "--headroom", "--format", "json").output)
    assert 1 - found["headroom"][-1]["rank_1"] >= 0.25
    table = run(folder, "--headroom", "--format", "markdown").output.strip()
    assert table in (folder / "README.md").read_text("utf-8")
