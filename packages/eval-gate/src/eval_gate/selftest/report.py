"""Ways to make the gate lie by what lies in the place of the report."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from eval_core.reports.provenance import sidecar
from eval_gate.selftest.attack import OTHER_COMMIT, OTHER_RUN, SEED, Attack
from eval_gate.selftest.bench import Bench, Untried
from eval_gate.selftest.rebuild import rebuilt


def _missing(bench: Bench) -> None:
    bench.put(bench.report_path, None)


def _empty(bench: Bench) -> None:
    bench.put(bench.report_path, b"")


def _cut_short(bench: Bench) -> None:
    raw = bench.report_path.read_bytes()
    bench.put(bench.report_path, raw[: len(raw) * 3 // 4])


def _of_another_arm(bench: Bench) -> None:
    for path in bench.others.values():
        bench.put(bench.report_path, path.read_bytes())
        return
    bench.put_report(rebuilt(bench.report, arm=f"{bench.arm}-other"))


def _renamed(bench: Bench) -> None:
    """Another arm's report with the arm's name written into it."""
    for path in bench.others.values():
        value = json.loads(path.read_bytes())
        value["arm"] = bench.arm
        bench.put(bench.report_path, json.dumps(value).encode())
        return
    raise Untried("there is no other arm")


def _ungated(bench: Bench) -> None:
    name = "self-test-no-arm"
    bench.put_report(rebuilt(bench.report, arm=name), bench.report_path.with_name(f"{name}.json"))


def _environment(bench: Bench, **fields: Any) -> None:
    environment = bench.report.environment.model_copy(update=fields)
    bench.put_report(rebuilt(bench.report, run_id=OTHER_RUN, environment=environment))


def _older_commit(bench: Bench) -> None:
    _environment(bench, commit=OTHER_COMMIT)


def _last_week(bench: Bench) -> None:
    oldest = min(run.started for run in bench.floors.evidence)
    before = datetime.fromisoformat(oldest) - timedelta(days=7)
    _environment(bench, commit=OTHER_COMMIT, started=before.isoformat().replace("+00:00", "Z"))


def _dirty(bench: Bench) -> None:
    _environment(bench, dirty=True)


def _elsewhere(bench: Bench) -> None:
    _environment(bench, class_=f"not-{bench.report.environment.class_}")


def _the_baseline(bench: Bench) -> None:
    bench.put(bench.report_path, bench.baseline_path.read_bytes())


def _evidence(bench: Bench) -> None:
    bench.put(bench.report_path, bench.copies()[0].read_bytes())


def _no_provenance(bench: Bench) -> None:
    bench.put(sidecar(bench.report_path), None)


def _other_provenance(bench: Bench) -> None:
    path = sidecar(bench.report_path)
    if not path.exists():
        raise Untried("the report has no provenance")
    value = json.loads(path.read_bytes())
    value["predicate"]["producer"]["tool"]["version"] += ".5e1f"
    bench.put(path, json.dumps(value).encode())


def _unvouched(bench: Bench) -> None:
    """The report is replaced by a sound one of another run, and its provenance stays."""
    path = sidecar(bench.report_path)
    if not path.exists():
        raise Untried("the report has no provenance")
    raw = path.read_bytes()
    bench.put_report(rebuilt(bench.report, run_id=OTHER_RUN))
    bench.put(path, raw)


def _resumed(bench: Bench) -> None:
    bench.put_report(rebuilt(bench.report, resumed=True))


def _cached(bench: Bench) -> None:
    bench.put_report(rebuilt(bench.report, index="cached"))


def _overall(value: object, key: str = "") -> Callable[[Bench], None]:
    """Put a value in the place of the headline's mean, or of n."""

    def act(bench: Bench) -> None:
        def change(report: Any) -> None:
            overall = report["summary"]["overall"]
            if key:
                overall[key] = type(value)(overall[key]) if isinstance(value, float | str) else value
            else:
                overall["metrics"][bench.report.dataset.headline] = value

        bench.edit_report(change)

    return act


def _better_summary(bench: Bench) -> None:
    def change(report: Any) -> None:
        values = report["summary"]["overall"]["metrics"]
        name = bench.report.dataset.headline
        values[name] += 1 / bench.report.n if values[name] < 1 else -1 / bench.report.n

    bench.edit_report(change)


def _everything_found(bench: Bench) -> None:
    """Every value of every row is 1, and so are the means: only the ranks say otherwise."""

    def change(report: Any) -> None:
        for row in report["rows"]:
            row["metrics"] = dict.fromkeys(row.get("metrics", {}), 1.0)
        parts = [report["summary"]["overall"], *report["summary"]["categories"].values()]
        for part in parts:
            part["metrics"] = dict.fromkeys(part["metrics"], 1.0)

    if all(value == 1 for row in bench.report.rows for value in row.metrics.values()):
        raise Untried("every value is 1 as it stands")
    bench.edit_report(change)


def _without_a_row(bench: Bench) -> None:
    bench.edit_report(lambda report: report["rows"].pop())


def _unscored_ranks(bench: Bench) -> None:
    """The rankings are shuffled, and nothing follows them."""
    chance = random.Random(SEED)

    def change(report: Any) -> None:
        for row in report["rows"]:
            row["ids"] = chance.sample(row.get("ids", []), len(row.get("ids", [])))

    if all(len(row.ids) < 2 for row in bench.report.rows):
        raise Untried("no ranking holds two documents")
    bench.edit_report(change)


def _twice(bench: Bench) -> None:
    """A document stands twice in a ranking, where it could count twice."""

    def change(report: Any) -> None:
        row = max(report["rows"], key=lambda row: len(row.get("ids", [])))
        ids = row["ids"]
        row["ids"] = [*ids[:-1], ids[0]] if len(ids) > 1 else ids * 2
        for judged in row["judged"]:
            if judged["id"] not in row["ids"] and judged["rank"] == len(ids):
                judged["rank"] = None

    if not any(row.ids for row in bench.report.rows):
        raise Untried("no ranking holds a document")
    bench.forge_report(change)


def _key_twice(bench: Bench) -> None:
    raw = bench.report_path.read_bytes()
    bench.put(bench.report_path, raw.replace(b"{", b'{"arm": ' + json.dumps(bench.arm).encode() + b",", 1))


def _unknown_key(bench: Bench) -> None:
    bench.edit_report(lambda report: report.update(sumary={}))


_MALFORMED = ("report-malformed",)

REPORT = (
    Attack("report", "the report is missing", ("report-missing",), _missing),
    Attack("report", "the report is empty", _MALFORMED, _empty),
    Attack("report", "the report is cut short", _MALFORMED, _cut_short),
    Attack("report", "another arm's report in its place", ("report-of-another-arm",), _of_another_arm),
    Attack("report", "another arm's report, renamed by hand", _MALFORMED, _renamed),
    Attack("report", "an arm without floors", ("arm-not-gated",), _ungated, requirement="every-arm"),
    Attack("report", "a copy of the baseline in its place", ("report-stripped",), _the_baseline),
    Attack("report", "a copy of the evidence in its place", ("report-stripped",), _evidence),
    Attack("report", "a report of another commit", ("commit-differs",), _older_commit, requirement="head"),
    Attack("report", "a report from before the evidence", ("report-stale",), _last_week),
    Attack("report", "measured on a dirty tree", ("tree-dirty",), _dirty, requirement="clean"),
    Attack(
        "report", "measured in another class of place", ("class-differs",), _elsewhere, requirement="class"
    ),
    Attack("report", "no provenance", ("provenance-missing",), _no_provenance, requirement="provenance"),
    Attack("report", "provenance of another producer", ("provenance-diverges",), _other_provenance),
    Attack("report", "replaced, its provenance kept", ("provenance-subject-differs",), _unvouched),
    Attack("report", "resumed after an interruption", ("report-resumed",), _resumed),
    Attack("report", "an index taken from a cache", ("index-cached",), _cached),
    *(
        Attack("report", f"{shown} as a mean", _MALFORMED, _overall(value))
        for shown, value in (
            ("NaN", float("nan")),
            ("Infinity", float("inf")),
            ("true", True),
            ('"0.95"', "0.95"),
            ("-1", -1),
            ("1.5", 1.5),
        )
    ),
    Attack("report", "n as a float", _MALFORMED, _overall(1.0, "n")),
    Attack("report", "n as a text", _MALFORMED, _overall("1", "n")),
    Attack("report", "the summary edited", _MALFORMED, _better_summary),
    Attack("report", "every value edited to 1", _MALFORMED, _everything_found),
    Attack("report", "a row dropped, all else kept", _MALFORMED, _without_a_row),
    Attack("report", "rankings shuffled, nothing recomputed", _MALFORMED, _unscored_ranks),
    Attack("report", "a document twice in a ranking", _MALFORMED, _twice),
    Attack("report", "a key given twice", _MALFORMED, _key_twice),
    Attack("report", "an unknown key", _MALFORMED, _unknown_key),
)
