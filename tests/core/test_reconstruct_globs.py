"""Globs: `**` crosses folders, `*` and `?` do not, sets are single characters, everything else is itself."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.reconstruct.globs import Globs, glob_fault, translate


@pytest.mark.parametrize(
    ("pattern", "matched", "unmatched"),
    [
        ("**", ["a", "a/b", ".hidden", "a/.b/c", "a\nb/c"], []),
        ("*", ["a", "a.py", ".hidden", "a\nb"], ["a/b"]),
        ("**/*.py", ["x.py", "a/x.py", "a/b/x.py", ".py"], ["x.pyc", "x.py/y", "xpy"]),
        ("docs/**", ["docs/a", "docs/a/b"], ["docs", "docs/", "docsa", "x/docs/a"]),
        ("docs", ["docs"], ["docs/a", "a/docs"]),
        ("docs/*", ["docs/a"], ["docs/a/b", "docs"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "a/b/c"]),
        ("a/**/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("**/test/**", ["test/a", "x/test/a", "x/test/a/b"], ["test", "x/test", "contest/a"]),
        ("a**b", ["ab", "axb"], ["a/b", "ax/b"]),
        ("?.md", ["a.md", "é.md"], [".md", "ab.md", "/.md"]),
        ("a?b", ["axb"], ["a/b", "ab"]),
        ("[abc].md", ["a.md", "c.md"], ["d.md", "ab.md"]),
        ("[a-c]", ["a", "b", "c"], ["d", "-", "B"]),
        ("[!a-c]", ["d", "-"], ["a", "/", ""]),
        ("[^a]", ["^", "a"], ["b"]),
        ("x[!y]z", ["xaz"], ["x/z", "xyz"]),
        ("x[+-9]z", ["x0z", "x+z"], ["x/z", "x:z"]),
        ("[]]", ["]"], ["[", "[]]"]),
        ("[!]]", ["a", "["], ["]"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[c-a]", [], ["a", "b", "c", "-"]),
        ("[!c-a]", ["a", "b"], ["/"]),
        ("[a", ["[a"], ["a"]),
        ("[!", ["[!"], ["a"]),
        ("[[]x]", ["[x]"], ["x]"]),
        ("a.b+c(d)|e", ["a.b+c(d)|e"], ["aXb+c(d)|e", "e"]),
        ("a\\*", ["a\\", "a\\b"], ["a*"]),
        ("[&&~~||]", ["&", "~", "|"], ["a", "-"]),
        ("ünï/*", ["ünï/ø"], ["uni/o"]),
    ],
)
def test_a_glob_matches_whole_paths(pattern: str, matched: list[str], unmatched: list[str]) -> None:
    globs = Globs([pattern])
    assert [path for path in matched if not globs.includes(path)] == []
    assert [path for path in unmatched if globs.includes(path)] == []


def test_any_glob_of_several_suffices_and_none_matches_nothing() -> None:
    globs = Globs(["*.md", "*.txt"], [])
    assert globs.includes("a.md") and globs.includes("a.txt") and not globs.includes("a.py")
    assert not globs.excludes("a.md")


@pytest.mark.parametrize(
    ("pattern", "mend"),
    [
        ("", "leave it out"),
        ("docs/", "write 'docs/**'"),
        ("/docs/*", "write 'docs/*'"),
        ("./docs/*", "the part '.'"),
        ("docs/../x", "the part '..'"),
        ("docs//x", "the part ''"),
    ],
)
def test_a_glob_that_matches_no_path_is_told_with_its_mend(pattern: str, mend: str) -> None:
    assert mend in (glob_fault(pattern) or "")


@pytest.mark.parametrize("pattern", ["**", "docs/**", "*.md", ".github/*", "..x", "a/.../b"])
def test_a_plain_glob_has_no_fault(pattern: str) -> None:
    assert glob_fault(pattern) is None


def reference(pattern: str, path: str) -> bool:
    """Match by trying every way, part by part and letter by letter: slow and plain."""

    @cache
    def parts(globs: tuple[str, ...], names: tuple[str, ...]) -> bool:
        if not globs:
            return not names
        if globs[0] == "**":
            if len(globs) == 1:
                return bool(names)
            return parts(globs[1:], names) or (bool(names) and parts(globs, names[1:]))
        return bool(names) and letters(globs[0], names[0]) and parts(globs[1:], names[1:])

    @cache
    def letters(glob: str, name: str) -> bool:
        if not glob:
            return not name
        if glob[0] == "*":
            return letters(glob[1:], name) or (bool(name) and letters(glob, name[1:]))
        if glob[0] == "[":
            start = 2 if glob[1:2] == "!" else 1
            end = glob.find("]", start + 1)
            if end > 0:
                return (
                    bool(name)
                    and member(glob[start:end], name[0]) is (start == 1)
                    and letters(glob[end + 1 :], name[1:])
                )
        return bool(name) and glob[0] in ("?", name[0]) and letters(glob[1:], name[1:])

    def member(body: str, letter: str) -> bool:
        while body:
            if len(body) >= 3 and body[1] == "-":
                if body[0] <= letter <= body[2]:
                    return True
                body = body[3:]
            else:
                if body[0] == letter:
                    return True
                body = body[1:]
        return False

    return parts(tuple(pattern.split("/")), tuple(path.split("/")))


parts_of_globs = st.one_of(st.just("**"), st.text("ab*?[]!-^.", min_size=1, max_size=5))
parts_of_paths = st.text("ab]-!^.[", min_size=1, max_size=4)


@settings(max_examples=400, deadline=None)
@given(st.lists(parts_of_globs, min_size=1, max_size=4), st.lists(parts_of_paths, min_size=1, max_size=4))
def test_the_translation_agrees_with_a_matcher_that_tries_every_way(
    globs: list[str], names: list[str]
) -> None:
    pattern, path = "/".join(globs), "/".join(names)
    assert bool(re.fullmatch(translate(pattern), path)) is reference(pattern, path)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab.-", min_size=1, max_size=3), min_size=1, max_size=4), st.data())
def test_a_glob_made_from_a_path_matches_it(names: list[str], data: st.DataObject) -> None:
    """Random globs seldom match: here each part is loosened in a way that keeps the match."""
    parts: list[str] = []
    for name in names:
        cut = data.draw(st.integers(0, len(name)))
        stars = [name, "*", name[:cut] + "*", "*" + name[cut:], "?" * len(name), f"[{name[0]}!]" + name[1:]]
        parts += [*data.draw(st.sampled_from([[], ["**"]])), data.draw(st.sampled_from(stars))]
    pattern, path = "/".join(parts), "/".join(names)
    assert reference(pattern, path)
    assert re.fullmatch(translate(pattern), path)
