from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eval_core.errors import Misuse, Refused
from eval_tier.evidence.github import applies, matches
from eval_tier.evidence.settings import Context, Settings, Unknown, read_settings, sealed

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
REPO = "/repos/o/r"
BRANCH = f"{REPO}/branches/main"
RULES = f"{REPO}/rules/branches/main?per_page=100"
ACTIONS = 15368

ABSENT = (404, {"message": "Branch not protected"})
HIDDEN = (404, {"message": "Not Found"})
FORBIDDEN = (403, {"message": "Resource not accessible by integration"})
HOME = (200, {"id": 77, "default_branch": "main"})
OPEN = (200, {"name": "main", "protected": False})


def require(*names: str, number: int = 1, app: int | None = None) -> dict[str, Any]:
    checks = [{"context": name} | ({"integration_id": app} if app else {}) for name in names]
    return {
        "type": "required_status_checks",
        "ruleset_id": number,
        "parameters": {"required_status_checks": checks},
    }


def ruleset(*actors: tuple[str, int | None], name: str = "one", **more: Any) -> tuple[int, dict[str, Any]]:
    bypass = [{"actor_type": kind, "actor_id": number, "bypass_mode": "always"} for kind, number in actors]
    return 200, {"name": name, "enforcement": "active", "bypass_actors": bypass, **more}


def classic(*names: str, admins: bool, app: int | None = None) -> tuple[int, dict[str, Any]]:
    checks = [{"context": name, "app_id": app} for name in names]
    body = {"required_status_checks": {"contexts": list(names), "checks": checks}}
    return 200, {**body, "enforce_admins": {"enabled": admins}}


def shown(level: str, *names: str) -> tuple[int, dict[str, Any]]:
    checks = {"enforcement_level": level, "contexts": list(names), "checks": []}
    return 200, {"protected": True, "protection": {"enabled": True, "required_status_checks": checks}}


def file_of(answers: dict[str, tuple[int, Any]] | None = None, **fields: Any) -> bytes:
    calls = [
        {"path": path, "status": status, "etag": None, "body": body}
        for path, (status, body) in (answers or {}).items()
    ]
    whole = {
        "schema": "snapshot-v1",
        "repository": "o/r",
        "branch": "main",
        "forge": "github",
        "forge_version": None,
        "tool": "eval-tier 0.1.0",
        "observed": "2026-11-30T09:00:00Z",
        "calls": calls,
        "settings": None,
    }
    return json.dumps(sealed(whole | fields)).encode()


def read(answers: dict[str, tuple[int, Any]] | None = None, **fields: Any) -> Settings:
    return read_settings(file_of(answers, **fields), "s.json", NOW)


def observed(**calls: tuple[int, Any] | None) -> Settings:
    """Settings of a snapshot with these answers; what is not named is answered as an unprotected branch is."""
    answers = {"home": HOME, "branch": OPEN, "protection": ABSENT, "rules": (200, [])} | calls
    paths = {"home": REPO, "branch": BRANCH, "protection": f"{BRANCH}/protection", "rules": RULES}
    paths["page2"] = RULES + "&page=2"
    return read(
        {
            paths.get(name) or f"{REPO}/rulesets/{name[1:]}": answer
            for name, answer in answers.items()
            if answer is not None
        }
    )


def names(found: Settings) -> list[str]:
    assert not isinstance(found.required, Unknown), found.required
    return sorted(context.name for context in found.required)


def why(answer: object) -> str:
    assert isinstance(answer, Unknown), answer
    assert answer.mend
    return answer.why


# ------------------------------------------------------------------------------------- what is required


def test_k7_the_setting_is_what_makes_a_check_required() -> None:
    """K7 and row 1: classic protection answers 404, the rules list requires the check: proven."""
    found = observed(rules=(200, [require("test", app=ACTIONS)]), r1=ruleset())
    assert found.required == (Context("test", ACTIONS, "ruleset one"),)
    assert found.partial is None and found.bypass == () and found.admins is True


@pytest.mark.parametrize("protection", [HIDDEN, FORBIDDEN, None])
def test_classic_protection_that_is_hidden_is_read_from_the_branch(protection: Any) -> None:
    assert observed(protection=protection).required == ()
    found = observed(protection=protection, branch=shown("everyone", "test"))
    assert (names(found), found.admins, found.bypass) == (["test"], True, ())
    found = observed(protection=protection, branch=shown("non_admins", "test"))
    assert (names(found), found.admins, found.bypass) == (["test"], False, ("repository admins",))
    assert observed(protection=protection, branch=shown("off", "test")).required == ()


def test_classic_protection_and_rulesets_are_one_union() -> None:
    found = observed(
        protection=classic("lint", admins=True, app=99), rules=(200, [require("test")]), r1=ruleset()
    )
    assert found.required == (Context("lint", 99, "classic protection"), Context("test", None, "ruleset one"))


def test_nothing_required_is_an_answer() -> None:
    found = observed()
    assert (found.required, found.partial, found.queue, found.workflows) == ((), None, False, ())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (FORBIDDEN, '403, the token lacks Administration: read ("Resource not accessible by integration")'),
        (HIDDEN, '404, absent or hidden from a token without Administration: read ("Not Found")'),
        ((403, {"message": "Upgrade to GitHub Pro"}), "403, the repository's plan does not have it"),
        ((403, "<html>"), "403, the token lacks Administration: read"),
        (None, "was not observed"),
        ((200, "<html>"), "not of the form"),
        ((200, {"message": "hello"}), "not of the form"),
        ((200, {"required_status_checks": {"contexts": [1]}}), "not of the form"),
        ((200, {"required_status_checks": {"checks": [{"context": "a", "app_id": "x"}]}}), "not of the form"),
    ],
)
def test_what_cannot_be_seen_is_unknown_with_the_missing_right(answer: Any, words: str) -> None:
    """Rows 5 and 6: neither enabled nor disabled; 403 and 404 are told apart."""
    found = observed(protection=answer, branch=FORBIDDEN)
    assert words in why(found.required)
    assert words in why(found.admins) and words in why(found.bypass)
    # What a ruleset requires is proven all the same, and more may be required.
    found = observed(protection=answer, branch=FORBIDDEN, rules=(200, [require("test")]), r1=ruleset())
    assert names(found) == ["test"]
    assert words in why(found.partial)


@pytest.mark.parametrize("answer", [FORBIDDEN, HIDDEN, None, (200, "<html>"), (200, {"a": 1}), (200, [7])])
def test_rules_that_cannot_be_seen_are_unknown(answer: Any) -> None:
    found = observed(rules=answer)
    assert why(found.required)
    if answer != (200, [7]):
        assert why(found.queue)
    found = observed(rules=answer, protection=classic("test", admins=True))
    assert names(found) == ["test"] and found.partial is not None


def test_nothing_observed_is_unknown_throughout() -> None:
    found = observed(home=HOME, branch=None, protection=None, rules=None)
    assert all(why(x) for x in (found.required, found.queue, found.admins, found.bypass))


def test_a_second_page_is_read_and_a_refused_one_is_unknown() -> None:
    second = {"page2": (200, [require("late", number=2)])}
    assert names(observed(rules=(200, [require("test")]), **second)) == ["late", "test"]
    assert why(observed(rules=(200, [require("test")]), page2=FORBIDDEN).required)


@pytest.mark.parametrize("enforcement", ["evaluate", "disabled"])
def test_a_ruleset_that_is_not_enforced_requires_nothing(enforcement: str) -> None:
    found = observed(rules=(200, [require("test")]), r1=ruleset(enforcement=enforcement))
    assert found.required == () and enforcement in found.notes[0]


def test_a_merge_queue_is_seen() -> None:
    """Row 15: the rule is what the triggers are held against."""
    assert observed(rules=(200, [{"type": "merge_queue", "ruleset_id": 1}]), r1=ruleset()).queue is True


def test_a_context_has_the_app_that_must_post_it() -> None:
    """Row 17; -1 is any app."""
    found = observed(rules=(200, [require("a", app=99), require("b", app=-1)]), r1=ruleset())
    assert found.required == (Context("a", 99, "ruleset one"), Context("b", None, "ruleset one"))


def test_a_required_workflow_is_a_file_of_this_repository() -> None:
    given = [{"path": "a.yml", "repository_id": 77}, {"path": "b.yml", "repository_id": 5}]
    rule = {"type": "workflows", "ruleset_id": 1, "parameters": {"workflows": given}}
    found = observed(rules=(200, [rule]), r1=ruleset(("OrganizationAdmin", None)))
    assert (found.workflows, found.bypass) == (("a.yml",), ("organization owners",))
    assert found.notes == ("ruleset one requires the workflow b.yml of another repository",)


# ------------------------------------------------------------------------------------- who may bypass


def test_bypass_actors_that_are_left_out_are_unknown() -> None:
    """Row 3: a key that is absent is not an empty list."""
    body = {"name": "one", "enforcement": "active"}
    found = observed(rules=(200, [require("test")]), r1=(200, body))
    assert names(found) == ["test"]
    assert "without its bypass_actors" in why(found.bypass) and why(found.admins)


ADMIN, OWNER, TEAM = ("RepositoryRole", 5), ("OrganizationAdmin", None), ("Team", 3)


@pytest.mark.parametrize(
    ("first", "second", "bypass", "admins"),
    [
        (ruleset(ADMIN), ruleset(), (), True),  # row 4: the other one still enforces it
        (ruleset(ADMIN), ruleset(ADMIN), ("repository admins",), False),
        (ruleset(ADMIN), ruleset(OWNER), ("organization owners",), False),
        (ruleset(TEAM), ruleset(TEAM), ("Team 3",), True),
        (ruleset(TEAM), ruleset(ADMIN), ("whoever is in each of: Team 3; repository admins",), True),
        (FORBIDDEN, ruleset(), (), True),
        (FORBIDDEN, ruleset(TEAM), None, True),
        (FORBIDDEN, ruleset(ADMIN), None, None),
    ],
)
def test_who_may_bypass_every_rule_of_a_check(first: Any, second: Any, bypass: Any, admins: Any) -> None:
    found = observed(rules=(200, [require("test"), require("test", number=2)]), r1=first, r2=second)
    assert bypass == (None if isinstance(found.bypass, Unknown) else found.bypass)
    assert admins == (None if isinstance(found.admins, Unknown) else found.admins)


def test_another_check_without_bypass_does_not_hide_one_with() -> None:
    found = observed(
        rules=(200, [require("lint"), require("test", number=2)]), r1=ruleset(), r2=ruleset(ADMIN)
    )
    assert (found.bypass, found.admins) == (("repository admins",), False)


@pytest.mark.parametrize(("enforced", "bypass"), [(True, ()), (False, ("repository admins",))])
def test_classic_protection_lets_admins_unless_it_is_enforced_for_them(enforced: bool, bypass: Any) -> None:
    found = observed(protection=classic("test", admins=enforced))
    assert (found.admins, found.bypass) == (enforced, bypass)
    # A ruleset that nobody may bypass enforces it all the same.
    found = observed(
        protection=classic("test", admins=enforced), rules=(200, [require("test")]), r1=ruleset()
    )
    assert (found.admins, found.bypass) == (True, ())


# ------------------------------------------------------------------------------------- conditions of rulesets


@pytest.mark.parametrize(
    ("include", "exclude", "branch", "answer"),
    [
        ([], ["refs/heads/x"], "main", True),  # row 2
        ([], ["refs/heads/x"], "x", False),
        ([], [], "main", False),
        (["~ALL"], [], "any/thing", True),
        (["~ALL"], ["~DEFAULT_BRANCH"], "main", False),
        (["~DEFAULT_BRANCH"], [], "main", True),
        (["~DEFAULT_BRANCH"], [], "dev", False),
        (["refs/heads/release/*"], [], "release/1", True),
        (["refs/heads/release/*"], [], "release/1/x", False),
        (["refs/heads/release/**/*"], [], "release/1/x", True),
        (["refs/heads/v[0-9]?"], [], "v1a", True),
        (["refs/heads/main"], [], "mainx", False),
        ([5], [], "main", False),
        (["~ALL"], [5], "main", False),
        (None, [], "main", False),
    ],
)
def test_conditions_are_evaluated(include: Any, exclude: Any, branch: str, answer: bool) -> None:
    conditions = {"ref_name": {"include": include, "exclude": exclude}}
    body = {"enforcement": "active", "target": "branch", "conditions": conditions}
    assert applies(body, branch, "main") is answer
    for enforcement in ("evaluate", "disabled", None):
        assert not applies(body | {"enforcement": enforcement}, branch, "main")


def test_a_ruleset_alone_is_proof_of_what_it_requires_and_of_nothing_more() -> None:
    conditions = {"ref_name": {"include": [], "exclude": ["refs/heads/x"]}}
    more: dict[str, Any] = {"conditions": conditions, "rules": [require("test")]}
    found = observed(rules=None, r9=ruleset(name="nine", **more))
    assert names(found) == ["test"] and "list of active rules" in why(found.partial)
    conditions["ref_name"]["exclude"].append("refs/heads/m*")
    assert why(observed(rules=None, r9=ruleset(name="nine", **more)).required)


def test_a_hostile_pattern_ends() -> None:
    started = time.process_time()
    assert not matches("*?**/[a-z]" * 9 + "!", "a" * 250)
    assert time.process_time() - started < 20


# ------------------------------------------------------------------------------------- time, and the file


@pytest.mark.parametrize(
    ("age", "stale"),
    [(timedelta(days=30), False), (timedelta(days=30, seconds=1), True), (timedelta(days=-2), True)],
)
def test_after_thirty_days_all_is_unknown_and_the_time_stays(age: timedelta, stale: bool) -> None:
    raw = file_of({REPO: HOME, BRANCH: OPEN, RULES: (200, [])})
    at = datetime(2026, 11, 30, 9, tzinfo=UTC)
    found = read_settings(raw, "s.json", at + age, inside=True)
    assert (found.stale, found.observed, found.self_attested) == (stale, at, True)
    assert all(
        isinstance(x, Unknown) is stale for x in (found.required, found.queue, found.admins, found.bypass)
    )
    if stale:
        assert "2026-11-30T09:00:00Z" in why(found.required)


BROUGHT = {"required": [{"context": "ci / test (*)", "app": None}], "bypass": [], "admins": True}


def test_other_forges_are_brought_by_hand() -> None:
    found = read(forge="gitea", settings=BROUGHT | {"pipelines": {"skipped": False}})
    assert found.required == (Context("ci / test (*)", None, "settings of gitea"),)
    assert (found.bypass, found.admins, found.notes) == ((), True, ("skipped = false",))
    assert "does not say" in why(found.queue)
    nothing = read(forge="gitlab", settings={"required": None})
    assert all(why(x) for x in (nothing.required, nothing.bypass, nothing.admins, nothing.queue))
    assert read(forge="gitlab", settings={"required": []}).required == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"test"', b'"tost"'),
        (b"2026-11-30T09", b"2026-11-30T10"),
        (b'"branch": "main"', b'"branch": "mainx"'),
    ],
)
def test_an_edited_file_is_refused(old: bytes, new: bytes) -> None:
    raw = file_of({RULES: (200, [require("test")])})
    assert raw.count(old) == 1
    with pytest.raises(Refused) as refused:
        read_settings(raw.replace(old, new), "s.json", NOW)
    assert refused.value.code == "snapshot-edited"
    assert refused.value.mend == "Take it anew: eval-tier snapshot o/r"


CALL = {"path": "/x", "status": 200, "body": None}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "should be an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": "\\ud800"}', "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b" " * 6_000_000, "larger than 5 MB"),
        (b'{"schema": "snapshot-v1"}', "it is missing"),
        (file_of(), "either calls or settings"),
        (file_of({RULES: (200, [])}, settings=BROUGHT), "either calls or settings"),
        (file_of(settings=BROUGHT), "calls where the forge is github"),
        (file_of({RULES: (200, [])}, repository="../x"), "repository"),
        (file_of({RULES: (200, [])}, observed="yesterday"), "should be a UTC time"),
        (file_of({RULES: (200, [])}, observed="2026-11-30T09:00:00"), "should be a UTC time"),
        (file_of({RULES: (200, [])}, observed="2026-11-30T09:00:00+01:00"), "should be a UTC time"),
        (file_of({RULES: (999, [])}), "status"),
        (file_of({RULES: (200, [])}, more=1), "unknown key"),
        (file_of(calls=[CALL | {"status": "x"}] * 900), "status"),
        (file_of(calls=[1] * 1_000_000), "more than 20,000 parts"),
        (file_of(calls=[CALL | {f"k{n}": 1 for n in range(900)}] * 100), "more than 20,000 parts"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_of_another_form_is_an_error_with_its_name(raw: bytes, words: str) -> None:
    started = time.process_time()
    with pytest.raises(Misuse) as error:
        read_settings(raw, "s.json", NOW)
    assert "s.json" in str(error.value) and words in str(error.value)
    assert len(str(error.value)) < 10_000 and time.process_time() - started < 20


@pytest.mark.parametrize(
    "body", [None, 5, "text", [], [None], {"rules": 5}, {"name": ["x"], "bypass_actors": 7}]
)
@pytest.mark.parametrize("status", [200, 301, 403, 404, 500])
def test_no_answer_of_any_form_is_an_exception(status: int, body: Any) -> None:
    given = dict.fromkeys(("home", "branch", "protection", "r1"), (status, body))
    for rules in ((status, body), (200, [require("test"), {"type": "workflows"}, {"type": []}, body])):
        found = observed(**given, rules=rules)
        assert isinstance(found.required, Unknown | tuple) and found.required != ()
