"""What attacks change of a policy: evidence, floors.toml, budgets.toml, rules, and eval.toml beside it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from eval_core.policy import BUDGETS, FLOORS, MARGIN, P95_MS, Line, dump, line_of, usual_measures
from eval_core.reports import Key, Report
from eval_core.reports.provenance import sidecar
from eval_gate.selftest.bench import Bench, Untried, sealed
from eval_gate.selftest.rebuild import answered, found, lost, rebuilt
from eval_gate.selftest.reports import OTHER, Act, headline_of, shifted

Table = dict[str, Any]

# ------------------------------------------------------------------------------------------------------------- evidence


def without_a_line(bench: Bench) -> None:
    bench.put(bench.evidence_path, dump(bench.floors.lines[1:]))


def cut_line(bench: Bench) -> None:
    bench.put(bench.evidence_path, bench.evidence_path.read_bytes()[:-40])


def line_twice(bench: Bench) -> None:
    raw = bench.evidence_path.read_bytes()
    bench.put(bench.evidence_path, raw + raw.splitlines(keepends=True)[-1])


def edited(change: Callable[[Table], object]) -> Act:
    """The first line, which is written whole, is edited by hand: no digest follows."""

    def act(bench: Bench) -> None:
        first, *others = bench.evidence_path.read_bytes().splitlines(keepends=True)
        table = json.loads(first)
        change(table)
        bench.put(bench.evidence_path, b"".join([json.dumps(table).encode() + b"\n", *others]))

    return act


def lose_a_rank(line: Table) -> None:
    judged = [one for entry in line["entries"] for one in entry.get("judged", ()) if one[2] is not None]
    if not judged:
        raise Untried("the run found nothing")
    judged[0][2] = None


def run_with(**changes: Any) -> Act:
    """The first run says something else of itself, its digest redone."""
    return lambda bench: bench.put_lines([sealed(bench.floors.lines[0], **changes)])


def fewer_scored(bench: Bench) -> None:
    health = bench.floors.lines[0].health
    run_with(health=health.model_copy(update={"scored": health.scored - 1}))(bench)


def _run(bench: Bench, days: int, report: Report | None = None, run_id: str = "") -> Line:
    """A report as a run so many days after the baseline."""
    last, report = bench.floors.baseline, report or bench.report
    where = {"started": shifted(last.started, days), "class_": last.class_, "dirty": False}
    environment = report.environment.model_copy(update=where)
    return line_of(rebuilt(report, run_id=run_id or f"{OTHER}-{days}", environment=environment))


def two_runs(change: Callable[[Bench], Report]) -> Act:
    """Two invented runs, and the floors that follow from them."""

    def act(bench: Bench) -> None:
        report = change(bench)
        lines = [_run(bench, days, report) for days in (1, 2)]
        bench.put_lines(lines)
        bench.refloor(lines)

    return act


def beside(change: Callable[[Bench], Report]) -> Act:
    """An invented run beside one of the present state."""

    def act(bench: Bench) -> None:
        lines = [_run(bench, 1, change(bench)), _run(bench, 2)]
        bench.put_lines(lines)
        bench.refloor(lines[1:], runs=[line.run_id for line in lines])

    return act


def found_nothing(bench: Bench) -> Report:
    return rebuilt(bench.report, [answered(row, ()) for row in bench.report.rows])


def errored(bench: Bench) -> Report:
    first, *others = bench.report.rows
    return rebuilt(bench.report, [first.model_copy(update={"outcome": "errored", "detail": OTHER}), *others])


def fewer_queries(bench: Bench) -> Report:
    if len(bench.report.rows) < 2:
        raise Untried("the set has one query")
    return rebuilt(bench.report, bench.report.rows[1:])


def another_system(bench: Bench) -> Report:
    return rebuilt(bench.report, system=Key.of({**bench.report.system.parts, "implementation": OTHER}))


def another_headline(bench: Bench) -> Report:
    return rebuilt(bench.report, facts=headline_of(bench))


def worse(bench: Bench) -> Report:
    """A query less is found."""
    hit = next((row for row in bench.report.rows if found(row)), None)
    if hit is None:
        raise Untried("nothing was found")
    return rebuilt(bench.report, [lost(row) if row is hit else row for row in bench.report.rows])


def overlooked(bench: Bench) -> None:
    """Another eval.toml, at which git was told not to look."""
    if not bench.config.exists():
        raise Untried("there is no eval.toml")
    bench.overlook(bench.config)
    bench.put(bench.config, bench.config.read_bytes() + b"\n# changed\n")


def rewritten_run(bench: Bench) -> None:
    old, *others = bench.floors.lines
    line = _run(bench, 0, worse(bench), old.run_id)
    lines = [sealed(line, started=old.started), *others]
    bench.put_lines(lines)
    bench.refloor(lines)


def older_run(bench: Bench) -> None:
    days = -100
    while shifted(bench.floors.baseline.started, days) > bench.floors.lines[0].started:
        days *= 2
    lines = [_run(bench, days, worse(bench)), *bench.floors.lines[:-1]]
    bench.put_lines(lines)
    bench.refloor(lines)


# ---------------------------------------------------------------------------------------------------------- floors.toml


def emptied(bench: Bench) -> None:
    bench.put(bench.policy / FLOORS, b'schema = "floors-v2"\n')
    bench.put(bench.policy / BUDGETS, None)


def without_arm(bench: Bench) -> str:
    bench.edit_floors(lambda table: table["arms"].pop(bench.arm))
    if (bench.policy / BUDGETS).exists():
        bench.edit(bench.policy / BUDGETS, lambda table: table.get("arms", {}).pop(bench.arm, None))
    return bench.arm


def in_arm(named: str = "", **keys: Any) -> Act:
    """Other keys in the arm's table; the refusal has to name `named`."""

    def act(bench: Bench) -> str:
        bench.edit_arm(lambda arm: arm.update(keys))
        return named

    return act


def without_a_measure(bench: Bench) -> str:
    usual, held = usual_measures(bench.floors.baseline), bench.floors.floors.measures
    name = next((name for name in held if name in usual), "")
    if len(held) < 2 or not name:
        raise Untried("the arm has one floor")

    def change(arm: Table) -> None:
        for part in (arm, *arm.get("categories", {}).values()):
            for key in ("floors", "misses_allowed", "reasons"):
                part.get(key, {}).pop(name, None)

    bench.edit_arm(change)
    return name


def first_floor(change: Callable[[Table, str], object]) -> Act:
    """Change the arm's first floor, whose measure the refusal has to name."""

    def act(bench: Bench) -> str:
        key = "floors" if bench.floors.floors.floors else "misses_allowed"
        name = bench.floors.floors.measures[0]
        bench.edit_arm(lambda arm: change(arm[key], name))
        return name

    return act


def lower(table: Table, name: str) -> None:
    table[name] += 1 if isinstance(table[name], int) else -2e-6


def nothing(table: Table, name: str) -> None:
    table[name] = 10**6 if isinstance(table[name], int) else 0.0


def misspell(table: Table, name: str) -> None:
    table[f"x{name}"] = table.pop(name)


def rounded(bench: Bench) -> str:
    floors = bench.floors.floors.floors
    name = next((name for name, floor in floors.items() if abs(round(floor, 2) - floor) > 1e-5), None)
    if name is None:
        raise Untried("every floor is round")
    bench.edit_arm(lambda arm: arm["floors"].update({name: round(floors[name], 2)}))
    return name


def without_a_category(bench: Bench) -> str:
    name = next(iter(bench.floors.floors.categories), None)
    if name is None:
        raise Untried("no category has floors")
    bench.edit_arm(lambda arm: arm["categories"].pop(name))
    return name


def smaller_n(bench: Bench) -> str:
    bench.edit_arm(lambda arm: arm.update(n=arm["n"] - 1 or 2))
    return "n"


def _margin(bench: Bench, margin: int, reason: str = "") -> str:
    reasons = {key: why for key, why in bench.floors.floors.reasons.items() if key != "margin"}
    reasons |= {"margin": reason} if reason else {}
    bench.refloor(choices=replace(bench.floors.choices, margin=margin), margin=margin, reasons=reasons)
    return "margin"


def _wider(bench: Bench) -> int:
    return max(bench.floors.margin, MARGIN) + 1


def wider_margin(bench: Bench) -> str:
    return _margin(bench, _wider(bench))


def endless_margin(bench: Bench) -> None:
    _margin(bench, bench.floors.floors.n, OTHER)


def drifting(bench: Bench) -> None:
    if bench.floors.baseline.set and bench.floors.baseline.set.moves:
        raise Untried("a source of its corpus moves")
    reasons = {**bench.floors.floors.reasons, "corpus": OTHER}
    choices = replace(bench.floors.choices, drifts=True)
    bench.refloor(choices=choices, corpus="drifts", drift=0.5, reasons=reasons)


def requires_less(bench: Bench) -> str:
    if not bench.files.floors.require:
        raise Untried("nothing is required")
    bench.edit_floors(lambda table: table.update(require=[], reasons={}))
    return "require"


# ---------------------------------------------------------------------------------------------- budgets.toml, eval.toml


def budget_of_no_arm(bench: Bench) -> str:
    bench.edit_budget(lambda budget: None)
    bench.edit(bench.policy / BUDGETS, lambda table: table["arms"].update({OTHER: {"p95_ms": 1.0}}))
    return OTHER


def budget(key: str, value: object) -> Act:
    """Another budget, for which there is no reason."""

    def act(bench: Bench) -> str:
        def change(table: Table) -> None:
            table[key] = value
            table.get("reasons", {}).pop(key, None)

        bench.edit_budget(change)
        return key

    return act


def any_drop(bench: Bench) -> str:
    drops = {bar.measure: 100.0 for bar in bench.floors.bars if bar.points is not None}
    budget("max_drop", drops)(bench)
    return "max_drop"


def other_configuration(bench: Bench) -> None:
    text = bench.config.read_text(encoding="utf-8") if bench.config.exists() else ""
    if bench.arm not in tomllib.loads(text).get("arms", {}):
        raise Untried("eval.toml does not have the arm")
    limit = int(str(bench.report.task.parts["limit"])) + 1
    bench.edit(bench.config, lambda table: table["arms"][bench.arm].update(limit=limit))


# --------------------------------------------------------------------------------- what only the state before can tell


def old_reason_for_margin(bench: Bench) -> str:
    _margin(bench, _wider(bench), OTHER)
    bench.commit()
    return _margin(bench, _wider(bench) + 1, OTHER)


def old_reason_for_budget(bench: Bench) -> str:
    def slower(times: int) -> Callable[[Table], object]:
        return lambda held: held.update(p95_ms=times * P95_MS, reasons={"p95_ms": OTHER})

    bench.edit_budget(slower(2))
    bench.commit()
    bench.edit_budget(slower(4))
    return "p95_ms"


def budget_deleted(key: str, value: float) -> Act:
    """A tighter budget than the usual one was there before."""

    def act(bench: Bench) -> str:
        bench.edit_budget(lambda table: table.update({key: value}))
        bench.commit()
        bench.edit_budget(lambda table: table.pop(key))
        return key

    return act


def weaker_rules(bench: Bench) -> None:
    path = bench.policy / "promotion.toml"
    conditions = [{"metric": "recall@10", "is": "higher"}, {"check": "stable", "runs": 2}]
    rules = {"schema": "promotion-rules-v1", "rule": [{"over": bench.arm, "conditions": conditions}]}
    bench.edit(path, lambda table: table.update(rules))
    bench.commit()
    bench.edit(path, lambda table: table["rule"][0]["conditions"].pop())


def deleted_arm(bench: Bench) -> str:
    if len(bench.files.floors.arms) < 2:
        raise Untried("it is the only arm")
    without_arm(bench)
    for path in (bench.evidence_path, bench.report_path, sidecar(bench.report_path)):
        bench.put(path, None)
    return bench.arm


def renamed_arm(bench: Bench) -> str:
    name, evidence = f"{bench.arm}-{OTHER}", bench.evidence_path.read_bytes()
    table = tomllib.loads((bench.policy / FLOORS).read_text(encoding="utf-8"))["arms"][bench.arm]
    bench.edit_floors(lambda floors: floors["arms"].update({name: table}))
    deleted_arm(bench)
    bench.put(bench.evidence_path.with_name(f"{name}.jsonl"), evidence)
    bench.forge(arm=name)
    return bench.arm
