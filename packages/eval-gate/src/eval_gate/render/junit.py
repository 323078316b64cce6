"""The verdict as JUnit XML: a suite an arm, a case a bar and a rule, so that CI shows and counts them as tests.

A breach is a `failure`, what cannot be graded an `error`, so that a file holds one of them exactly where the exit code
is 1. Names of cases stay the same whether they pass or not, so that a history of one is a history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from eval_gate.render import words
from eval_gate.render.words import shown
from eval_gate.verdict import ArmVerdict, Reason, Verdict

#: The rules beside the bars: the case's name, and the codes of its reasons. Any other code that refuses says that the
#: arm cannot be graded.
RULES: Mapping[str, frozenset[str]] = {
    "latency is within the budget": frozenset(
        {"latency-over-budget", "latency-not-measurable", "repetitions-differ"}
    ),
    "no query is lost that must pass": frozenset({"must-pass-lost"}),
}
GRADABLE = "the arm can be graded"
POLICY = "the policy holds together"


class _Case(NamedTuple):
    name: str
    kind: Literal["passed", "failure", "error"] = "passed"
    code: str = ""
    message: str = ""
    text: str = ""


def junit(verdict: Verdict) -> str:
    """The whole document, without a last newline."""
    about: dict[str, str] = {"verdict": verdict.verdict}
    suites = [("(policy)", [_case(POLICY, verdict.reasons)], about)]
    for arm in words.ordered(verdict):
        suites.append((arm.arm, [*_cases(arm)], _properties(arm)))
    counts = _counts([case for _, cases, _ in suites for case in cases])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="eval-gate check"{counts}>']
    for name, cases, properties in suites:
        lines += _suite(name, cases, properties)
    lines.append("</testsuites>")
    return "\n".join(lines)


def _suite(name: str, cases: Sequence[_Case], properties: Mapping[str, str]) -> Iterator[str]:
    yield f" <testsuite name={_quoted(name)}{_counts(cases)}>"
    yield "  <properties>"
    for key, value in properties.items():
        yield f"   <property name={_quoted(key)} value={_quoted(value)}/>"
    yield "  </properties>"
    for case in cases:
        head = f'  <testcase classname={_quoted(name)} name={_quoted(case.name)} time="0"'
        if case.kind == "passed":
            yield head + "/>"
            continue
        yield head + ">"
        kind = f"{case.kind} message={_quoted(case.message)} type={_quoted(case.code)}"
        yield f"   <{kind}>{_escaped(case.text)}</{case.kind}>"
        yield "  </testcase>"
    yield " </testsuite>"


def _properties(arm: ArmVerdict) -> dict[str, str]:
    held = {
        "verdict": arm.verdict,
        "set": arm.set or None,
        "run_id": arm.run_id,
        "n": None if arm.n is None else str(arm.n),
        "unbound": "true" if arm.unbound else None,
        "provisional": "true" if arm.provisional else None,
        "excludes": words.excluded([arm]),
    }
    return {name: value for name, value in held.items() if value is not None}


def _cases(arm: ArmVerdict) -> Iterator[_Case]:
    of_bars: dict[tuple[str | None, str | None], list[Reason]] = {}
    by_rule: dict[str, list[Reason]] = {}
    graded = {(grade.measure, grade.category) for grade in arm.graded}
    for reason in arm.reasons:
        if reason.code in words.BREACHES and (reason.key, reason.category) in graded:
            of_bars.setdefault((reason.key, reason.category), []).append(reason)
        else:
            by_rule.setdefault(_rule(reason), []).append(reason)
    yield _case(GRADABLE, by_rule.pop(GRADABLE, ()))
    first = next((reason for reason in arm.reasons if reason.word == "fail" and reason.key), None)
    for grade in arm.graded:
        reasons = of_bars.get((grade.measure, grade.category), [])
        if not grade.passed and not reasons:
            what = f"{words.against_bar(grade)}, {words.rule(grade)}"
            reasons = [Reason(code=words.breach(grade), word="fail", what=what, key=grade.measure)]
        yield _case(f"bar of {words.measure(grade)}", reasons, _details(arm) if first in reasons else ())
    # There is no latency to hold without a budget for it, and plain floors know no other rule.
    held = [] if arm.unbound or not arm.graded else [*RULES][0 if arm.budget_p95_ms is not None else 1 :]
    for rule in dict.fromkeys((*held, *by_rule)):
        yield _case(rule, by_rule.get(rule, ()), _details(arm) if first in by_rule.get(rule, ()) else ())


def _rule(reason: Reason) -> str:
    for name, codes in RULES.items():
        if reason.code in codes:
            return name
    return GRADABLE if reason.word == "refused" else reason.code


def _case(name: str, reasons: Sequence[Reason], details: Iterable[str] = ()) -> _Case:
    """A case with all that speaks against it; the first of it is its message."""
    if not reasons:
        return _Case(name)
    worst = next((reason for reason in reasons if reason.word == "refused"), reasons[0])
    lines = [f"{shown(reason.message)}  (reason: {shown(reason.code)})" for reason in reasons]
    lines += [shown(mend) for mend in words.mends(reasons)]
    lines += [shown(line) for line in details]
    kind: Literal["failure", "error"] = "error" if worst.word == "refused" else "failure"
    return _Case(name, kind, worst.code, shown(worst.message, 400), "\n".join(lines))


def _details(arm: ArmVerdict) -> Iterator[str]:
    """What is known of the first measure that fails."""
    if arm.significance is not None:
        yield words.chance(arm.significance, arm.n)
    yield from words.system_changes(arm, 20)
    for moved in arm.lost[:20]:
        ranks = words.ranks(moved) + words.unjudged(moved)
        yield f"lost: {moved.query} {shown(moved.text, 80)} {moved.document} {ranks}"
    if len(arm.lost) > 20:
        yield f"… {len(arm.lost) - 20} more lost"


def _counts(cases: Sequence[_Case]) -> str:
    kinds = [case.kind for case in cases]
    counted = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    counted["skipped"] = 0
    return "".join(f' {name}="{number}"' for name, number in counted.items()) + ' time="0"'


def _quoted(text: str) -> str:
    """The value of an attribute. What is no character of XML 1.0 is no printable one either, and is shown."""
    return '"' + _escaped(shown(text)).replace('"', "&quot;") + '"'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
