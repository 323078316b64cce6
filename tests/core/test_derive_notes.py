"""`eval-core derive notes`: a set of drafts from the headings, links and front matter of Markdown notes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from core_support import Done, call
from derive_support import content, drafts, judged, queries
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.authoring.derive.markdown import Note, read_note
from eval_core.authoring.derive.notes import GENERIC, _Known
from eval_core.authoring.derive.result import Drafted
from eval_core.authoring.derive.wording import MARK
from eval_core.cli import main
from eval_core.sets.dataset import load
from eval_core.sets.definition import Folder, read_definition

NOTES = {
    "index.md": """# Index

Welcome. Ask [[backups|how backups are kept safe]] or read on.
See [[backups]] first, then [[deploy/staging]].

- [[rotation]] - Changing the signing key every quarter
- [[nowhere]] leads to no note at all

```
# No heading at all
[[backups|not a link in here]]
```
""",
    "backups.md": """---
title: Where copies of the data go
aliases: [nightly copies, "Backups"]
tags: [a]
---
# Backups

## Restoring a single table

Twice a year we try it.

Overview
--------

Restoring everything at once
----------------------------

The host that `[[keys]]` names is told by [[rotation#Who does it|its page on keys]], not here. Back to [[#top]],
or to [[backups|the page about copies]] itself.
""",
    "keys/rotation.md": """# Key rotation

## See also

<!-- ## Not shown -->
Nightly dumps are signed too, see [[backups]].
""",
    "deploy/staging.md": "# Staging\n\n## Restoring a single table\n",
    "picture.png": "",
    ".git/x.md": "# Not a note of ours\n",
}

#: Worked by hand: in byte order of the path that each comes from, then by line.
DRAFTS = [
    ("title", "Where copies of the data go", ["notes/backups.md"]),
    ("title", "nightly copies", ["notes/backups.md"]),
    ("heading", "Restoring a single table", ["notes/backups.md", "notes/deploy/staging.md"]),
    ("heading", "Restoring everything at once", ["notes/backups.md"]),
    ("link", "its page on keys", ["notes/keys/rotation.md"]),
    ("link", "how backups are kept safe", ["notes/backups.md"]),
    ("link", "Changing the signing key every quarter", ["notes/keys/rotation.md"]),
    ("heading", "Key rotation", ["notes/keys/rotation.md"]),
]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "notes"


def derive(where: Path, *arguments: str | Path) -> Done:
    return call(main, "derive", "notes", *arguments, where=where)


def test_headings_titles_and_links_become_queries(notes: Path, tmp_path: Path) -> None:
    done = derive(tmp_path, "--path", "notes", "-o", "set")
    assert (done.code, done.err) == (0, "")
    assert drafts(tmp_path / "set") == DRAFTS
    by_text = {query["text"]: query["metadata"] for query in queries(tmp_path / "set")}
    assert by_text["Restoring a single table"] == {
        "category": "heading",
        "source": "heading",
        "origin": ["backups.md:8", "deploy/staging.md:3"],
    }
    assert by_text["its page on keys"]["origin"] == ["backups.md:18 [[rotation]]"]


def test_the_note_that_holds_a_sentence_is_not_what_it_asks_for(notes: Path, tmp_path: Path) -> None:
    """The sentence stands in the linking note word for word, which would be found in place of the target."""
    derive(tmp_path, "--path", "notes", "-o", "set")
    excluded = {
        query["text"]: query["metadata"]["exclude"]
        for query in queries(tmp_path / "set")
        if "exclude" in query["metadata"]
    }
    assert excluded == {
        "its page on keys": ["notes/backups.md"],
        "how backups are kept safe": ["notes/index.md"],
        "Changing the signing key every quarter": ["notes/index.md"],
    }


def test_the_set_is_reconstructed_and_loads(notes: Path, tmp_path: Path) -> None:
    derive(tmp_path, "--path", "notes", "-o", "deep/set", "--name", "kb")
    definition = read_definition(tmp_path / "deep/set")
    assert definition is not None and definition.corpus is not None
    assert (definition.name, definition.kind) == ("kb", "notes")
    assert definition.corpus.source == (
        Folder(type="dir", name="kb", path="../../notes", include=("**/*.md", "**/*.markdown")),
    )
    assert call(main, "reconstruct", "deep/set", where=tmp_path).code == 0
    dataset = load(tmp_path / "deep/set", corpus=tmp_path / ".eval/corpora/kb/corpus.jsonl", keys=["path"])
    assert dataset.documents == 4
    paths = {dataset.attributes[name]["path"] for grades in dataset.judgements.values() for name in grades}
    assert {(tmp_path / "notes" / path.removeprefix("kb/")).is_file() for path in paths} == {True}


def test_deriving_twice_gives_the_same_bytes(notes: Path, tmp_path: Path) -> None:
    for out in ("one", "two"):
        assert derive(tmp_path, "--path", notes, "-o", out).code == 0
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_the_answer_counts_what_became_no_draft(notes: Path, tmp_path: Path) -> None:
    done = derive(tmp_path, "--path", "notes", "-o", "set", "--format", "json", "--limit", "5")
    found = Drafted.model_validate_json(done.out)
    assert (found.documents, found.queries, found.found, found.commit) == (4, 5, 8, None)
    # short: Overview. generic: the heading "See also". listed: both links of "See … first, then …", "see [[backups]]".
    # named: three first headings and the alias "Backups". unresolved: [[nowhere]].
    assert found.dropped == {
        "short": 1,
        "generic": 1,
        "cut": 0,
        "listed": 3,
        "named": 4,
        "apart": 0,
        "many": 0,
        "unresolved": 1,
    }
    done = derive(tmp_path, "--path", "notes", "-o", "other")
    assert done.out.startswith(
        "derive  notes   4 documents, unpinned   8 drafts: 3 heading, 3 link, 2 title\n"
    )
    assert "4 the same as a note's name" in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("files", "code", "told"),
    [
        ({"a.md": "Only a text.\n"}, 1, "nothing to draft from in 1 notes"),
        ({"a.md": "# A\n\n## Overview\n"}, 1, "nothing to draft from"),
        ({"a.txt": "# Heading of it\n"}, 2, "matched none of 1 file"),
        ({}, 2, "there is no file in it"),
    ],
)
def test_no_draft_at_all_is_an_error_and_nothing_is_written(
    files: dict[str, str], code: int, told: str, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    for name, text in files.items():
        (tmp_path / "notes" / name).write_text(text)
    done = derive(tmp_path, "--path", "notes", "-o", "set")
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert os.listdir(tmp_path) == ["notes"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = derive(tmp_path, "--path", "gone", "-o", "set")
    assert done.code == 3
    assert "'gone' does not exist\n  give its place: --path DIR" in done.err


# ------------------------------------------------------------- reading a note


def headings(note: Note) -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in note.headings]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# One\n## Two ##\n###### Six\n####### Seven\n#None", [(1, "One"), (2, "Two"), (3, "Six")]),
        ("One\n===\n\nTwo\nlines\n---\n", [(1, "One"), (4, "Two lines")]),
        ("- item\n---\n> quote\n===\n", []),
        ("para\n\n---\n\n***\n", []),
        ("```\n# no\n```\n# yes\n~~~~ md\n# no\n~~~\n# no\n~~~~\n# also", [(4, "yes"), (10, "also")]),
        ("- ```\n  # no\n  ```\n# yes", [(4, "yes")]),
        ("```\n# never closed", []),
        ("    # code\n\n# yes", [(3, "yes")]),
        ("<!-- # no\n# no\n--># yes\n# <!-- no --> too", [(3, "yes"), (4, "too")]),
        ("A comment begins with `<!--` there\n# yes", [(2, "yes")]),
        ("---\ntitle: x\n---\n# yes", [(4, "yes")]),
        ("---\nnever closed\n", []),
        ("# yes\r\nTwo\r\n---\r\n", [(1, "yes"), (2, "Two")]),
        ("#\n##\n", []),
    ],
)
def test_headings_are_those_that_markdown_has(text: str, found: list[tuple[int, str]]) -> None:
    assert headings(read_note(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ask [[a]] for it.", [(1, "a", "", "Ask for it.")]),
        ("Ask [[a|the first]] now.", [(1, "a", "the first", "Ask now.")]),
        ("Ask [[a#part|the first]] now.", [(1, "a", "the first", "Ask now.")]),
        ("Ask [[a|the first#part]] now.", [(1, "a", "the first", "Ask now.")]),
        ("Ask [[a|all of C# now]].", [(1, "a", "all of C# now", "Ask .")]),
        ("Ask [[a#^block]].", [(1, "a", "", "Ask .")]),
        (
            "One.\nTwo [[x/my-page]] and\n[[b|bee]] here. Three.",
            [
                (2, "x/my-page", "", "Two and bee here."),
                (3, "b", "bee", "Two my page and here."),
            ],
        ),
        ("Ask **[[a]]** - gladly", [(1, "a", "", "Ask - gladly")]),
        (
            "`[[a]]` is code, ``[[b]] ` `` too, [[c]] is none",
            [(1, "c", "", "`[[a]]` is code, ``[[b]] ` `` too, is none")],
        ),
        ("Shown: ![[a]] and [[b]]", [(1, "b", "", "Shown: and")]),
        ("[[#here]] [[]] [[ ]] [a](b)", []),
        (
            "| name | [[a\\|the first]] of all |\n|---|---|\n| x [[b]] y | z |",
            [
                (1, "a", "the first", "of all"),
                (3, "b", "", "x y"),
            ],
        ),
        ("| [[a|b]] c |", [(1, "a", "b", "c")]),
        ("- one [[a]]\n- two\n  more [[b]]\n", [(1, "a", "", "one"), (3, "b", "", "two more")]),
        ("- [ ] do [[a]] soon", [(1, "a", "", "do soon")]),
        ("> said [[a]]\n> again", [(1, "a", "", "said again")]),
        ('[a]: x "y [[a]]"\n\n    [[b]]\n', []),
        ("- x\n\n    [[b]] in a list", [(3, "b", "", "in a list")]),
        ("# Head [[a]] line", [(1, "a", "", "Head line")]),
    ],
)
def test_links_come_with_the_sentence_around_them(text: str, found: list[tuple[int, str, str, str]]) -> None:
    links = read_note(text).links
    said = [" ".join(one.sentence.replace(MARK, "").split()) for one in links]
    assert [(one.line, one.target, one.alias, text) for one, text in zip(links, said, strict=True)] == found
    assert all(one.sentence.count(MARK) == 1 for one in links)


@pytest.mark.parametrize(
    ("front", "found"),
    [
        ("title: The one", ["The one"]),
        ('title: "The: one"\nother: x', ["The: one"]),
        ("aliases: [one two, 'three']", ["one two", "three"]),
        ("alias: one, two", ["one", "two"]),
        ('aliases:\n  - one two\n  - "three"\ntags:\n  - no', ["one two", "three"]),
        ("title: |\n  folded", []),
        ("title:", []),
        ("Title: One # remark", ["One"]),
    ],
)
def test_title_and_aliases_are_read_from_front_matter(front: str, found: list[str]) -> None:
    assert [one.text for one in read_note(f"---\n{front}\n---\n").names] == found


@given(
    st.lists(
        st.sampled_from(
            [
                "[[",
                "]]",
                "a",
                "|",
                "#",
                "# ",
                "\n",
                "---\n",
                "```",
                "`",
                "<!--",
                "-->",
                "- ",
                "> ",
                ". ",
                "!",
                "    ",
                "===\n",
                "\r\n",
                "\ue0001\ue001",
                "title: x\n",
            ]
        ),
        max_size=30,
    ).map("".join)
)
@settings(deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    note = read_note(text)
    last = text.count("\n") + 1
    numbers = [one.line for one in (*note.headings, *note.names)] + [one.line for one in note.links]
    assert all(1 <= number <= last for number in numbers)
    assert not any("[[" in one.target or "\n" in one.sentence for one in note.links)


@pytest.mark.parametrize(
    ("line", "drafts"),
    [
        ("[[keys]] - how a secret is turned.", {"how a secret is turned": ["keys"]}),
        ("[[keys]] turn a secret every night.", {"… turn a secret every night": ["keys"]}),
        ("So it is. [[keys]] turn a secret every night.", {"… turn a secret every night": ["keys"]}),
        (
            "- [[keys]] turn a secret. [[dumps]] hold each of the tables.",
            {"… hold each of the tables": ["dumps"]},
        ),
        ("[[keys]] turn a secret daily. [[dumps]] hold all the tables.", {"… turn a secret daily": ["keys"]}),
        ("Ask [[keys|who turns a secret]] or [[dumps|where tables lie]].", {"who turns a secret": ["keys"]}),
        ("Ask [[keys]] how a secret is turned.", {}),
        ("How a secret is turned ([[keys]]).", {}),
        ("How a secret is turned (see [[keys]]) at night.", {}),
        ("[[keys]] turn the secret that the nightly job is signed with.", {}),
        ("[[keys]], [[dumps]] and [[cold storage]] here.", {}),
        (
            "- [[keys]]: how a secret is turned, then [[dumps]] at night.",
            {"how a secret is turned, then dumps at night": ["keys"]},
        ),
        ("The secret is turned every night as told in [[keys]].", {}),
        ("The whole of it is explained by the [[keys]]", {}),
        ("Every secret is turned with the [[keys]] and the", {}),
        ("Examples: [[keys]], [[dumps]] and [[cold storage]].", {}),
    ],
)
def test_round2_d1_a_link_leaves_a_mark_and_no_half_sentence(
    tmp_path: Path, line: str, drafts: dict[str, list[str]]
) -> None:
    """D1: a line gives one draft, of a link that begins a sentence or has an alias; what is cut off is seen."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "index.md").write_text(f"# Keeping every secret safe\n\n{line}\n")
    for name in ("keys", "dumps", "cold storage"):
        (notes / f"{name}.md").write_text("Text.\n")
    assert derive(tmp_path, "--path", "notes", "-o", "set").code == 0
    truth = judged(tmp_path / "set")
    found = {
        q["text"]: truth[q["_id"]] for q in queries(tmp_path / "set") if q["metadata"]["source"] == "link"
    }
    assert found == {text: [f"notes/{name}.md" for name in names] for text, names in drafts.items()}


@pytest.mark.parametrize(
    ("name", "note", "judged_to"),
    [
        ("other", "Text.\n", ["index"]),
        ("other", "---\ntitle: Signing Keys\n---\n", ["other"]),
        ("other", "---\naliases: [x, signing keys]\n---\n", ["other"]),
        ("signing_keys", "Text.\n", None),
        ("other", "# Signing keys\n", ["other"]),
    ],
)
def test_round2_d1_a_heading_that_is_the_name_of_a_note_asks_for_that_note(
    tmp_path: Path, name: str, note: str, judged_to: list[str] | None
) -> None:
    """D1: it is not judged to the note that merely mentions it; the name of a file alone is no question."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "index.md").write_text("# Keeping every secret safe\n\n## Signing keys\n")
    (notes / f"{name}.md").write_text(note)
    assert derive(tmp_path, "--path", "notes", "-o", "set").code == 0
    truth = judged(tmp_path / "set")
    found = [truth[q["_id"]] for q in queries(tmp_path / "set") if q["text"].casefold() == "signing keys"]
    assert found == ([] if judged_to is None else [[f"notes/{one}.md" for one in judged_to]])


# ------------------------------------------------------------- what a link means


@pytest.mark.parametrize(
    ("note", "target", "found"),
    [
        ("index.md", "backups", "backups.md"),
        ("index.md", "backups.md", "backups.md"),
        ("index.md", "rotation", "keys/rotation.md"),
        ("index.md", "Rotation", "keys/rotation.md"),
        ("index.md", "keys/rotation", "keys/rotation.md"),
        ("x/todo.md", "todo", "x/todo.md"),
        ("x/other.md", "todo", "x/todo.md"),
        ("index.md", "todo", None),
        ("index.md", "y/todo", "y/todo.md"),
        ("x/todo.md", "../y/todo", "y/todo.md"),
        ("x/todo.md", "./todo", "x/todo.md"),
        ("x/todo.md", "../todo", None),
        ("x/todo.md", "/backups", "backups.md"),
        ("x/todo.md", "/todo", None),
        ("x/todo.md", "otation", None),
        ("index.md", "long", "deep/long.markdown"),
        ("index.md", "picture.png", None),
        ("index.md", "", None),
        ("x/todo.md", "../../../etc", None),
    ],
)
def test_a_link_means_a_note_of_the_same_folder_else_the_only_one_of_its_name(
    note: str, target: str, found: str | None
) -> None:
    paths = [
        "index.md",
        "backups.md",
        "keys/rotation.md",
        "x/todo.md",
        "x/other.md",
        "y/todo.md",
        "deep/long.markdown",
    ]
    assert _Known({path: path for path in paths}).resolve(note, target) == found


def test_generic_headings_are_written_as_they_are_compared() -> None:
    assert all(entry == " ".join(entry.casefold().split()) and entry for entry in GENERIC)


# ------------------------------------------------------------- notes of others


def test_documentation_that_others_wrote_becomes_a_set(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Published pages with wiki links: 86 notes; what is expected of some of them was read off the pages."""
    source = shared_data("notes/foam/docs")
    done = derive(tmp_path, "--path", source, "--name", "foam", "-o", "set", "--format", "json")
    assert done.code == 0, done.err
    found = Drafted.model_validate_json(done.out)
    assert found.documents == 86
    assert call(main, "reconstruct", "set", where=tmp_path).code == 0
    dataset = load(tmp_path / "set", corpus=tmp_path / ".eval/corpora/foam/corpus.jsonl")
    assert len(dataset.queries) == found.queries > 300
    truth = judged(tmp_path / "set")
    assert all((source / name.removeprefix("foam/")).is_file() for names in truth.values() for name in names)
    by_text = {query["text"]: truth[query["_id"]] for query in queries(tmp_path / "set")}
    assert by_text["Foam wants you to own your thoughts"] == ["foam/principles.md"]
    # user/recipes/recipes.md:29, "Coming from Obsidian? See [[migrating-from-obsidian]]", says nothing of its own.
    assert by_text["filter the graph"] == ["foam/user/features/resource-filters.md"]
    assert by_text["Adding references and side notes"] == ["foam/user/features/footnotes.md"]
    assert by_text["VS Code extensions that pair well with Foam"] == [
        "foam/user/getting-started/recommended-extensions.md"
    ]
    assert not {"Overview", "See also", "Table of Contents"} & set(by_text)
    assert Counter(query["metadata"]["source"] for query in queries(tmp_path / "set")) == found.sources
