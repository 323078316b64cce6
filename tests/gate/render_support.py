"""Verdicts for the tests of their forms: small ones made by hand, and hostile ones for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eval_gate.check.judge import judge
from eval_gate.verdict import (
    ArmVerdict,
    BarChange,
    Changed,
    Graded,
    Moved,
    Reason,
    Significance,
    Verdict,
    Word,
)


def reason(
    word: Any = "fail", code: str = "floor-breached", what: str = "3 misses are allowed", **more: Any
) -> Reason:
    about: dict[str, Any] = {"key": "hit@1", "value": 8} if word == "fail" else {}
    return Reason(**{"code": code, "word": word, "what": what} | about | more)


def grade(passed: bool = True, **more: Any) -> Graded:
    """hit@1 of 27 queries, three misses allowed by the floor: two are passed, eight are not."""
    misses = 2 if passed else 8
    held: dict[str, Any] = {"measure": "hit@1", "n": 27, "value": 1 - misses / 27, "lowest": 24 / 27}
    held |= {
        "misses": misses,
        "misses_allowed": 3,
        "rule": "floor",
        "floor": 3,
        "baseline": 26 / 27,
        "queries": 2,
    }
    return Graded(**held | {"passed": passed} | more)


def mean(passed: bool = True, **more: Any) -> Graded:
    """recall@10 of 27 queries, two points below the baseline of 0.95: 0.94 passes, 0.9 does not."""
    held: dict[str, Any] = {"measure": "recall@10", "n": 27, "value": 0.94 if passed else 0.9, "lowest": 0.93}
    held |= {"rule": "drop", "floor": 0.87, "points": 2.0, "baseline": 0.95, "queries": 0}
    return Graded(**held | {"passed": passed} | more)


def lost(number: int = 1, **more: Any) -> Moved:
    held: dict[str, Any] = {
        "query": f"q{number:02}",
        "text": f"where is thing {number}",
        "document": f"d{number:02}",
    }
    return Moved(**held | {"before": 1, "after": None, "metric": "hit@1", "change": -1.0} | more)


def significance(**more: Any) -> Significance:
    held: dict[str, Any] = {
        "metric": "hit@1",
        "difference": -0.045,
        "low": -0.091,
        "high": -0.002,
        "p": 0.063,
    }
    return Significance(**held | {"test": "mcnemar-midp", "resolvable": True} | more)


def passing(name: str = "good", **more: Any) -> ArmVerdict:
    held: dict[str, Any] = {"arm": name, "set": "things", "verdict": "pass", "n": 27, "graded": (grade(),)}
    return ArmVerdict(**held | {"measure": "hit@1", "runs_agree": True} | more)


def failing(name: str = "bad", **more: Any) -> ArmVerdict:
    return passing(name, **{"verdict": "fail", "reasons": (reason(),), "graded": (grade(False),)} | more)


def refused(name: str = "ugly", **more: Any) -> ArmVerdict:
    why = reason("refused", "query-set-differs", "the set of queries changed: 26 now, 27 in the baseline")
    return passing(name, **{"verdict": "refused", "reasons": (why,), "graded": ()} | more)


def verdict(*arms: ArmVerdict, **more: Any) -> Verdict:
    """The verdict over some arms, as the gate puts it together."""
    return judge(arms).model_copy(update=more)


# Hostile ones: whatever a set, a report, a policy or a path may hold that a model takes for text.

#: What means something to a terminal, to Markdown, to XML, to a job's log.
SHARP = (
    *(
        "|",
        "`",
        "``",
        "\\",
        "*",
        "_",
        "~~",
        "$",
        "# ",
        "> ",
        "- ",
        "1. ",
        "[ ]",
        "---",
        "===",
        "| --- |",
        "\n\n",
    ),
    *(
        "<b>",
        "</details>",
        "<script>",
        "<!--",
        "-->",
        "<!-- eval-gate check -->",
        "]]>",
        "&lt;",
        "&#64;",
        '"',
        "'",
    ),
    *(
        "@octocat",
        "@org/team",
        "#123",
        "GH-7",
        "owner/repo#1",
        "0123456789abcdef",
        "deadbeef",
        "JIRA-12",
        ":tada:",
    ),
    *(
        "https://example.org",
        "www.example.org",
        "a@example.org",
        "[a](b)",
        "![a](b)",
        "<https://example.org>",
        "[a]: b",
    ),
    *(
        "::error::",
        "::stop-commands::x",
        "##[error]",
        "%0A",
        "%",
        ",",
        ":",
        ";",
        "=",
        "\r",
        "\n",
        "\t",
        "\x00",
        "\x1b[2J",
    ),
    *(
        "\x9b2J",
        "\x7f",
        "\u202e",
        "\u2028",
        "\u200b",
        "\ufeff",
        "\ufffe",
        "\U000e0041",
        "é",
        "e\u0301",
        "漢字",
        "🙂",
        " ",
        "  ",
    ),
)

#: Lone surrogates are left out: no model takes them for text.
texts = st.one_of(
    st.lists(st.one_of(st.sampled_from(SHARP), st.text("ab1 ", max_size=3)), max_size=8).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
_numbers = st.floats(0, 1)
_ranks = st.one_of(st.none(), st.integers(1, 200))


def _reasons(word: str) -> st.SearchStrategy[tuple[Reason, ...]]:
    codes = {"fail": ["floor-breached", "baseline-drop", "must-pass-lost", "latency-over-budget"]}
    known = codes.get(
        word, ["query-set-differs", "evidence-missing", "latency-not-measurable", "judgements-differ"]
    )
    maybe = st.one_of(st.none(), texts)
    one = st.builds(
        Reason,
        code=st.one_of(st.sampled_from(known), texts),
        word=st.just(word),
        what=texts,
        file=maybe,
        line=st.one_of(st.none(), st.integers(1, 99)),
        subject=maybe,
        key=maybe,
        value=st.one_of(st.none(), texts, _numbers),
        category=maybe,
        mend=maybe,
    )
    return st.lists(one, min_size=1, max_size=3).map(tuple)


@st.composite
def _arms(draw: st.DrawFn) -> ArmVerdict:
    words: list[Word] = ["pass", "fail", "refused"]
    word = draw(st.sampled_from(words))
    several: Any = lambda one, most=2: draw(st.lists(one, max_size=most).map(tuple))  # noqa: E731
    misses = st.one_of(st.none(), st.integers(0, 99))
    graded = st.builds(
        Graded,
        measure=texts,
        n=st.integers(1, 99),
        value=_numbers,
        lowest=_numbers,
        misses=misses,
        misses_allowed=st.integers(0, 99),
        rule=st.sampled_from(["floor", "drop", "everywhere"]),
        floor=st.one_of(st.none(), _numbers),
        points=_numbers,
        baseline=_numbers,
        queries=st.integers(-2, 9),
        passed=st.just(True) if word == "pass" else st.booleans(),
        category=st.one_of(st.none(), texts),
    )
    moved = st.builds(
        Moved,
        query=texts,
        text=texts,
        document=texts,
        before=_ranks,
        after=_ranks,
        metric=texts,
        change=_numbers,
    )
    found = st.builds(
        Significance,
        metric=texts,
        difference=st.floats(-1, 1),
        low=st.floats(-1, 1),
        high=st.floats(-1, 1),
        p=_numbers,
        test=st.one_of(st.sampled_from(["mcnemar-midp", "sign-flip"]), texts),
        resolvable=st.booleans(),
    )
    return ArmVerdict(
        arm=draw(texts),
        set=draw(texts),
        verdict=word,
        n=draw(st.one_of(st.none(), st.integers(-5, 10**30))),
        run_id=draw(st.one_of(st.none(), texts)),
        reasons=() if word == "pass" else draw(_reasons(word)),
        graded=several(graded),
        p95_ms=draw(st.one_of(st.none(), st.floats(0, 1e12))),
        budget_p95_ms=draw(st.one_of(st.none(), st.floats(0, 1e12))),
        system_changes=several(st.builds(Changed, part=texts, before=texts, after=texts)),
        measure=draw(st.one_of(st.none(), texts)),
        lost=several(moved, 7),
        gained=several(moved),
        significance=draw(st.one_of(st.none(), found)),
        provisional=draw(st.booleans()),
        runs_agree=draw(st.one_of(st.none(), st.booleans())),
        unbound=draw(st.booleans()),
        warnings=several(texts),
    )


@st.composite
def hostile(draw: st.DrawFn) -> Verdict:
    """A verdict that the gate could give, with hostile texts in every field."""
    maybe = st.one_of(st.none(), texts)
    change = st.builds(
        BarChange,
        arm=maybe,
        key=texts,
        measure=maybe,
        category=maybe,
        before=maybe,
        after=maybe,
        looser=st.booleans(),
        reason=maybe,
    )
    names = st.lists(texts, max_size=2)
    found = judge(
        draw(st.lists(_arms(), max_size=3)), not_gated=draw(names), orphans=draw(names), notes=draw(names)
    )
    bar = draw(st.lists(change, max_size=3).map(tuple))
    more: dict[str, Any] = {"target": draw(texts), "bar": bar} if draw(st.booleans()) else {}
    return found.model_copy(update={"commit": draw(maybe), "class_": draw(maybe), **more})
