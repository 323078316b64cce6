from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

sys.path.insert(0, str(Path(__file__).resolve().parent))

from render_support import (
    SHARP,
    failing,
    grade,
    hostile,
    lost,
    passing,
    reason,
    refused,
    significance,
    texts,
    verdict,
)

from eval_gate.render import Place, rendered
from eval_gate.verdict import BarChange, Verdict

MARKER = "<!-- eval-gate check -->"

#: An independent reader of what the page says: CommonMark with GitHub's tables, HTML let through.
READER = MarkdownIt("commonmark", {"html": True}).enable("table")


def page(found: Verdict, place: Place | None = None) -> str:
    return rendered("markdown", found, place or Place())


def flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flat(token.children or [])


def test_the_decision_comes_first_then_why_then_what_to_do_then_the_tables() -> None:
    arm = failing(reasons=(reason(),), lost=(lost(3), lost(4)), significance=significance())
    why = reason("refused", "evidence-missing", "there is no such file", mend="Restore it.")
    out = page(verdict(passing(), arm, refused(reasons=(why,)), refused("twin", reasons=(why,))))
    wanted = [
        f"{MARKER}\n\n**REFUSED**: 3 of 4 arms (`twin`, `ugly`, `bad`)\n",
        "**REFUSED** `twin`, `ugly` on `things`, cannot be graded",
        "- there is no such file (`evidence-missing`)",
        "- → `Restore it.`",
        "**FAIL** `bad` on `things`\n",
        "- `hit@1` = 8: 3 misses are allowed (`floor-breached`)",
        "- `hit@1` −4.5 points, 95% −9.1 to −0.2, p = 0.063 (mid-p McNemar): chance could explain it",
        "- Do what the lines above say, then: `eval-core measure && eval-gate check`",
        "<details><summary>4 arms, bars and latency</summary>\n\n| arm | verdict | n | `hit@1` | p95 ms |\n",
        "| `bad` | fail | 27 | 8 > 3 misses **!** | – |",
        "<details><summary>Lost queries of <code>bad</code> (2)</summary>\n\n- `q03` `where is thing 3` `d03`",
        "<details><summary>Notes</summary>\n\n",
    ]
    places = [out.find(text) for text in wanted]
    assert -1 not in places, (wanted[places.index(-1)], out)
    assert places == sorted(places)


def test_a_looser_bar_stands_open_and_what_else_changed_is_folded() -> None:
    change = BarChange(arm="good", key="margin", before="2", after="4", looser=True, reason="a | b")
    other = change.model_copy(update={"key": "n", "looser": False})
    out = page(verdict(passing(), target="main", bar=(other, change)))
    opened, folded = out.split("<details>", 1)
    assert "**The bar is looser** than that of `main`:" in opened
    assert "- looser: good margin: 2 → 4 (reason: a `|` b)" in opened
    assert "- changed: good n: 2 → 4" in folded


def test_a_page_that_is_made_anew_replaces_the_old_one() -> None:
    """The first line is the same whatever the verdict, and stands nowhere else, whatever a set holds."""
    for found in (verdict(), verdict(passing()), verdict(failing(MARKER, lost=(lost(text=MARKER),)))):
        out = page(found)
        assert out.split("\n")[0] == MARKER
        blocks = [t.content.strip() for t in READER.parse(out) if t.type == "html_block"]
        assert blocks.count(MARKER) == 1


def test_a_long_verdict_is_cut_and_says_what_was_left_out() -> None:
    """A comment on GitHub holds 65,536 characters."""
    arms = [
        failing(f"arm-{number:03}", lost=tuple(lost(q, text="words " * 40) for q in range(60)))
        for number in range(500)
    ]
    out = page(verdict(*arms))
    assert len(out.encode()) <= 60_000
    assert out.startswith(f"{MARKER}\n\n**FAIL**: 500 of 500 arms (`arm-000`, ")
    assert "and 490 more)" in out
    assert "**FAIL** `arm-050`" in out
    assert "| `arm-050` | fail |" in out
    last = out.split("\n\n")[-1]
    found = re.fullmatch(
        r"Left out for length: ([\d,]+) arms that do not pass, ([\d,]+) arms of the table, ([\d,]+) lost queries, "
        r"3 notes\. "
        r"All of it: `eval-gate check --format json`",
        last,
    )
    assert found is not None, last
    numbers = [int(part.replace(",", "")) for part in found.groups()]
    assert numbers[0] == 500 - len(re.findall(r"^\*\*FAIL\*\* `arm", out, re.MULTILINE))
    assert numbers[1] == 500 - len(re.findall(r"^\| `arm", out, re.MULTILINE))
    short = page(verdict(failing()))
    assert "Left out" not in short


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30), st.sampled_from(["x ", "漢", "`", "🙂"]))
def test_no_length_of_texts_makes_a_page_too_long(lengths: list[int], letter: str) -> None:
    arms = [
        failing(
            letter * number,
            reasons=tuple(reason(what=letter * number, mend=f"{letter * number}{n}") for n in range(12)),
            lost=(lost(text=letter * number),) * 9,
            warnings=(letter * number,) * 5,
        )
        for number in lengths
    ]
    assert len(page(verdict(*arms)).encode()) <= 60_000


#: All HTML that a page has: its marker, and what folds.
_HTML = re.compile(
    rf"{MARKER}|</details>|<details><summary>"
    r"(?:[\w ,]+|[\w ,]*\(\d+\)|Lost queries of <code>[^<>]*</code> \(\d+\))</summary>"
)
#: What GitHub makes of plain text: a mention, a reference, a link, a commit.
_ALIVE = re.compile(r"(?<!\w)@\w|#\d|\bGH-\d|://|\bwww\.|\w@\w|\b[0-9a-f]{7,40}\b|\b[A-Z]+-\d|:\w+:|\$|\[|\]")
_TOKENS = {
    *("link_open", "link_close"),  # of reasons, to the page that explains them
    *("paragraph_open", "paragraph_close", "inline", "text", "code_inline", "html_block"),
    *(
        "bullet_list_open",
        "bullet_list_close",
        "list_item_open",
        "list_item_close",
        "strong_open",
        "strong_close",
    ),
    *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
}


@settings(max_examples=50, deadline=None)
@given(hostile())
def test_no_text_of_others_means_more_than_itself_on_a_page(found: Verdict) -> None:
    """No table, list, link, image, HTML, comment, mention or reference comes of what others wrote."""
    out = page(found)
    assert len(out.encode()) <= 60_000
    assert {c for c in out if not c.isprintable()} <= {"\n"}
    tokens = READER.parse(out)
    assert {token.type for token in flat(tokens)} <= _TOKENS
    for token in flat(tokens):
        if token.type == "html_block":
            assert _HTML.fullmatch(token.content.strip()), token.content
        elif token.type == "link_open":
            assert re.fullmatch(r"docs/reasons\.md#[a-z0-9-]+", str(token.attrs["href"]))
        elif token.type == "text":
            assert _ALIVE.search(token.content) is None, token.content
    every = list(flat(tokens))
    strong = {after.content for before, after in pairwise(every) if before.type == "strong_open"}
    assert strong <= {"PASS", "FAIL", "REFUSED", "The bar is looser", "!"}
    # Every row has the cells of its head, and there is a row an arm.
    heads = sum(token.type == "th_open" for token in tokens)
    rows = sum(token.type == "tr_open" for token in tokens) - (heads > 0)
    assert sum(token.type == "td_open" for token in tokens) == heads * rows
    assert rows == len(found.arms)


@given(texts)
@settings(max_examples=80, deadline=None)
def test_a_text_of_others_can_be_read_as_it_was_written(text: str) -> None:
    """Escaping loses nothing but control characters: the reader finds the words that were put in."""
    out = page(verdict(failing(lost=(lost(text=text),))))
    spans = [token.content for token in flat(READER.parse(out)) if token.type == "code_inline"]
    wanted = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if wanted.strip() and len(wanted) <= 160 and "##[" not in wanted:
        # Spaces at both ends of a span are the fence's.
        assert wanted.strip(" ") in [span.strip(" ") for span in spans]


@pytest.mark.parametrize("sharp", [text for text in SHARP if text.strip()])
def test_each_sharp_text_is_blunt_in_each_place(sharp: str) -> None:
    arm = failing(
        f"x{sharp}",
        set=sharp,
        reasons=(
            reason(what=f"{sharp} x", key=sharp, value=sharp),
            reason(what=f"a {sharp} b{sharp}", code=sharp, mend=sharp, file=sharp, subject=sharp),
        ),
        graded=(grade(False, measure=sharp),),
        measure=sharp,
        lost=(lost(query=sharp, text=sharp, document=sharp),),
        warnings=(sharp, f"a {sharp}"),
    )
    tokens = list(flat(READER.parse(page(verdict(arm)))))
    assert {token.type for token in tokens} <= _TOKENS
    assert [t.content for t in tokens if t.type == "text" and _ALIVE.search(t.content)] == []
    assert [
        t.content for t in tokens if t.type == "html_block" and not _HTML.fullmatch(t.content.strip())
    ] == []
