"""The words of a text: any script, marks never cut, case folded from either side."""

from __future__ import annotations

import pytest

from eval_core.sets.words import _SIMPLE, words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The VPN, deferred.", ["the", "vpn", "deferred"]),
        ("C++ and c#, not C", ["c++", "and", "c#", "not", "c"]),
        ("C++11 in (C++)", ["c++", "11", "in", "c++"]),
        ("R or a", ["r", "or", "a"]),
        ("notepad++ a+b page#section c#sharp", ["notepad", "a", "b", "page", "section", "c", "sharp"]),
        ("snake_case CamelCase v1.2", ["snake_case", "camelcase", "v1", "2"]),
        ("Übergröße Ёлка 日本語", ["übergrösse", "ёлка", "日", "本", "語"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("日本の本 ライブラリー", ["日", "本", "の", "本", "ライブラリー"]),
        ("สวัสดี ครับ", ["สวัสดี", "ครับ"]),
        ("\u0301 \u200d _", ["_"]),
        ("-- … \n", []),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    assert words(text) == tokens


@pytest.mark.parametrize("text", ["हिन्दी", "বাংলা", "தமிழ்", "שָׁלוֹם", "عَرَبِيّ", "မြန်မာ", "e\u0323\u0302x"])
def test_round2_n2_a_mark_never_cuts_a_word(text: str) -> None:
    """N2: scripts that write vowels as combining marks keep their words whole."""
    assert len(words(f"{text}, {text}!")) == 2
    assert len(set(words(f"{text} {text}"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("İstanbul", "istanbul"),
        ("ISTANBUL", "istanbul"),
        ("STRASSE", "Straße"),
        ("ΟΔΟΣ", "οδος"),
        ("ŉ", "ʼn"),
        ("Ǆ", "ǆ"),
    ],
)
def test_round2_n2_case_folds_the_same_from_either_side(one: str, other: str) -> None:
    """N2: a query finds a document whichever of the two is written with capitals."""
    assert words(one) == words(other)


def test_simple_and_other_texts_are_cut_by_one_rule() -> None:
    """N2: the short way gives what the long way gives, which a letter of another script asks for: for each character,
    beside letters, digits, signs and itself."""
    text = "C++ x.y it's a#b c# snake_case v1.2 __init__ C++11 #tag"
    assert [*words(text), "क"] == words(f"{text} क")
    simple = [chr(code) for code in range(0x20000) if _SIMPLE.fullmatch(chr(code))]
    assert len(simple) > 4000
    for one in simple:
        beside = f"{one} a{one}b {one}++ {one}# {one}#x 1{one}_{one} x++{one} x#{one} i{one} {one}{one}"
        assert [*words(beside), "क"] == words(f"{beside} क"), (one, beside)
        bare = f"{one} A{one}b Z{one} 1{one}_{one} {one}{one}"
        assert [*words(bare), "क"] == words(f"{bare} क"), (one, bare)
