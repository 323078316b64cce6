"""Ways to make the gate lie by changing the policy: floors, evidence, baseline, budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eval_core.reports.report import dump
from eval_gate.policy import MARGIN, SETTLED_RUNS
from eval_gate.selftest.attack import OTHER_COMMIT, OTHER_RUN, Attack
from eval_gate.selftest.bench import Bench, Untried, derived
from eval_gate.selftest.rebuild import fillers, found, lost, rebuilt


def _edits(change: Callable[[dict[str, Any]], str | None]) -> Callable[[Bench], str | None]:
    """Change the arm's table of the floors; what `change` returns must be named in the refusal."""

    def act(bench: Bench) -> str | None:
        named: list[str | None] = []
        bench.edit_arm(lambda arm: named.append(change(arm)))
        return named[0]

    return act


def _first(arm: dict[str, Any]) -> str:
    return str(next(iter(arm["metrics"])))


def _misspelt(arm: dict[str, Any]) -> str:
    name = _first(arm)
    wrong = name.replace("recall", "recal").replace("hit", "hitt").replace("mrr", "mmr")
    wrong = wrong if wrong != name else f"x{name}"
    arm["metrics"] = {wrong if key == name else key: floor for key, floor in arm["metrics"].items()}
    return wrong


def _lowered(arm: dict[str, Any]) -> str:
    name = _first(arm)
    floor = arm["metrics"][name]
    if "max_misses" in floor:
        floor["max_misses"] += 1
    else:
        floor["floor"] -= 1 / arm["n"]
    return name


def _of_zero(arm: dict[str, Any]) -> str:
    name = _first(arm)
    floor = arm["metrics"][name]
    arm["metrics"][name] = {"max_misses": arm["n"]} if "max_misses" in floor else {"floor": 0.0}
    return name


def _without_a_metric(arm: dict[str, Any]) -> str:
    name = _first(arm)
    del arm["metrics"][name]
    if not arm["metrics"]:
        raise Untried("the arm has one floor")
    return name


def _without_floors(arm: dict[str, Any]) -> None:
    arm["metrics"] = {}


def _without_a_category(arm: dict[str, Any]) -> str:
    if not arm.get("categories"):
        raise Untried("no category has floors")
    name = next(iter(arm["categories"]))
    del arm["categories"][name]
    return str(name)


def _fixed(arm: dict[str, Any], margin: int) -> None:
    arm["margin"], arm["margin_rule"] = margin, "fixed"
    arm.pop("flip_rate", None)
    derived(arm)


def _wider(arm: dict[str, Any]) -> str:
    arm.pop("reason", None)
    _fixed(arm, max(arm["margin"], MARGIN) + 1)
    return "margin"


def _endless(arm: dict[str, Any]) -> None:
    """A margin of the whole set, explained, from which floors of nothing follow."""
    arm["reason"] = "self-test"
    _fixed(arm, arm["n"])


def _tracked(arm: dict[str, Any]) -> str:
    arm.pop("reason", None)
    arm["tracked"] = True
    return "tracked"


def _only_tracked(arm: dict[str, Any]) -> None:
    arm["reason"] = "self-test"
    arm["tracked"] = True


def _smaller(arm: dict[str, Any]) -> None:
    if arm["n"] < 2 or any(part["n"] >= arm["n"] for part in arm.get("categories", {}).values()):
        raise Untried("a category is as large as the set, which a smaller n would contradict")
    arm["n"] -= 1
    if arm.get("margin_rule") == "derived":
        arm["reason"] = "self-test"
        _fixed(arm, arm["margin"])
    derived(arm)


def _misquoted(arm: dict[str, Any]) -> None:
    """The evidence is said to be worse than it was, and the floors follow."""
    for run in arm["evidence"]:
        for name in run["values"]:
            run["values"][name] = max(0.0, run["values"][name] - 1 / arm["n"])
    derived(arm)


def _one_run(arm: dict[str, Any]) -> None:
    arm["evidence"] = arm["evidence"][-1:]
    arm["provisional"] = SETTLED_RUNS > 1
    derived(arm)


def _one_run_twice(arm: dict[str, Any]) -> None:
    arm["evidence"] = arm["evidence"][-1:] * 2
    arm["provisional"] = SETTLED_RUNS > 2
    derived(arm)


def _unknown(arm: dict[str, Any]) -> str:
    arm["margn"] = 2
    return "margn"


def _deleted(bench: Bench) -> None:
    bench.put(bench.floors_path, None)


def _without_budget(bench: Bench) -> None:
    """A budget without floors is a fault by itself; who deletes the one deletes the other."""
    bench.edit_budgets(lambda table: table["arms"].pop(bench.arm, None))


def _emptied(bench: Bench) -> None:
    bench.put(bench.floors_path, b'schema = "floors-v1"\n')
    _without_budget(bench)


def _without_its_arm(bench: Bench) -> None:
    bench.edit_floors(lambda table: table["arms"].pop(bench.arm))
    _without_budget(bench)


def _newer(bench: Bench) -> None:
    bench.edit_floors(lambda table: table.update(min_gate="9999"))


def _copy_deleted(bench: Bench) -> None:
    bench.put(bench.copies()[0], None)


def _copy_edited(bench: Bench) -> None:
    """A copy of the evidence becomes another sound report."""
    from eval_core.reports.report import read_report

    path = bench.copies()[0]
    copy = read_report(path, bench.arm)
    environment = copy.environment.model_copy(update={"commit": OTHER_COMMIT})
    bench.put(path, dump(rebuilt(copy, environment=environment)))


def _baseline_deleted(bench: Bench) -> None:
    bench.put(bench.baseline_path, None)


def _baseline_edited(bench: Bench) -> None:
    raw = bench.baseline_path.read_bytes()
    bench.put(bench.baseline_path, raw[: len(raw) // 2])


def _baseline_worse(bench: Bench) -> None:
    """The same run, said to have lost a query: nothing to fall from."""
    row = next((row for row in bench.baseline.rows if found(row)), None)
    if row is None:
        raise Untried("the baseline found nothing")
    spare = fillers(bench.baseline)
    rows = [lost(row, spare(row)) if one is row else one for one in bench.baseline.rows]
    bench.put(bench.baseline_path, dump(rebuilt(bench.baseline, rows)))


def _baseline_of_another_run(bench: Bench) -> None:
    bench.put(bench.baseline_path, dump(rebuilt(bench.report, run_id=OTHER_RUN).stripped()))


def _budgets_deleted(bench: Bench) -> None:
    bench.put(bench.budgets_path, None)


def _budget_misspelt(bench: Bench) -> str:
    bench.edit_budgets(lambda table: table["arms"].setdefault(bench.arm, {}).update(p95_mss=1.0))
    return "p95_mss"


def _budget_of_no_arm(bench: Bench) -> str:
    bench.edit_budgets(lambda table: table["arms"].update({"self-test-no-arm": {"p95_ms": 1.0}}))
    return "self-test-no-arm"


_INVALID = ("input-invalid",)

POLICY = (
    Attack("policy", "the floors file is deleted", ("floors-missing",), _deleted),
    Attack("policy", "the floors file is emptied", ("policy-vacuous",), _emptied),
    Attack("policy", "the arm's floors are deleted", ("floors-deleted",), _without_its_arm),
    Attack("policy", "the arm has no floor", ("floors-vacuous",), _edits(_without_floors)),
    Attack("policy", "one floor is deleted", _INVALID, _edits(_without_a_metric)),
    Attack("policy", "the floors of a category are deleted", _INVALID, _edits(_without_a_category)),
    Attack("policy", "a measure is misspelt", _INVALID, _edits(_misspelt)),
    Attack("policy", "an unknown key", _INVALID, _edits(_unknown)),
    Attack("policy", "a floor is lowered by hand", _INVALID, _edits(_lowered)),
    Attack("policy", "a floor of 0", _INVALID, _edits(_of_zero)),
    Attack("policy", "a margin of the whole set", ("floors-vacuous",), _edits(_endless)),
    Attack("policy", "a wider margin without a reason", _INVALID, _edits(_wider)),
    Attack("policy", "tracked only, without a reason", _INVALID, _edits(_tracked)),
    Attack("policy", "no arm that gates", ("policy-vacuous",), _edits(_only_tracked)),
    Attack("policy", "a smaller n", ("n-differs",), _edits(_smaller)),
    Attack("policy", "floors of one run", ("floors-without-evidence",), _edits(_one_run)),
    Attack("policy", "floors of one run, cited twice", ("floors-without-evidence",), _edits(_one_run_twice)),
    Attack("policy", "evidence misquoted, floors to match", ("evidence-differs",), _edits(_misquoted)),
    Attack("policy", "evidence edited", ("evidence-differs",), _copy_edited),
    Attack("policy", "evidence deleted", ("evidence-missing",), _copy_deleted),
    Attack("policy", "floors for a newer gate", ("gate-outdated",), _newer),
    Attack("policy", "the baseline is deleted", ("baseline-missing",), _baseline_deleted),
    Attack("policy", "the baseline is cut short", ("baseline-malformed",), _baseline_edited),
    Attack("policy", "a worse baseline under its name", ("baseline-differs",), _baseline_worse),
    Attack("policy", "a baseline of another run", ("policy-mixed",), _baseline_of_another_run),
    Attack("policy", "the budgets file is deleted", ("budgets-missing",), _budgets_deleted),
    Attack("policy", "a budget is misspelt", _INVALID, _budget_misspelt),
    Attack("policy", "a budget of no arm", _INVALID, _budget_of_no_arm),
)
