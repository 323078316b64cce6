"""What is a mark, what is an example and what is a fault (SYSTEMS S4, S6): no claim escapes, whatever the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from published_support import Desk

from eval_core import publish
from eval_core.errors import Refused
from eval_core.publish import figures, marks
from eval_core.publish.marks import Asserted, Page

CLAIM = "<!-- metric memory-bm25 mrr -->0.999<!-- /metric -->"


def found(text: str, name: str = "page.md") -> Page:
    return marks.find(Path(name), text)


def live(text: str) -> list[str]:
    """What is written in the marks of a page that has no fault."""
    page = found(text)
    assert page.faults == ()
    return [page.written(mark) for mark in page.marks]


# --- surely code ---


@pytest.mark.parametrize(
    "text",
    [
        f"`{CLAIM}`",
        f"Write `` ` {CLAIM} `` and `x`.",
        f"`a`, `b` and `{CLAIM}`",
        f"one `a`\ntwo `{CLAIM}`",
        f"see <!-- a note --> and `{CLAIM}`",
        f"> - `{CLAIM}`",
        f"a ` alone\n\n`{CLAIM}`",
        f"    `{CLAIM}`",
        f"```\n{CLAIM}\n```",
        f"text\n```md\n{CLAIM}\n```\ntext",
        f"~~~ `\n{CLAIM}\n```\n{CLAIM}\n~~~~",
        f"```\n    ```\n{CLAIM}\n> ```\n{CLAIM}\n   ````",
        f"- item\n\n  ```\n  {CLAIM}\n\n  ```",
        f"   ```\n   {CLAIM}\n   ```",
        f"> ```\n> code\n> ```\n\n```\n{CLAIM}\n```",
        f"<p>\n\n```\n{CLAIM}\n```",
        f"<pre>\n`\n</pre>\n\n```\n{CLAIM}\n```",
        f"---\ntitle: `\n---\n\n```\n{CLAIM}\n```",
    ],
)
def test_what_every_reader_sees_as_code_is_an_example(text: str) -> None:
    """The control: else nobody could write of marks."""
    assert live(text + "\n\n" + CLAIM.replace("999", "111")) == ["0.111"]


# --- visible, and so never skipped ---

VISIBLE = [
    rf"We reach \`{CLAIM}\` now.",
    f"> ```\n> example\n\n{CLAIM}\n\n```\nordinary\n```\n",
    f"    ```\n    code\n\n{CLAIM}\n\n    ```\n    code\n",
    f"\t```\n\n{CLAIM}\n\n\t```\n",
    f"<a title='`'>x</a> {CLAIM} <a title='`'>y</a>",
    f"<https://a.b/`> {CLAIM} <https://a.b/`>",
    f"see <!-- ` --> {CLAIM} <!-- ` -->",
    f"<!-- a note --> `{CLAIM}`",
    f"<div>\n`{CLAIM}`\n</div>",
    f"<div>\n```\n{CLAIM}\n```\n</div>",
    f"<pre>\n\n`{CLAIM}`\n\n</pre>",
    f"<pre>\n\n```\n{CLAIM}\n```\n</pre>",
    f"- <pre>\n\n  `{CLAIM}`\n\n  </pre>",
    f"- <pre>\n\n```\n</pre>\n```\n{CLAIM}\n```\nx\n```",
    f"> ```\n\n<pre>\n\n```\n{CLAIM}\n```\n</pre>",
    f"a ` b\nc ` {CLAIM} ` d ` e",
    f"| ` | {CLAIM} | ` |\n|---|---|---|\n",
    f"$a ` b$ {CLAIM} $c ` d$",
    f"- item\n  ```\n{CLAIM}\n```\nordinary\n```\n",
    f"- item\nlazy\n\n  ```\n\n{CLAIM}\n\n```\nordinary\n```\n",
    f"  ```\nexample\n```\n{CLAIM}\n```\nordinary\n```\n",
    f"1. ```\n   a\n   ```\n   {CLAIM}\n   ```\n   b\n   ```\n",
    f"- item\n     ```\n     a\n  ```\n  {CLAIM}\n  ```\n  b\n  ```\n",
    f"- ~~~\n\n{CLAIM}\n\n~~~\nordinary\n~~~\n",
    f"\ufeff```\nexample\n```\n{CLAIM}\n```\nordinary\n```\n",
    f"+++\na = '''\n```\n'''\n+++\n{CLAIM}\n```\nordinary\n```\n",
    f"``` not a fence ` here\n{CLAIM}\n```\nordinary\n```\n",
]


@pytest.mark.parametrize("text", VISIBLE)
def test_a_claim_that_some_reader_sees_is_read_or_a_fault(text: str) -> None:
    """S4: a mark that may be seen is live; where it may be code as well, it is told how to write an example."""
    page = found(text)
    told = [fault.what for fault in page.faults]
    assert told or [page.written(mark) for mark in page.marks] == ["0.999"]
    assert all("in doubt" in message and "`span`" in message for message in told)


@pytest.mark.parametrize("text", VISIBLE[:5])
def test_check_does_not_pass_a_wrong_number_for_an_example(tmp_path: Path, text: str) -> None:
    """S4: beside a claim that holds, so that the page is not without any."""
    desk = Desk(tmp_path)
    (tmp_path / "values.json").write_text('{"mrr": 0.5}')
    sound = "<!-- metric from:mrr -->0.5<!-- /metric -->\n\n"
    desk.page.write_text(sound)
    assert desk.publish("--check", "--from", "values.json").code == 0
    desk.page.write_text(sound + text.replace("memory-bm25 mrr", "from:mrr"))
    assert desk.publish("--check", "--from", "values.json").code in (1, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"> ```\n> {CLAIM}\n> ```\n", 2),
        (f"1. ```\r\n   {CLAIM}\r\n   ```\r\n", 2),
        (f"text\n\n    ```\n    {CLAIM}\n    ```\n", 4),
        (f"a ` alone\n`{CLAIM}`\n", 2),
        (f"- ```\n  code\n  ```\n\n```\n{CLAIM}\n```\n", 6),
    ],
)
def test_an_example_in_doubtful_code_is_a_fault_with_its_line(text: str, line: int) -> None:
    assert {(fault.file, fault.line) for fault in found(text).faults} == {("page.md", line)}


def test_fences_in_lists_and_quotations_hide_nothing_below_them() -> None:
    """What most pages hold: their claims are read without any fault."""
    text = f"1. Run:\n\n   ```sh\n   make\n   ```\n2. ```\n   x\n   ```\n\n> ```\n> x\n> ```\n\n{CLAIM} and `code`\n"
    assert live(text) == ["0.999"]


# --- near misses ---


@pytest.mark.parametrize(
    "text",
    [
        "<!-- Metric a mrr -->0.999<!-- /Metric -->",
        "<!-- METRICS a: mrr -->\n<!-- /METRICS -->",
        "<!--- metric a mrr -->0.999<!--- /metric -->",
        "<!-- meric a mrr -->0.999<!-- /meric -->",
        "<!-- mertic a mrr -->0.999<!-- /mertic -->",
        "<!-- metrix a mrr -->0.999<!-- /metrix -->",
        "<!-- metirsc a: mrr -->0.999<!-- /metirsc -->",
        "<!-- metric: a mrr -->0.999<!-- end -->",
        "<!-- \u200bmetric a mrr -->0.999",
        "<!-- metri\u0441 a mrr -->0.999",
        "<!\u2014 metric a mrr -->0.999",
        "<?metric a mrr?>0.999",
        "<!metric a mrr>0.999",
        "<!-- / metric -->",
        "<!--\nmetric a mrr -->0.999",
        "<!-- metric a\nmrr -->0.999<!-- /metric -->",
        "<!-- metric a mrr --!>0.999<!-- /metric -->",
        "<!-- note <!-- metric a mrr -- >0.999<!-- /metric -->",
    ],
)
@pytest.mark.parametrize("name", ["page.md", "page.html"])
def test_a_near_miss_of_a_mark_is_a_fault(text: str, name: str) -> None:
    """S4: a claim does not escape by a slip of the hand."""
    page = found(text, name)
    assert page.marks == ()
    assert {fault.code for fault in page.faults} == {"mark-malformed"}


@pytest.mark.parametrize(
    "text",
    [
        "<!-- metrically speaking -->",
        "<!-- toc -->1<!-- /toc -->",
        "<!-- matrix of results -->",
        "<!DOCTYPE html>",
        "<!-- see metric -->",
        "the metric <b>x</b>",
        "`<!-- Metric x -->`",
    ],
)
def test_another_comment_is_none_of_ours(text: str) -> None:
    assert live(text) == []


# --- hostile pages: time ---

N = 200_000


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "<!-- " * N,
        "<!-- metric " * N,
        "> " * N,
        "- " * N,
        " " * N + "x",
        "`" + " ``" * N,
        "`\n" * N,
        "```\n" * N,
        "> ```\n" * N,
        "    ```\n" * N,
        "  ```\n" * N + "x",
        "<pre>\n" * N,
        "<!" + "-" * N,
        " " * N + "<!-- metrics a: n --><!-- /metrics -->" * 5000,
        "x" * N + "<!-- metrics a: n --><!-- /metrics -->" * 5000,
    ],
    ids=lambda text: repr(text[:14]),
)
def test_a_page_takes_time_in_proportion_to_its_size(text: str) -> None:
    """Each is read in about a second; in time that goes with the square of the size it would be minutes."""
    found(text)


@pytest.mark.timeout(30)
def test_a_table_of_one_long_line_is_compared_in_proportion_to_its_size(tmp_path: Path) -> None:
    assert publish._plain("a" + " " * N + "b |  c") == "a" + " " * N + "b|c"


# --- foreign text ---


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert)",
        "`code`",
        "two\nlines",
        "a\rb",
        "a --> b",
        "a<!-- b",
        "a | b",
        "*bold*",
        "&lt;",
        "a\\b",
        "https://a.b",
        "www.a.b",
        "x WWW.a.b",
        "@someone",
        "#12",
        "$x$",
        "a\u202eb",
        "\u0660",
        "a\tb",
        "a  b",
        " a",
        "a ",
        "",
        "a" * 61,
    ],
)
def test_foreign_text_that_may_be_markup_is_not_published(tmp_path: Path, text: str) -> None:
    """S6: told with its key and value, and the page stays."""
    path, desk = tmp_path / "values.json", Desk(tmp_path)
    path.write_text(json.dumps({"gold": {"label": text}}))
    page = "<!-- metric from:gold.label -->?<!-- /metric -->\n"
    desk.page.write_text(page)
    [reason] = desk.told("--from", path)["reasons"]
    assert reason["code"] == "value-unfit"
    assert f"gold.label: is a text that no mark can hold: {text[:40]!r}" in reason["message"]
    assert desk.page.read_text() == page


@pytest.mark.parametrize("text", ["v3.2", "94.4%", "1,024", "+0.5", "bge-small_en v1.5", "a" * 60])
def test_plain_short_words_are(tmp_path: Path, text: str) -> None:
    path = tmp_path / "values.json"
    path.write_text(json.dumps({"a": text}))
    assert figures.value(figures.read(path), Asserted("a", ("a",), None), path) == text


def test_a_number_of_endless_digits_asks_for_a_form(tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    path.write_text('{"a": 0.' + "3" * 5000 + "}")
    with pytest.raises(Refused, match=r"a: is '0.333.*give a form") as caught:
        figures.value(figures.read(path), Asserted("a", ("a",), None), path)
    assert len(caught.value.message) < 300
    assert figures.value(figures.read(path), Asserted("a", ("a",), ".3f"), path) == "0.333"


# --- pages that are looked for ---


def test_a_folder_with_a_pages_name_is_no_page(tmp_path: Path) -> None:
    for folder in ("docs/x.md", "docs/deep"):
        (tmp_path / folder).mkdir(parents=True)
    pages = [tmp_path / name for name in ("README.md", "docs/deep/b.md", "docs/x.md/a.md")]
    for page in pages:
        page.write_text("text")
    assert publish.usual(tmp_path) == tuple(pages)
    pages[0].unlink()
    pages[0].mkdir()
    assert publish.usual(tmp_path) == tuple(pages[1:])
