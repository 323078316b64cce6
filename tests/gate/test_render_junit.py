from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from render_support import (
    failing,
    grade,
    hostile,
    lost,
    mean,
    passing,
    reason,
    refused,
    significance,
    verdict,
)

from eval_gate.render import Place, rendered
from eval_gate.verdict import ArmVerdict, Verdict

#: The JUnit form as its common consumers read it: by element, the attributes it must have, those it may have, and the
#: elements inside it in their order.
COUNTS = {"tests", "failures", "errors", "skipped", "time"}
FORM: dict[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": ({"name", *COUNTS}, set(), ["testsuite"]),
    "testsuite": ({"name", *COUNTS}, {"timestamp", "hostname"}, ["properties", "testcase"]),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, set(), []),
    "testcase": ({"classname", "name", "time"}, {"file", "line"}, ["skipped", "error", "failure"]),
    "failure": ({"message", "type"}, set(), []),
    "error": ({"message", "type"}, set(), []),
    "skipped": ({"message"}, set(), []),
}


def parsed(found: Verdict) -> ET.Element:
    """The document, read back and held against the form."""
    text = rendered("junit", found, Place())
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = ET.fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    check(root)
    return root


def check(element: ET.Element) -> None:
    needed, allowed, inside = FORM[element.tag]
    assert needed <= set(element.attrib) <= needed | allowed, element.attrib
    tags = [child.tag for child in element]
    assert set(tags) <= set(inside), tags
    assert tags == sorted(tags, key=inside.index)
    if element.tag == "testcase":
        assert len(tags) <= 1
    if element.tag in ("testsuites", "testsuite"):
        cases = list(element.iter("testcase"))
        counted = {"tests": len(cases)}
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            counted[name] = sum(case.find(tag) is not None for case in cases)
        assert {name: int(element.attrib[name]) for name in counted} == counted
        float(element.attrib["time"])
    elif element.tag in ("testcase", "properties", "property"):
        assert not (element.text or "").strip()
    for child in element:
        check(child)


def cases(root: ET.Element, suite: str) -> dict[str, str]:
    """The cases of an arm with how each ended."""
    (found,) = [element for element in root if element.get("name") == suite]
    return {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in found.iter("testcase")}


GRADABLE = "the arm can be graded"
MUST = "no query is lost that must pass"
LATENCY = "latency is within the budget"


def test_a_suite_an_arm_and_a_case_a_bar_and_a_rule() -> None:
    graded = (grade(), mean(False), grade(category="graph"))
    why = reason(code="baseline-drop", key="recall@10", value=0.9, what="the bar is 0.93")
    arm = failing(graded=graded, reasons=(why,), run_id="run-7", budget_p95_ms=3.0, p95_ms=1.0)
    root = parsed(verdict(passing(), arm, refused()))
    assert [suite.get("name") for suite in root] == ["(policy)", "ugly", "bad", "good"]
    assert cases(root, "good") == dict.fromkeys((GRADABLE, "bar of hit@1", MUST), "passed")
    assert cases(root, "bad") == {
        GRADABLE: "passed",
        "bar of hit@1": "passed",
        "bar of recall@10": "failure",
        "bar of hit@1 of graph": "passed",
        LATENCY: "passed",
        MUST: "passed",
    }
    assert cases(root, "ugly") == {GRADABLE: "error"}


@pytest.mark.parametrize(
    ("word", "code", "name", "kind"),
    [
        ("fail", "must-pass-lost", MUST, "failure"),
        ("fail", "latency-over-budget", LATENCY, "failure"),
        ("refused", "latency-not-measurable", LATENCY, "error"),
        ("refused", "repetitions-differ", LATENCY, "error"),
        ("refused", "metric-missing", GRADABLE, "error"),
        ("fail", "a-rule-to-come", "a-rule-to-come", "failure"),
    ],
)
def test_each_reason_falsifies_its_own_rule(word: str, code: str, name: str, kind: str) -> None:
    why = reason(word, code, "it is so", mend="Do this.", key=None, value=None)
    root = parsed(verdict(passing("x", verdict=word, reasons=(why,), budget_p95_ms=1.0)))
    found = cases(root, "x")
    assert found[name] == kind
    assert {end for case, end in found.items() if case != name} == {"passed"}
    (element,) = root.iter(kind)
    assert (element.get("message"), element.get("type")) == ("it is so", code)
    assert element.text == f"it is so  (reason: {code})\nDo this."


def test_the_first_measure_that_fails_says_what_was_lost() -> None:
    reasons = (reason(), reason(what="the bar is 0.8", key="mrr", value=0.7))
    graded = (grade(False), mean(False, measure="mrr", rule="floor"))
    arm = failing(reasons=reasons, graded=graded, lost=(lost(3),), significance=significance())
    first, second = parsed(verdict(arm)).iter("failure")
    assert "lost: q03 where is thing 3 d03 rank 1 → –" in (first.text or "")
    assert "chance could explain it" in (first.text or "")
    assert second.text == "mrr = 0.7: the bar is 0.8  (reason: floor-breached)"


def test_reasons_of_the_policy_are_a_suite_of_their_own() -> None:
    root = parsed(verdict())
    assert cases(root, "(policy)") == {"the policy holds together": "error"}
    assert cases(parsed(verdict(passing())), "(policy)") == {"the policy holds together": "passed"}


def test_plain_floors_have_no_rules_but_their_bars() -> None:
    arm: ArmVerdict = failing(unbound=True)
    assert cases(parsed(verdict(arm)), "bad") == {GRADABLE: "passed", "bar of hit@1": "failure"}


@settings(max_examples=50, deadline=None)
@given(hostile())
def test_the_document_is_whole_and_fails_where_the_verdict_does(found: Verdict) -> None:
    """Whatever others wrote, the XML can be parsed, fits the form, and holds a failure exactly where the exit is 1."""
    root = parsed(found)
    assert (int(root.attrib["failures"]) + int(root.attrib["errors"]) > 0) == (found.exit_code == 1)
    assert len(root) == len(found.arms) + 1
    shown = {c for element in root.iter() for value in element.attrib.values() for c in value}
    assert {c for c in shown if not c.isprintable()} == set()
