"""The words of a text in any script: what lexical retrievers index, and what overlap is measured in.

A word is a run of letters, digits, underscores and the marks that belong to them, so that a vowel sign of Devanagari
does not cut a word in six. A Han character or a Hiragana one is a word of its own, as in Unicode's default word
boundaries (UAX 29), since nothing but a dictionary says where a word of those scripts ends; a run of Katakana is one.
Scripts that are written without spaces and have no such rule (Thai, Lao, Khmer) give one word a run. A single letter
keeps a `++` or `#` behind it: C++ and C# are not the word "c", and the `#` of `page#section` separates.

Case is folded the same way from either side, and texts are composed (NFC): a word that is typed in two ways is one.
"""

from __future__ import annotations

import re
import unicodedata

import regex

#: Raised by one when any word of any text changes: a part of the system key of what indexes words.
VERSION = "2"

#: What is no mark, has no rule of its own above, and is a word to one library as to the other: letters of Latin, Greek
#: and Cyrillic, and signs that stand among them. A text of nothing else needs no more than the next two patterns,
#: which take a fifth of the time of the last; the first, where there is no sign that a letter keeps, takes less still.
_SIMPLE = re.compile(
    "[\0-\x7f\xa0-\xb1\xb4-\xb8\xba\xbb\xbf-\u02af\u0386-\u0481\u048a-\u052f\u1e00-\u1eff"
    "\u2010-\u2029\u2030-\u203e\u20a0-\u20c0\u2122\u2190-\u21ff\u2500-\u2775\u2794-\u27bf\U0001f300-\U0001faff]*+"
)
_PLAIN = re.compile(r"\w+")
_SIGNED = re.compile(r"\b[^\W\d_](?:\+\+|#(?!\w))|\w+")
_BEYOND_ASCII = re.compile("[^\0-\x7f]")

#: ASCII with its case folded, and a space for what is no part of a word: cut at spaces, a text takes half the time.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)}

_ONE = r"[\p{Han}\p{Hiragana}]\p{M}*"
_KATAKANA = r"[\p{Katakana}\u30FC]+"
_OTHER = r"(?:(?![\p{Han}\p{Hiragana}\p{Katakana}\u30FC])[\w\p{M}\p{Join_Control}])+"
_WORDS = regex.compile(rf"\b\p{{L}}(?:\+\+|\#(?!\w))|{_KATAKANA}|{_ONE}|{_OTHER}")


def folded(text: str) -> str:
    """The text with its case folded, and composed: `İstanbul` and `ISTANBUL` are `istanbul`, `STRASSE` is `Straße`."""
    # Case folding leaves a dot above the i of a Turkish capital, which the small letter does not have.
    return unicodedata.normalize("NFC", text.casefold().replace("i\u0307", "i"))


def words(text: str) -> list[str]:
    """The words of a text in order, folded; one-character words included."""
    if not text.isascii():
        if not _SIMPLE.fullmatch(text):
            return [
                word for word in _WORDS.findall(folded(text)) if word[0] == "_" or any(map(str.isalnum, word))
            ]
        for sign in set(_BEYOND_ASCII.findall(text)):
            if not sign.isalnum():
                text = text.replace(sign, " ")
    if "#" in text or "++" in text:
        return _SIGNED.findall(folded(text))
    return text.translate(_ASCII).split() if text.isascii() else _PLAIN.findall(folded(text))


def blank(text: str) -> bool:
    """Whether nothing of a text can be seen: white space, characters without width, controls, a byte-order mark."""
    return all(sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf") for sign in text)


def version() -> str:
    """The rule, and the library that knows the scripts: equal versions give equal words."""
    from importlib.metadata import version as installed

    return f"{VERSION} (regex {installed('regex')})"
