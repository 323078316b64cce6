"""TREC run files, a query at a time: read in blocks, verified by counting, and every fault with its line.

A line has six columns with white space between: query, a column that is ignored (Q0), document, rank, score, tag
(ignored, of one word or several); `columns` has the rules. The scores order the documents, as in trec_eval; whether the
ranks contradict them is told. White space is ASCII's, an id is what stands between: any UTF-8 text. Files are as in
`readers`.

Speed comes from not looking at single lines where all is as usual: the lines of a query are one block, found by
bisection, and cut into documents, ranks and scores by one split. That the block is what it was taken for is verified by
counting, exactly; where it is not, its lines are read one by one. One block is in memory at a time, unless the lines of
a query lie apart: then `gathered` collects the file first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import neg
from pathlib import Path
from typing import NamedTuple

from eval_core.errors import CouldNot, EvalError
from eval_core.scoring.readers.columns import has_run_columns, is_comment, is_judgement, score_of
from eval_core.scoring.readers.source import CHUNK, LONGEST, Listing, Source, decoded, opened, shown


class Ungrouped(Exception):
    """The lines of a query lie apart."""


class Malformed(Exception):
    """A line is no line of a run; `explanation` finds and words it."""


class Block(NamedTuple):
    """One query of a run: the best score of each document, these scores rising, how many repeats were dropped, and
    whether the rank column contradicts the scores."""

    query: bytes
    scores: dict[bytes, float]
    rising: list[float]
    duplicates: int
    contradicted: bool


def grouped(source: Source) -> Iterator[Block]:
    """Yield the queries of a run in the file's order, one at a time.

    Raises:
        Ungrouped: a query comes again after another; start over with `gathered`.
        Malformed: a line is no line of a run.
    """
    seen: set[bytes] = set()
    for query, lines in _blocks(source):
        if is_comment(query):
            # Between two comments may be what is none: a block is only known by its ends.
            if all(is_comment(line) or not line.strip() for line in lines.split(b"\n")):
                continue
            raise Ungrouped
        if query in seen:
            raise Ungrouped
        seen.add(query)
        yield _fast(query, lines) or _slow(query, lines)


def gathered(source: Source) -> Iterator[Block]:
    """Yield the queries of a run whose lines lie anywhere, in the order of their first lines. Holds the file.

    Raises:
        Malformed: a line is no line of a run.
    """
    pieces: dict[bytes, list[bytes]] = {}
    query, start = b"", b"\n"
    for _, line in source.lines():
        if not line.startswith(start):
            words = line.split(None, 1)
            if not words or is_comment(line):
                continue
            query = words[0]
            start = line[: line.index(query) + len(query) + 1]
        pieces.setdefault(query, []).append(line)
    for query in list(pieces):
        lines = b"\n".join(pieces.pop(query)) + b"\n"
        yield _fast(query, lines) or _slow(query, lines)


def _blocks(source: Source) -> Iterator[tuple[bytes, bytes]]:
    """Yield (query, its lines with their newlines), taking it that they lie together.

    A block begins and ends with a line of its query; whether all between are, is for the caller to verify.
    """
    data, at, top = b"", 0, 0  # the buffer, where the block begins, and where the last whole line ends
    usual = 0
    while True:
        if at >= top:
            data, top = _more(source, data[at:])
            at = 0
            if not top:
                return
        newline = data.index(b"\n", at)
        words = data[at:newline].split(None, 1)
        if not words:
            at = newline + 1
            continue
        query = words[0]
        # With the white space after it: q1 is no beginning of q10.
        start = data[at : data.index(query, at) + len(query) + 1]
        end = stop = newline + 1
        while True:
            end = stop = _last(data, start, end, top, usual)
            if end < top:
                newline = data.index(b"\n", end)
                words = data[end:newline].split(None, 1)
                if words and words[0] != query:
                    break
                # A blank line, or one of this query with other white space.
                end = newline + 1
                stop = end if words else stop
            if end >= top:
                data, grown = _more(source, data[at:])
                end, stop, at = end - at, stop - at, 0
                if grown == end:
                    top = grown
                    break
                top = grown
        usual = stop - at
        yield query, data[at:stop]
        at = end


def _more(source: Source, rest: bytes) -> tuple[bytes, int]:
    """What is left with more behind it, and where its last whole line ends; a last line gets its newline."""
    while True:
        # Twice as much each time: a query of many lines is not copied over and over.
        data = source.read(max(CHUNK, len(rest)))
        if not data:
            if rest and not rest.endswith(b"\n"):
                rest += b"\n"
            return rest, len(rest)
        rest = rest + data if rest else data
        if (end := rest.rfind(b"\n") + 1) and end > len(rest) - len(data):
            return rest, end
        if len(rest) - end > LONGEST:
            raise source.too_long()


def _last(data: bytes, start: bytes, low: int, top: int, usual: int) -> int:
    """Where lines that begin with `start` stop, by bisection from `low`, the beginning of a line; first about where
    `usual` bytes more would end."""
    high = top
    probe, step = low + max(usual - 96, 0), 128
    bounded = False
    while low < high:
        if probe >= high:
            probe = high - 1 if not bounded else (low + high) // 2
        line = data.rfind(b"\n", low, probe) + 1 or low
        if data.startswith(start, line):
            low = data.index(b"\n", probe) + 1
            probe = (low + high) // 2 if bounded else low + step
        else:
            high, bounded = line, True
            probe = max((low + high) // 2, high - step)
        step *= 4
    return low


def _fast(query: bytes, lines: bytes) -> Block | None:
    """The block, if all its lines have the form of the first: `query Q0 document rank score tag` with the same Q0, tag
    and white space, and numbers that are finite. None where anything is otherwise."""
    first = lines[: lines.index(b"\n") + 1]
    words = first.split()
    if not has_run_columns(words, first):
        return None
    head = first[: len(first) - len(first.split(None, 2)[2])]
    tail = first[len(first[: len(first) - len(first.split(None, 5)[5])].rstrip()) :]
    after = first[len(head) + len(words[2]) :][:1]
    if after not in (b" ", b"\t") or not lines.endswith(tail):
        return None
    # From here: document, rank, score and newline, document, rank, score and newline, …, with `after` between.
    inner = lines[len(head) : -len(tail)]
    body = inner.replace(tail + head, b"\n" + after)
    tokens = body.split(after)
    documents, ranks, numbers = tokens[0::3], tokens[1::3], tokens[2::3]
    n = len(numbers)
    joined = b"".join(numbers)
    if (
        len(tokens) != 3 * n
        # Every newline was one between two lines of that form …
        or len(inner) - len(body) != (n - 1) * (len(tail) + len(head) - 2)
        or body.count(b"\n") != n - 1
        # … and ends a score: each line has its three tokens, no more, no fewer.
        or joined.count(b"\n") != n - 1
        or not ((counted := _counts_up(ranks)) or all(ranks))
        or b"\r" in body
        or (b"\t" if after == b" " else b" ") in body
        or b"\v" in body
        or b"\f" in body
        # float() takes 1_000, nan and inf, too.
        or b"_" in joined
        or b"n" in joined
        or b"N" in joined
        or not _is_utf8(lines)
    ):
        return None
    try:
        values = list(map(float, numbers))
    except ValueError:
        return None
    scores = dict(zip(documents, values, strict=True))
    if len(scores) != n or b"" in scores:
        return None
    # From falling, as files are, to rising: sorted as soon as looked at.
    values.reverse()
    given = values.copy()
    values.sort()
    usual = counted and given == values
    return Block(query, scores, values, 0, not usual and _contradicts(ranks, scores.values()))


#: The rank columns of most files, as far as one was needed: from 0 and from 1.
_COUNTED = {b"0": [b"0"], b"1": [b"1"]}


def _counts_up(ranks: Sequence[bytes]) -> bool:
    """Whether the ranks are 0, 1, 2, … or 1, 2, 3, …; told without reading a number."""
    known = _COUNTED.get(ranks[0])
    if known is None:
        return False
    known += [b"%d" % (int(known[0]) + place) for place in range(len(known), len(ranks))]
    return ranks == known[: len(ranks)]


def _contradicts(ranks: Sequence[bytes], scores: Iterable[float]) -> bool:
    """Whether a document of a better rank has a lower score than one of a worse; never where a rank is no number."""
    if len(set(ranks)) < 2:
        return False
    try:
        placed = sorted(zip(map(int, ranks), map(neg, scores), strict=True))
    except ValueError:
        return False
    falling = [score for _, score in placed]
    return falling != sorted(falling)


def _is_utf8(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _slow(query: bytes, lines: bytes) -> Block:
    """The block, line by line.

    Raises:
        Ungrouped: a line is of another query.
        Malformed: a line is no line of a run.
    """
    scores: dict[bytes, float] = {}
    ranks: list[bytes] = []
    given: list[float] = []
    for line in lines.split(b"\n"):
        words = line.split()
        if not words or is_comment(line):
            continue
        if words[0] != query:
            raise Ungrouped
        if not has_run_columns(words, line) or (score := score_of(words[4])) is None:
            raise Malformed
        ranks.append(words[3])
        given.append(score)
        if score > scores.get(words[2], -math.inf) or words[2] not in scores:
            scores[words[2]] = score
    if not _is_utf8(lines):
        raise Malformed
    repeats = len(given) - len(scores)
    return Block(query, scores, sorted(scores.values()), repeats, _contradicts(ranks, given))


def explanation(path: Path) -> EvalError:
    """What is wrong with a run file, line by line: the first 20 malformed lines, and how many more there are."""
    fault = Listing(path)
    with opened(path, "run") as source:
        for number, line in source.lines():
            words = line.split()
            if not words or is_comment(line) or decoded(number, [line], fault) is None:
                continue
            if not has_run_columns(words, line):
                fault(
                    number,
                    f"expected 6 columns (query Q0 document rank score tag), found {len(words)}: {shown(line)}"
                    + _instead(words),
                )
            elif score_of(words[4]) is None:
                fault(number, f"score {shown(words[4])} should be a number such as 12.5{_nan(words[4])}")
    return fault.error() or CouldNot("file-changed", "changed while it was read", file=path)


def _nan(word: bytes) -> str:
    return "; mend the system that gave it, or drop the line" if b"nan" in word.lower() else ""


def _instead(words: list[bytes]) -> str:
    if is_judgement(words):
        return "; this is a line of judgements: are --run and --qrels exchanged?"
    if len(words) > 6:
        return "; is there a space in an id? A tag of several words does not begin with a number"
    return ""
