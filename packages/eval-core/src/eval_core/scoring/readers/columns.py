"""What a grade, a score and the columns of a line are: one rule for every form of rankings and judgements.

A grade is a whole number of at most 9 digits, with a sign or without, and may be written `1.0`; what is below 1 is
judged and not relevant. A fraction is refused: cutting 0.5 to 0 would be a judgement of ours.

A run's line has six columns, of which the first five are read; a tag of several words is none of more columns, as in
trec_eval. Where the word behind the score is a number, too, the line is refused: an id with a space in it shifts the
columns just so.

A line that begins with `#` is a comment, as in trec_eval. A query id that begins with `#` can be told in JSON, and in
BEIR's three fields between tabs, which no comment has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

BEIR_HEADER = b"query-id\tcorpus-id\tscore"

#: What a grade has to be, for messages.
GRADE_RULE = "a whole number of at most 9 digits; below 1 is not relevant"

_GRADE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*)?")


def grade_of(value: object) -> int | None:
    """A grade, of its text or of a number in JSON; None where it is no grade."""
    match = _GRADE.fullmatch(str(value))
    return int(match[1]) if match else None


def score_of(word: bytes) -> float | None:
    """A score; None where it is no number, or NaN."""
    try:
        value = float(word)
    except ValueError:
        return None
    return None if b"_" in word or math.isnan(value) else value


def is_comment(line: bytes) -> bool:
    """Whether a line of columns or of JSON is a comment."""
    return line.lstrip().startswith(b"#")


def has_run_columns(words: Sequence[bytes], line: bytes) -> bool:
    """Whether the words of a line can be the columns of a run: `query Q0 document rank score tag`."""
    # Behind a CR may be another line.
    return len(words) == 6 or (len(words) > 6 and score_of(words[5]) is None and b"\r" not in line.strip())


def is_run_line(words: Sequence[bytes], line: bytes) -> bool:
    """Whether the words of a line are the columns of a run, the score being a number or NaN."""
    try:
        return has_run_columns(words, line) and float(words[4]) is not None
    except ValueError:
        return False


def is_judgement(words: Sequence[bytes]) -> bool:
    """Whether these are the four columns of judgements: `query 0 document grade`."""
    return len(words) == 4 and words[3].isascii() and grade_of(words[3].decode()) is not None
