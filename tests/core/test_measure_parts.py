"""Measuring a part of a set: filters, selections, scopes, times."""

from __future__ import annotations

import contextlib
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from core_support import KINDS, Space, Told, detail, outcomes, told

from eval_core.backend import CAPABILITIES, GROUP, BackendError
from eval_core.errors import CouldNot, Faults

# --------------------------------------------------------------------------------------------- filters, selections


def test_a_query_is_filtered_from_its_own_metadata_where_the_arm_says_so(kinds: Space) -> None:
    """K1: metadata never filters by itself."""
    backend = told()
    backend.capabilities = frozenset({"filter"})
    report = kinds.measure(backend, text='filter_from = ["kind"]\n')
    assert {request.id: request.filter for request in backend.asked} == {
        "q1": {"kind": "note"},
        "q2": {"kind": "plan"},
        "q3": None,
    }
    assert report.task.parts["filter"] == ["kind"]
    kinds.measure(backend, text="")
    assert backend.asked[-1].filter is None
    assert {request.filter is None for request in backend.asked[-3:]} == {True}


def test_what_lies_outside_the_filter_is_an_error(kinds: Space) -> None:
    backend = told(q1=["d1", "d2"])
    backend.capabilities = frozenset({"filter"})
    report = kinds.measure(backend, text='filter_from = ["kind"]\n')
    assert outcomes(report) == {"q1": "errored", "q2": "scored", "q3": "scored"}
    assert detail(report, "q1") == "id 'd2' is outside the query's scope, filter or time"


#: By capability, what asks for it: keys of the arm, the metadata of each query, and what is said of it. A scope asks
#: for none, since each scope may have an index of its own or a backend, and nothing asks with a vector.
WISHES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "filter": (
        'filter_from = ["kind"]\n',
        {},
        "filter_from = ['kind']: {} lacks 'filter', which filter_from asks for",
    ),
    "expand": ("expand = true\n", {}, "expand = True: {} lacks 'expand', which expand = true asks for"),
    "temporal": (
        "",
        {"time": {"historical": True}},
        "backend = '{name}': {} lacks 'temporal', which metadata.time of its queries asks for",
    ),
    "scope": ("", {"scope": "a"}, None),
    "vectors": ("", {}, None),
    "reindex": ("", {}, None),
}


@pytest.mark.parametrize("capability", sorted(CAPABILITIES))
@pytest.mark.parametrize("backend", ["jsonl", "told"])
def test_round2_s3_a_capability_that_is_asked_for_and_lacking_is_a_fault_of_its_key(
    space: Space, backend: str, capability: str
) -> None:
    """S3: it is told by its key, by `validate` and before anything is measured, and not as 27 unscorable queries."""
    keys, metadata, said = WISHES[capability]
    document = {"text": "t", "metadata": {"kind": "note", "scopes": ["a"]}}
    query = {"text": "query 1", "metadata": {"kind": "note", **metadata}}
    space.set({"d1": document}, {"q1": query}, [("q1", "d1", 1)])
    factory = Told({"query 1": ["d1"]})
    (space.root / "adapter.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'ids': ['d1']}), flush=True)\n"
    )
    space.register("told", factory)
    space.register("jsonl", entry_points(group=GROUP)["jsonl"].load())
    command = "options.command = ['{python}', 'adapter.py']\n" if backend == "jsonl" else ""
    space.arm(keys + command, backend=backend)
    validated = space.core("validate", "eval.toml")
    done = space.core("measure", "-q")
    if said is None:
        assert (validated.code, done.code) == (0, 0), validated.out + done.err
        return
    where = "options.capabilities" if backend == "jsonl" else "the backend 'told'"
    fault = f'arms."arm".{said.format(where, name=backend)}'
    assert (validated.code, done.code) == (2, 2)
    assert fault in validated.out
    assert fault in done.err
    assert not (space.root / ".eval" / "reports").exists()
    factory.capabilities = frozenset({capability})
    space.config.unlink()
    space.arm(
        keys + command + (f"options.capabilities = ['{capability}']\n" if command else ""), backend=backend
    )
    assert space.core("validate", "eval.toml").code == 0
    assert space.core("measure", "-q").code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'filter_from = ["knid"]\n',
            "arms.\"arm\".filter_from = ['knid']: no query has 'knid'; did you mean 'kind'?",
        ),
        (
            'select = { catgory = ["x"] }\n',
            "arms.\"arm\".select = {'catgory': ('x',)}: no query has 'catgory'; did you mean 'category'?",
        ),
        (
            'select = { category = ["z"] }\n',
            "arms.\"arm\".select = {'category': ('z',)}: leaves none of 3 queries",
        ),
    ],
)
def test_a_filter_or_selection_that_means_nothing_is_a_fault(kinds: Space, text: str, message: str) -> None:
    """An arm that silently measured without its filter would look like one with it."""
    with pytest.raises(Faults) as caught:
        kinds.measure(told(), text=text)
    assert f"{kinds.config}:4: {message}" in str(caught.value)


def test_a_filter_that_hides_what_is_judged_is_a_fault(kinds: Space) -> None:
    kinds.set(
        {name: {"text": "t", "metadata": {"team": kind}} for name, kind in KINDS.items()},
        {
            "q1": {"text": "query 1", "metadata": {"team": "plan"}},
            "q2": {"text": "t", "metadata": {"team": ["a"]}},
        },
        [("q1", "d1", 1), ("q2", "d2", 1)],
    )
    with pytest.raises(Faults) as caught:
        kinds.measure(Told({}, {"filter"}), text='filter_from = ["team"]\n')
    assert [f"{fault.key}: {fault.what}" for fault in caught.value.faults] == [
        "arms.\"arm\".filter_from: hides 'd1', which is judged relevant to 'q1': the query asks for {'team': 'plan'} "
        "and the document has {'team': 'note'}",
        "arms.\"arm\".filter_from: 'team' of query 'q2' is ['a'], which is not a text",
    ]


def test_a_selection_measures_some_of_the_queries(kinds: Space) -> None:
    report = kinds.measure(told(), text='select = { category = ["y"] }\n')
    assert [row.id for row in report.rows] == ["q2", "q3"]
    assert report.dataset.queries == 2
    whole = kinds.measure(told(), text="")
    changed = {part for part in whole.task.parts if whole.task.parts[part] != report.task.parts[part]}
    assert changed == {"query_ids", "queries", "judgements"}


def test_expansion_is_asked_only_of_a_backend_that_can(things: Space) -> None:
    """A capability that the arm asks for and the backend lacks is a fault of the arm."""
    backend = told()
    with pytest.raises(Faults, match=r'arms."arm".expand = True: the backend \'told\' lacks \'expand\''):
        things.measure(backend, text="expand = true\n")
    backend.capabilities = frozenset({"expand"})
    report = things.measure(backend)
    assert backend.asked[-1].expand
    assert report.system.parts["expand"] is True


# --------------------------------------------------------------------------------------------- scopes, time


@pytest.fixture
def scopes(space: Space) -> Space:
    """Two scopes of three documents each, three queries in one, one in the other, one in none."""
    space.set(
        {
            f"{scope}{number}": {"text": "t", "metadata": {"scopes": [scope]}}
            for scope in "ab"
            for number in (1, 2, 3)
        },
        {
            **{f"q{n}": {"text": f"query {n}", "metadata": {"scope": "a"}} for n in (1, 2, 3)},
            "q4": {"text": "query 4", "metadata": {"scope": "b"}},
            "q5": "query 5",
        },
        [("q1", "a1", 1), ("q2", "a2", 1), ("q3", "a3", 1), ("q4", "b1", 1), ("q5", "b2", 1)],
    )
    return space


SCOPED = {"query 1": ["a1"], "query 2": ["a2"], "query 3": ["a3"], "query 4": ["b1"], "query 5": ["b2"]}


def test_scopes_are_served_by_one_index_each_where_the_backend_knows_none(scopes: Space) -> None:
    backend = Told(SCOPED)
    report = scopes.measure(backend, text="repetitions = 1\n")
    assert backend.indexed == [["a1", "a2", "a3"], ["b1", "b2", "b3"], ["a1", "a2", "a3", "b1", "b2", "b3"]]
    assert {request.scope for request in backend.asked} == {None}
    assert report.system.parts["scoping"] == "index-per-scope"
    assert report.statements[0] == "3 indexes, one a scope: one warm-up in all"
    assert report.ingest is not None
    assert report.ingest.documents == 12
    assert report.summary.overall.metrics["recall@1"] == 1


def test_a_backend_that_reindexes_is_one_for_all_scopes(scopes: Space) -> None:
    """It is asked, scored and closed as one a scope is."""
    anew, kept = Told(SCOPED), Told(SCOPED, {"reindex"})
    reports = [scopes.measure(backend, text="repetitions = 1\n") for backend in (anew, kept)]
    assert reports[0].digests.rankings == reports[1].digests.rankings
    assert (anew.indexed, anew.asked) == (kept.indexed, kept.asked)
    assert (anew.closed, kept.closed) == (
        5,
        2,
    )  # two more and one more: made to be checked, and to be described
    assert reports[1].ingest is not None
    assert reports[1].ingest.documents == 12


def test_the_warm_up_comes_once_and_never_before_a_single_question(space: Space) -> None:
    """A question that is alone in its scope would be asked twice, the second time perhaps of a cache."""

    def asked(**queries_of: int) -> tuple[list[str], str]:
        names = {f"{scope}{n}": scope for scope, count in queries_of.items() for n in range(count)}
        space.set(
            {scope: {"text": "t", "metadata": {"scopes": [scope]}} for scope in queries_of},
            {name: {"text": name, "metadata": {"scope": scope}} for name, scope in names.items()},
            [(name, scope, 1) for name, scope in names.items()],
        )
        backend = Told({name: [scope] for name, scope in names.items()})
        report = space.measure(backend, text="repetitions = 1\n")
        return [request.text for request in backend.asked], report.statements[0]

    assert asked(a=1, b=1) == (["a0", "b0"], "2 indexes, one a scope: one question each, no warm-up")
    assert asked(a=1, b=2, c=2) == (
        ["a0", "b0", "b1", "b0", "b1", "c0", "c1"],
        "3 indexes, one a scope: one warm-up in all",
    )


def test_scopes_are_a_filter_where_the_backend_knows_them(scopes: Space) -> None:
    """The two score differently, so the system key tells them apart; the task is the same."""
    per_scope = scopes.measure(Told(SCOPED), text="repetitions = 1\n")
    backend = Told(SCOPED, {"scope"})
    report = scopes.measure(backend)
    assert [len(ids) for ids in backend.indexed] == [6]
    assert {request.id: request.scope for request in backend.asked} == {
        "q1": "a",
        "q2": "a",
        "q3": "a",
        "q4": "b",
        "q5": None,
    }
    assert report.system.parts["scoping"] == "filter"
    assert (
        report.statements[0] == "one index pools all scopes, and the backend keeps each question to its own"
    )
    assert report.system.sha256 != per_scope.system.sha256
    assert report.task == per_scope.task


@pytest.mark.parametrize("capabilities", [(), ("scope",)])
def test_a_document_of_another_scope_is_an_error(scopes: Space, capabilities: tuple[str, ...]) -> None:
    report = scopes.measure(Told({**SCOPED, "query 4": ["b1", "a1"]}, capabilities), text="")
    assert outcomes(report)["q4"] == "errored"
    assert detail(report, "q4") == "id 'a1' is outside the query's scope, filter or time"


def test_scopes_leave_no_temporary_folder(
    scopes: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Reading(Told):
        def index(self, corpus: Any) -> None:
            assert corpus.path.exists()
            super().index(corpus)

    scopes.measure(Reading(SCOPED), text="")
    for error in (KeyboardInterrupt(), CouldNot("backend-failed", "gone")):
        with contextlib.suppress(KeyboardInterrupt):
            scopes.measure(Reading({**SCOPED, "query 1": error}))
    with pytest.raises(CouldNot):

        class Failing(Reading):
            def index(self, corpus: Any) -> None:
                super().index(corpus)
                raise ValueError

        scopes.measure(Failing(SCOPED))
    assert list(tmp_path.glob("eval-corpus-*")) == []


def test_a_gone_backend_is_not_indexed_for_the_other_scopes(scopes: Space) -> None:
    broken = BackendError("no")
    backend = Told({**SCOPED, **dict.fromkeys(("query 1", "query 2", "query 3"), broken)})
    report = scopes.measure(backend, text="")
    assert [row.outcome for row in report.rows] == ["errored"] * 3 + ["unscored"] * 2
    assert len(backend.indexed) == 1


@pytest.fixture
def times(space: Space) -> Space:
    """A document that was superseded, and queries about now and about then."""
    space.set(
        {"old": "t", "new": "t", "other": "t"},
        {
            "now": "query 1",
            "then": {"text": "query 2", "metadata": {"time": {"as_of": 0}}},
            "ever": {"text": "query 3", "metadata": {"time": {"historical": True}}},
        },
        [("now", "new", 1), ("then", "old", 1), ("ever", "old", 1)],
        timeline_jsonl='{"epoch": 1, "id": "new", "supersedes": "old"}\n',
    )
    return space


def test_a_backend_without_time_indexes_what_is_valid_now_and_is_asked_about_now_alone(times: Space) -> None:
    """A query about a time is unscorable there, not zero."""
    backend = Told({"query 1": ["new", "other"]})
    report = times.measure(backend, text="")
    assert backend.indexed == [["new", "other"]]
    assert outcomes(report) == {"now": "scored", "then": "unscorable", "ever": "unscorable"}
    said = "arm 2 queries unscorable: the backend 'told' lacks 'temporal', which metadata.time of its queries asks for"
    assert said in " ".join(times.core("measure", "-q").out.split())
    assert report.n == 1


def test_round2_s3_where_nothing_could_be_asked_nothing_errored(space: Space) -> None:
    """S3: the next step is about what was asked for, since no answer failed."""
    queries = {"then": {"text": "t", "metadata": {"time": {"historical": True}}}, "unjudged": "t"}
    space.set({"d1": "t"}, queries, [("then", "d1", 1)])
    space.register("told", Told({}))
    space.arm()
    done = space.core("measure", "-q")
    assert done.code == 3
    assert "arm  1 query unscorable: no positive judgement" in done.out
    assert "Next: mend why no query could be scored and measure again" in done.out


def test_a_backend_with_time_indexes_every_version_and_hears_the_time(times: Space) -> None:
    answers = {"query 1": ["new"], "query 2": ["old"], "query 3": ["old", "new"]}
    backend = Told(answers, {"temporal"})
    report = times.measure(backend, text="")
    assert backend.indexed == [["old", "new", "other"]]
    assert {request.id: request.time for request in backend.asked} == {
        "now": None,
        "then": {"as_of": 0},
        "ever": {"historical": True},
    }
    assert report.n == 3
    wrong = times.measure(Told({**answers, "query 1": ["new", "old"], "query 2": ["new"]}, {"temporal"}))
    assert outcomes(wrong) == {"now": "errored", "then": "errored", "ever": "scored"}
