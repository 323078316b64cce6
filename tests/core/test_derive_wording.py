"""From a doc comment to a draft: which words stay, and which sentences ask for nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.authoring.derive.wording import (
    MOST,
    draft,
    first_sentence,
    paragraph,
    plain,
    refusal,
    sentences,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One two. Three four.", ["One two.", "Three four."]),
        ("One, e.g. Two, is it. Three", ["One, e.g. Two, is it.", "Three"]),
        ("Reads a.b and c. then goes on", ["Reads a.b and c. then goes on"]),
        ("Is it? Yes! No", ["Is it?", "Yes!", "No"]),
        ("It says (so.) Then more.", ["It says (so.)", "Then more."]),
        ("**Bold end.** Next one", ["**Bold end.**", "Next one"]),
        ("Version 1.2 of it. After", ["Version 1.2 of it.", "After"]),
        ("by J. Smith of it. After", ["by J. Smith of it.", "After"]),
        ("一句。二句。", ["一句。", "二句。"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, found: list[str]) -> None:
    assert [text[begin:end].strip() for begin, end in sentences(text)] == found
    assert first_sentence(text) == (found[0] if found else "")


@given(st.text("aB .!?*()。\n", max_size=40))
def test_sentences_lose_nothing(text: str) -> None:
    spans = list(sentences(text))
    assert "".join(text[begin:end] for begin, end in spans).split() == text.split()
    assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("doc", "found"),
    [
        ("\n  Reads the\n  whole file.\n\n  More.", "Reads the whole file."),
        ("Reads it.\n:param x: what\n", "Reads it."),
        ("Reads it\n@param x what", "Reads it"),
        ("@brief Reads it all.", "Reads it all."),
        ("\\brief Reads it all.\n\\return x", "Reads it all."),
        ("@return the size", ""),
        ("Reads @p x twice\n@p y is kept", "Reads @p x twice @p y is kept"),
        ("Title of it\n===========\n\nReads the file.", "Reads the file."),
        ("Reads it:\n- one\n- two", "Reads it:"),
        ("Reads it.\n>>> x", "Reads it."),
        (":class:`Foo` reads it", ":class:`Foo` reads it"),
        ("<summary>\nReads it.\n</summary>\n<param name='x'>y</param>", "Reads it."),
        ("Reads it.<p>More of it.", "Reads it."),
        ("Args:\n  x: what", ""),
        ("# Examples\nfoo", ""),
        ("", ""),
    ],
)
def test_a_doc_comment_is_read_to_its_first_tag_list_or_blank_line(doc: str, found: str) -> None:
    assert paragraph(doc) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Uses :class:`~pkg.mod.Reader` and :py:meth:`close`", "Uses Reader and close"),
        ("See :ref:`the text <target>` now", "See target now"),
        ("Takes ``x`` or `y`, and `z <http://h>`_", "Takes x or y, and z"),
        ("A **strong** and *soft* and _low_ word", "A strong and soft and low word"),
        ("snake_case_name and __init__ stay", "snake_case_name and __init__ stay"),
        ("2 * 3 * 4 stays", "2 * 3 * 4 stays"),
        ("A [link](http://h/x) and [`Foo`] and [text][1]", "A link and Foo and text"),
        ("Gets {@code List<String>} of {@link a.b.C#size() how many}", "Gets List<String> of how many"),
        ("Gets {@link a.b.C#size}, {@inheritDoc}", "Gets size,"),
        ('Gets <see cref="T:X.Order"/> by <paramref name="key"/>', "Gets Order by key"),
        ("<b>Bold</b> &lt;tag&gt; &amp; more", "Bold <tag> & more"),
        ("Reads @p x and \\c y", "Reads x and y"),
        ("Cited [1]_ here", "Cited here"),
    ],
)
def test_markup_goes_and_its_words_stay(text: str, found: str) -> None:
    assert plain(text) == found


@pytest.mark.parametrize(
    ("sentence", "names", "found"),
    [
        # the name itself
        ("read_lines gives each line of a file.", ["read_lines"], "gives each line of a file"),
        ("BoundedCache is a cache that forgets.", ["BoundedCache"], "a cache that forgets"),
        ("A Client manages the connections.", ["Client"], "manages the connections"),
        ("Calls Reader.read_all() twice a day.", ["read_all", "Reader.read_all"], "Calls twice a day"),
        ("Opens the file and may read it.", ["read"], "Opens the file and may read it"),
        ("read the whole file at once.", ["read"], "the whole file at once"),
        ("Like `read` but for the last line.", ["read"], "Like but for the last line"),
        ("Read the whole file at once.", ["read"], "Read the whole file at once"),
        ("Do not thread_lock the rest.", ["lock"], "Do not thread_lock the rest"),
        # set phrases at the beginning
        ("Returns the size of the cache.", [], "the size of the cache"),
        ("Return whether it is empty.", [], "whether it is empty"),
        ("This function is used to split a line.", [], "split a line"),
        ("This helper method will split a line.", [], "split a line"),
        ("A function that splits a line.", [], "splits a line"),
        ("This method returns the split line.", [], "the split line"),
        ("Splits what this function returns.", [], "Splits what this function returns"),
        # ends
        ("Splits a line: ", [], "Splits a line"),
        ("Is it split already?", [], "Is it split already?"),
        ("Lists notes without links (see ).", [], "Lists notes without links"),
        ("Lives in .config/x now.", [], "Lives in .config/x now"),
    ],
)
def test_a_draft_is_the_sentence_without_name_and_set_phrases(
    sentence: str, names: list[str], found: str
) -> None:
    assert draft(sentence, names) == found


def test_what_was_cut_out_of_a_sentence_takes_its_pointer_along() -> None:
    assert draft("is a set of patterns, please see also", cut=True) == "a set of patterns"
    assert draft("is a set of patterns") == "is a set of patterns"


PIECES = [
    "read_lines",
    "Reader",
    " ",
    " ",
    ".",
    "`",
    "``",
    "(",
    ")",
    "*",
    "_",
    ":",
    "a",
    "the ",
    "[",
    "]",
    "::",
    "Returns ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_draft_holds_a_name_that_only_code_has(text: str) -> None:
    """Whatever stands around it: as a word of its own it is gone."""
    found = draft(text, ["read_lines"]).replace("(", " ").replace(")", " ").split()
    assert "read_lines" not in found


def test_a_sentence_without_end_is_looked_at_for_a_while_only() -> None:
    assert len(draft("word " * MOST)) <= MOST


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("splits a line", "short"),
        ("splits – a – line", "short"),
        ("", "short"),
        ("splits a line twice", None),
        ("See base class for details", "generic"),
        ("TODO write something useful here", "generic"),
        ("Creates a new instance of this class", "generic"),
        ("Initialize a new instance", "generic"),
        ("Abstract thing that is a base class", "generic"),
        ("what it is and how", "generic"),
        ("Creates a new connection to the peer", None),
    ],
)
def test_what_asks_for_nothing_is_refused(text: str, why: str | None) -> None:
    assert refusal(text) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Skips masked operations due to", "cut"),
        ("Turns the signing key of the", "cut"),
        ("Loads a shared library using", "cut"),
        ("Draws an item from a list of", "cut"),
        ("Which key the host will sign in", None),
        ("Tables of the second volume: Appendix A", None),
        ("Says of each table what it is", None),
    ],
)
def test_round2_d1_what_ends_in_a_function_word_was_cut(text: str, why: str | None) -> None:
    """D1: a name or a link was taken from its end."""
    assert refusal(text) == why
