"""The catalogue of the self-test: every known way to make the gate lie, as a table.

`eval-gate self-test` makes these attacks on a workspace's own policy; the tests of this repository run the same table
on a set of theirs. An attack is caught where the gate says no for its own reason: a refusal for another one means that
the guard which should have spoken is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from eval_core.policy import FLOORS as FLOORS_FILE
from eval_core.policy import P95_MS
from eval_core.reports.provenance import sidecar
from eval_gate.selftest import edits, reports
from eval_gate.selftest.bench import STRAY, Bench
from eval_gate.selftest.models import On

#: The rules that notice worse answers.
WORSE = ("floor-breached", "baseline-drop", "must-pass-lost")


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to make the gate lie.

    Attributes:
        on: what it changes.
        name: what is done.
        codes: the reasons that name it, any of which catches it.
        act: changes the bench; returns a text that the key, subject, category or file of the reason has to hold,
            or None.
        cases: the numbers of the cases that it is a form of.
        requires: what the policy has to require for it to be caught.
        target: the gate is asked as on a pull request: it looks at git, and holds the policy against the commit before.
        whole: it concerns the policy as a whole, so that all arms are graded, and it is made once.
    """

    on: On
    name: str
    codes: tuple[str, ...]
    act: Callable[[Bench], object]
    cases: str = ""
    requires: str | None = None
    target: bool = False
    whole: bool = False


def attacks() -> Iterator[Attack]:
    """Every attack, in the order in which they are shown."""
    yield from REPORT
    yield from EVIDENCE
    yield from FLOORS
    yield from BUDGETS
    yield from SET
    yield from ANSWERS
    yield from CONFIGURATION
    yield from MOVED


def _attack(on: On) -> Callable[..., Attack]:
    def make(name: str, codes: str, act: Callable[[Bench], object], cases: str = "", **how: Any) -> Attack:
        return Attack(on, name, tuple(codes.split()), act, cases, **how)

    return make


def _overall(change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], object]:
    """Edit what the summary says of all queries."""
    return lambda bench: bench.edit_report(lambda report: change(report["summary"]["overall"]))


_on = _attack("report")
REPORT = (
    _on("the report is missing, as after a crash", "report-missing", lambda b: b.put(b.report_path, None), "8 19"),
    _on("the report is empty", "report-malformed", lambda b: b.put(b.report_path, b""), "8"),
    _on("the report is cut short", "report-malformed", reports.cut_short, "8"),
    _on("another arm's report", "report-of-another-arm", reports.of_another_arm, "8"),
    _on("another arm's report, renamed by hand", "report-malformed", reports.renamed, "8"),
    _on("a report from before the evidence", "report-stale", reports.last_week, "8"),
    _on("a report of another commit", "commit-differs",
        reports.measured(commit=reports.OTHER_COMMIT), "8 18 B1", requires="head", target=True),
    _on("git tracks the report", "report-tracked", lambda b: b.track(b.report_path), "B1", target=True),
    _on("the tree changed after measuring", "tree-changed",
        lambda b: b.put(b.root / STRAY, b""), "18 B1", requires="clean", target=True),
    _on("measured on a dirty tree", "tree-dirty", reports.measured(dirty=True), "18", requires="clean", target=True),
    _on("measured in another class of place", "class-differs",
        reports.measured(class_=reports.OTHER), requires="class"),
    _on("an arm that has no floors", "arm-not-gated", reports.without_floors, requires="every-arm", whole=True),
    _on("a changed file that git was told not to look at", "tree-changed",
        edits.overlooked, "B5", requires="clean", target=True),
    _on("a better latency, and no provenance", "provenance-missing",
        reports.faster_by_hand, "B6", requires="provenance"),
    _on("no provenance", "provenance-missing", lambda b: b.put(sidecar(b.report_path), None), requires="provenance"),
    _on("provenance of another producer", "provenance-diverges", reports.other_provenance),
    _on("replaced, its provenance kept", "provenance-subject-differs", reports.replaced),
    _on("resumed after an interruption", "report-resumed", lambda b: b.forge(resumed=True)),
    _on("an index taken from a cache", "index-cached", lambda b: b.forge(index="cached")),
    _on("a committed copy without process and timing", "report-stripped",
        lambda b: b.put_report(b.report.stripped()), "8"),
    *(
        _on(f"{shown} as a mean", "report-malformed", reports.mean(value), "9")
        for shown, value in (
            ("NaN", float("nan")),
            ("Infinity", float("inf")),
            ("true", True),
            ('"0.95"', "0.95"),
            ("-1", -1),
            ("1.5", 1.5),
        )
    ),
    _on("n as a float", "report-malformed", _overall(lambda overall: overall.update(n=float(overall["n"]))), "9"),
    _on("n as a text", "report-malformed", _overall(lambda overall: overall.update(n=str(overall["n"]))), "9"),
    _on("a mean is missing", "report-malformed", _overall(lambda overall: overall["metrics"].popitem()), "10"),
    _on("an unknown key", "report-malformed", lambda b: b.edit_report(lambda report: report.update(sumary={})), "10"),
    _on("a key given twice", "report-malformed", reports.key_twice),
    _on("the mean edited", "report-malformed", reports.better_mean, "14"),
    _on("every value edited to 1", "report-malformed", reports.all_found, "14"),
    _on("a row left out", "report-malformed", lambda b: b.edit_report(lambda report: report["rows"].pop()), "14"),
    _on("rankings edited, their values kept", "report-malformed", reports.edited_rankings, "14"),
    _on("a document twice in a ranking", "report-malformed", reports.document_twice, "12"),
    _on("a headline that no row has", "report-malformed",
        lambda b: b.edit_report(lambda report: report["dataset"].update(headline="recall@5107")), "B9"),
)  # fmt: skip

_on = _attack("evidence")
EVIDENCE = (
    _on("the evidence is deleted", "evidence-missing", lambda b: b.put(b.evidence_path, None), "17"),
    _on("the line of a cited run is deleted", "evidence-missing", edits.without_a_line, "17"),
    _on("a run that nobody measured is cited", "evidence-missing",
        lambda b: b.edit_arm(lambda arm: arm["runs"].append(reports.OTHER)), "17"),
    _on("a line is cut short", "evidence-malformed", edits.cut_line, "17"),
    _on("a line is there twice", "evidence-malformed", edits.line_twice),
    _on("a rank is edited", "evidence-contradicts", edits.edited(edits.lose_a_rank), "B3"),
    _on("the health of a run is edited", "evidence-contradicts",
        edits.edited(lambda line: line["health"].update(scored=line["health"]["scored"] - 1)), "B3"),
    _on("the health of a run is edited, its digest redone", "evidence-contradicts", edits.fewer_scored, "B3"),
    _on("the commit of a run is edited", "evidence-contradicts",
        edits.edited(lambda line: line.update(commit=reports.OTHER_COMMIT)), "B3"),
    _on("a run that found nothing, floors to match", "floor-vacuous", edits.two_runs(edits.found_nothing), "7"),
    _on("a run on a dirty tree", "evidence-dirty", edits.run_with(clean=False)),
    _on("a run that was resumed", "evidence-resumed", edits.run_with(resumed=True)),
    _on("a run with a cached index", "evidence-cached", edits.run_with(index="cached")),
    _on("a run of another class", "evidence-class-differs", edits.run_with(class_="self-test")),
    _on("a run with errors", "evidence-errored", edits.beside(edits.errored), "13"),
    _on("a run of fewer queries", "evidence-task-differs", edits.beside(edits.fewer_queries), "1"),
    _on("a run of another system", "evidence-system-differs", edits.beside(edits.another_system)),
)  # fmt: skip

_on = _attack("floors.toml")
FLOORS = (
    _on("the file is deleted", "floors-missing", lambda b: b.put(b.policy / FLOORS_FILE, None), "11", whole=True),
    _on("the file is emptied", "policy-vacuous", edits.emptied, "11", whole=True),
    _on("the arm is deleted", "floors-deleted", edits.without_arm, "11 B13", whole=True),
    _on("the arm has no floor", "floors-vacuous", edits.in_arm(floors={}, misses_allowed={}), "11"),
    _on("a floor is deleted", "reason-missing", edits.without_a_measure, "10 measure"),
    _on("a measure is misspelt", "metric-missing", edits.first_floor(edits.misspell), "10"),
    _on("a key is misspelt", "input-invalid", edits.in_arm("margn", margn=2), "10"),
    _on("odds are kept in the file", "input-invalid", edits.in_arm("odds", odds={"false_alarm": 0.0}), "B11"),
    _on("a floor is lowered by hand", "floor-not-derived", edits.first_floor(edits.lower), "16"),
    _on("a floor is rounded", "floor-not-derived", edits.rounded, "15"),
    _on("a floor of 0", "floor-not-derived", edits.first_floor(edits.nothing), "11"),
    _on("the floors of a category are deleted", "floor-not-derived", edits.without_a_category),
    _on("a smaller n", "floor-not-derived", edits.smaller_n, "1"),
    _on("a wider margin", "reason-missing", edits.wider_margin, "16 B2"),
    _on("a margin of the whole set, with a reason", "floor-vacuous", edits.endless_margin, "11"),
    _on("a pinned corpus drifts, with a reason", "corpus-pinned", edits.drifting, "B2 drift"),
    _on("less is required", "reason-missing", edits.requires_less, "B2 require", whole=True),
    _on("floors of one run", "floors-without-evidence", lambda b: b.refloor([b.floors.baseline]), "17"),
    _on("floors of one run, cited twice", "floors-without-evidence",
        lambda b: b.refloor([b.floors.baseline] * 2), "17"),
    _on("the runs are reordered", "runs-misordered",
        lambda b: b.edit_arm(lambda arm: arm["runs"].reverse()), "reordered"),
    _on("floors for a newer gate", "gate-outdated",
        lambda b: b.edit_floors(lambda table: table.update(min_gate="9999")), whole=True),
)  # fmt: skip

_on = _attack("budgets.toml")
BUDGETS = (
    _on("a key is misspelt", "input-invalid", edits.budget("p95_mss", 1.0), "10"),
    _on("a budget of no arm", "input-invalid", edits.budget_of_no_arm, "10"),
    _on("any latency is allowed", "reason-missing", edits.budget("p95_ms", 1e300), "B2"),
    _on("any drop is allowed", "reason-missing", edits.any_drop, "B2"),
)

_on = _attack("set")
SET = (
    _on("the queries that fail are deleted", "query-set-differs", reports.failing_deleted, "1"),
    _on("an easy query is added", "query-set-differs", reports.easy_added, "2"),
    _on("a query that fails becomes an easy one", "query-set-differs", reports.failing_replaced, "1 2"),
    _on("labels become what was returned", "judgements-differ", reports.labels_rewritten, "3"),
    _on("one more document is called relevant", "judgements-differ", reports.one_more_label, "3"),
    _on("the queries that fail are reworded", "queries-differ", reports.reworded, "1"),
    _on("a query that must pass need not", "queries-differ", reports.forgiven),
    _on("documents are dropped", "corpus-differs corpus-size-differs", reports.documents_dropped, "4"),
    _on("the texts of two documents are swapped", "corpus-differs", reports.texts_swapped, "4"),
    _on("another split", "split-differs", reports.part(split="self-test")),
    _on("another kind of set", "kind-differs", reports.part(kind="self-test")),
    _on("another timeline", "timeline-differs", reports.part(timeline=reports.OTHER_DIGEST)),
    _on("other links", "links-differ", reports.part(links=reports.OTHER_DIGEST)),
    _on("other concepts", "concepts-differ", reports.part(concepts=reports.OTHER_DIGEST)),
    _on("another filter", "filter-differs", reports.filtered, "5"),
    _on("another scale", "scale-differs", reports.part(scale=5107)),
    _on("twice as many documents are asked for", "limit-differs", reports.higher_limit, "5"),
    _on("the measures are defined in another way", "metric-definitions-differ", reports.part(metrics="5e1f"), "5"),
    _on("the cut-offs that floors need are gone", "metric-missing", reports.other_cutoffs, "5"),
    _on("another headline", "headline-differs", lambda b: b.forge(facts=reports.headline_of(b)), "B2 headline"),
)  # fmt: skip

_on = _attack("answers")
ANSWERS = (
    _on("one query more is lost than the bar allows", " ".join(WORSE), reports.smallest_loss, "B8"),
    _on("rankings are shuffled", " ".join(WORSE), reports.shuffled),
    _on("rankings are reversed", " ".join(WORSE), reports.answering(lambda row: row.ids[::-1])),
    _on("rankings are cut to one document", " ".join(WORSE), reports.answering(lambda row: row.ids[:1])),
    _on("rankings are empty", " ".join(WORSE), reports.answering(lambda row: ())),
    _on("rankings are empty, queries in another order", " ".join(WORSE), reports.emptied_and_reordered, "6"),
    _on("the queries that fail are errored", "rows-errored", reports.failing("errored"), "13"),
    _on("the queries that fail are not asked", "rows-errored", reports.failing("unscored"), "13"),
    _on("the queries that fail are unscorable", "n-differs", reports.failing("unscorable"), "13"),
    _on("a query that must pass is lost", "must-pass-lost", reports.must_pass_lost),
    _on("answers are twice as slow as the budget", "latency-over-budget", reports.timed(reports.slow), "B12"),
    _on("too few samples for the budget", "latency-not-measurable", reports.timed(reports.few_samples)),
    _on("more repetitions, from warm caches", "repetitions-differ", reports.timed(reports.more_repetitions)),
)  # fmt: skip

_on = _attack("eval.toml")
CONFIGURATION = (
    _on("changed after measuring", "provenance-diverges", edits.other_configuration, "5"),
    _on("deleted, so that nothing is compared", "config-missing", lambda b: b.put(b.config, None), "B4"),
)

# What only the state before can tell: the policy is held against the commit that it was changed in.
_on = _attack("policy")
MOVED = (
    _on("two invented runs that are worse", "bar-loosened", edits.two_runs(edits.worse), "16 invented", target=True),
    _on("an old run rewritten, digests redone", "evidence-rewritten",
        edits.rewritten_run, "B3 rewritten", target=True),
    _on("an invented older run", "bar-loosened", edits.older_run, "invented", target=True),
    _on("runs with another headline", "bar-loosened",
        edits.two_runs(edits.another_headline), "headline", target=True),
    _on("an old reason for a wider margin", "bar-loosened",
        edits.old_reason_for_margin, "B2 old-reason", target=True),
    _on("an old reason for a slower budget", "bar-loosened",
        edits.old_reason_for_budget, "B2 old-reason", target=True),
    _on("a tighter budget is deleted", "bar-loosened",
        edits.budget_deleted("p95_ms", P95_MS / 2), "B12", target=True),
    _on("the largest drop everywhere is deleted", "bar-loosened",
        edits.budget_deleted("max_drop_everywhere", 1.0), target=True),
    _on("a measure is left out", "bar-loosened", edits.without_a_measure, "measure", target=True),
    _on("less is required than before", "bar-loosened", edits.requires_less, "require", target=True, whole=True),
    _on("a weaker promotion rule", "promotion-rules-differ",
        edits.weaker_rules, "rules", target=True, whole=True),
    _on("the arm is renamed", "floors-deleted", edits.renamed_arm, "renamed", target=True, whole=True),
    _on("the arm is deleted, evidence and all", "floors-deleted",
        edits.deleted_arm, "B13 deleted", target=True, whole=True),
)  # fmt: skip
