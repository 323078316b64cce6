"""Every code that the sources give an error or a reason is registered, and no source cuts its own text."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_core import errors
from eval_core.cli import cli
from eval_core.reasons import GROUPS, PAGE, REASONS

ROOT = Path(__file__).resolve().parents[2]
REGISTER = "packages/eval-core/src/eval_core/reasons.py"
SOURCES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
}

#: The exit that a code must have where it is given to one of these: the errors, and what makes or becomes one.
EXITS = {
    "Refused": 1,
    "Misuse": 2,
    "CouldNot": 3,
    "Fault": 2,
    "Reason": 1,
    "Refusal": 1,
    "Finding": 1,
    "Problem": 1,
    "refusal": 1,
    "_no": 1,
    "_refused": 1,
    "refused": 1,
    "_error": 3,
    "error": 3,
}
#: Helpers of the gate whose names mean something else in the core: the refusal of a draft, or of a report.
OF_THE_GATE = {"refusal", "refused", "_refused"}
#: Which argument is the code; with `code=` or `reason=` it is given by name.
PLACES = {"_error": 1, "Fault": 99, "Reason": 99, "Refusal": 99}

#: Where a code is handed on or computed, by file and function, and from what.
COMPUTED = {
    ("rules/base.py", "says"): "a rule's id, which is no reason code",
    ("authoring/inspect.py", "inspect_set"): "the fault's own",
    ("backend.py", "plugin"): "of a backend or an importer: -unknown, -ambiguous, -broken",
    ("cli/compare.py", "_refusal"): "the error's own",
    ("cli/validate.py", "_report"): "the finding's own",
    ("compare/tasks.py", "__init__"): "task-differs",
    ("config.py", "fault"): "the caller's",
    ("measuring/partial.py", "_take_up"): "resume-task-differs, resume-system-differs",
    ("policy/eligibility.py", "unlike"): "evidence-task-differs, evidence-system-differs",
    ("policy/faults.py", "_unlike"): "the problem's own",
    ("publish/__init__.py", "_arm"): "the error's own",
    ("publish/__init__.py", "_refused"): "the finding's own",
    ("publish/__init__.py", "_mark"): "the error's own",
    ("publish/figures.py", "read"): "from-missing, from-malformed",
    ("reconstruct/archive.py", "_error"): "the caller's",
    ("reconstruct/repository.py", "error"): "the caller's",
    ("reconstruct/tree.py", "_worded"): "the error's own, or object-absent",
    ("reports/provenance/__init__.py", "check"): "the error's own",
    ("sets/dataset.py", "add"): "input-invalid, document-unknown",
    ("render/junit.py", "_cases"): "of the bar: floor-breached, baseline-drop",
    ("check/eligibility.py", "_refused"): "the caller's",
    ("check/eligibility.py", "_task"): "of TASK_REASONS",
    ("check/origin.py", "_reason"): "the finding's own",
    ("check/plain.py", "_no"): "the caller's",
    ("floors/propose.py", "eligible"): "the problem's own",
    ("floors/propose.py", "propose"): "the fault's own",
    ("floors/propose.py", "_check_reasons"): "bar-loosened, floors-deleted, reason-missing",
    ("promotion/evidence.py", "refused"): "the caller's",
    ("promotion/evidence.py", "of_runs"): "the problem's own",
    ("promotion/evidence.py", "unsound"): "the problem's own",
    ("promotion/change.py", "unmet"): "the problem's own",
    ("guard/judge.py", "_finding"): "ground-truth-missing, ground-truth-not-a-file",
}

#: Where what is looked into is the text of other people's exceptions.
FOREIGN = {"packages/backends/src/eval_backends/listing.py"}

_METHODS = {
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "startswith",
    "endswith",
    "split",
    "rsplit",
}
_METHODS |= {"splitlines", "replace", "find", "index"}
_ERRORS = {"error", "fault", "caught", "refused", "problem", "reason"}


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Every node with the name of the innermost function around it."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else name
            yield inner, child
            yield from walk(child, inner)

    return walk(tree, "")


def constants(tree: ast.Module) -> dict[str, str]:
    """The texts that module-level names stand for."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                        found[name.id] = str(value.value)
    return found


ALL_CONSTANTS = {
    name: text for tree in SOURCES.values() for name, text in constants(tree).items() if name.isupper()
}


def given(call: ast.Call, name: str) -> ast.expr | None:
    """The expression of a call's code; None where it has none."""
    for keyword in call.keywords:
        if keyword.arg in ("code", "reason"):
            return keyword.value
    place = PLACES.get(name, 0)
    return call.args[place] if place < len(call.args) else None


def codes(expression: ast.expr, known: dict[str, str]) -> list[str] | None:
    """The codes that an expression can give; None where it computes one."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return [expression.value]
    if isinstance(expression, ast.Name) and expression.id in known:
        return [known[expression.id]]
    if isinstance(expression, ast.IfExp):
        both = [codes(branch, known) for branch in (expression.body, expression.orelse)]
        return None if None in both else [code for branch in both for code in branch or ()]
    return None


def problems(file: str, tree: ast.Module) -> list[str]:
    """What is wrong with the codes that a source gives to errors."""
    found = []
    known, gate = ALL_CONSTANTS | constants(tree), "eval_gate" in file
    for function, node in functions(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        expression = given(node, name) if name in EXITS else None
        if expression is None or (name in OF_THE_GATE and not gate):
            continue
        if name == "refused" and isinstance(
            node.func, ast.Attribute
        ):  # Gathered.refused, which takes reasons
            continue
        where = f"{file}:{node.lineno}"
        all_codes = codes(expression, known)
        if all_codes is None:
            if not any(file.endswith(f"/{part}") and function == inside for part, inside in COMPUTED):
                found.append(
                    f"{where}: {function}() computes a code; give it in words, or list it in COMPUTED"
                )
            continue
        for code in all_codes:
            if code not in REASONS:
                found.append(f"{where}: {code!r} is not registered in eval_core.reasons")
            elif REASONS[code].exit != EXITS[name]:
                found.append(
                    f"{where}: {name} exits {EXITS[name]}, and {code!r} is registered with {REASONS[code].exit}"
                )
    return found


def cuts(tree: ast.Module) -> list[int]:
    """The lines on which the text of an error is taken apart, or looked into."""

    def is_text(node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in _ERRORS
            return node.attr in ("message", "what") and (
                own or node.attr == "message" or "details" in ast.dump(node)
            )
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
        return called and any(isinstance(arg, ast.Name) and arg.id in _ERRORS for arg in node.args)  # type: ignore[attr-defined]

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _METHODS and is_text(node.func.value):
                found.append(node.lineno)
        elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            found += [node.lineno for side in node.comparators if is_text(side)]
    return found


def test_every_code_is_registered_with_the_exit_of_its_class() -> None:
    assert len(SOURCES) > 100, "the sources were not found"
    found = [
        problem for file, tree in SOURCES.items() if file != REGISTER for problem in problems(file, tree)
    ]
    assert found == []


def test_what_is_computed_is_computed_still() -> None:
    places = {(file, function) for file, tree in SOURCES.items() for function, _ in functions(tree)}
    gone = [
        (part, inside)
        for part, inside in COMPUTED
        if not any(file.endswith(f"/{part}") and function == inside for file, function in places)
    ]
    assert gone == []


def test_every_registered_code_is_used() -> None:
    texts = set()
    patterns = []
    for file, tree in SOURCES.items():
        if file == REGISTER:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                fixed = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
                if any(part and re.fullmatch(r"[a-z-]*[a-z]{4,}[a-z-]*", part) for part in fixed):
                    patterns.append(
                        re.compile("".join("[a-z-]+" if part is None else re.escape(part) for part in fixed))
                    )
    unused = {c for c in REASONS if c not in texts and not any(p.fullmatch(c) for p in patterns)}
    assert unused == set()


def test_a_code_stands_in_one_group_and_is_explained() -> None:
    assert len(REASONS) == sum(map(len, GROUPS.values()))
    for code, entry in REASONS.items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code), code
        assert entry.title and not entry.title.endswith("."), code
        assert entry.meaning.endswith("."), code


def test_the_page_of_reasons_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "reasons.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [code for code in REASONS if f"\n## {code}\n" not in page] == []


def test_raising_does_not_read_the_register() -> None:
    """Importing and raising stay cheap; only who shows an error reads what its code means."""
    code = "import sys; from eval_core import errors; errors.Misuse('usage', 'x').message; "
    code += "print('eval_core.reasons' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_source_cuts_its_own_text() -> None:
    found = {file: lines for file, tree in SOURCES.items() if file != REGISTER and (lines := cuts(tree))}
    assert found.keys() == FOREIGN
    found = {file: lines for file, lines in found.items() if file not in FOREIGN}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "why = error.message.partition(': ')[2]",
        "if fault.what.startswith('x'): pass",
        "if str(path) in error.message: pass",
        "x = str(error).removeprefix('cannot ')",
        "x = caught.details.what.split('  ')",
    ],
)
def test_a_cut_is_seen(text: str) -> None:
    assert cuts(ast.parse(text)) == [1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise Misuse('no-such-code', 'x')", "not registered"),
        ("raise Refused('usage', 'x')", "Refused exits 1, and 'usage' is registered with 2"),
        ("raise CouldNot(made_up(), 'x')", "computes a code"),
        ("Fault('x', code='report-missing')", "Fault exits 2"),
        ("yield _refused('usage', what)", "_refused exits 1"),
        ("refused('read-failed', what)", "refused exits 1"),
        ("_no('no-such-code', what)", "not registered"),
        ("raise repository.error('usage', 'x')", "error exits 3"),
    ],
)
def test_a_wrong_code_is_seen(text: str, told: str) -> None:
    (problem,) = problems("eval_gate/y.py", ast.parse(text))
    assert told in problem


def test_the_classes_have_the_exits_of_the_table() -> None:
    for name in ("Refused", "Misuse", "CouldNot"):
        assert getattr(errors, name).exit_code == EXITS[name]


def test_a_code_is_explained_where_there_is_no_page() -> None:
    """A verdict names codes in repositories of others, which have no docs/reasons.md."""
    runner = CliRunner()
    said = " ".join(runner.invoke(cli, ["reason", "query-set-differs"]).output.split())
    entry = REASONS["query-set-differs"]
    assert said.startswith(f"query-set-differs {entry.title} exit {entry.exit} {entry.meaning}")
    listed = runner.invoke(cli, ["reason"]).output
    assert all(f"  {code} " in listed for code in REASONS)
    unknown = runner.invoke(cli, ["reason", "query-set-difers"])
    assert isinstance(unknown.exception, errors.Misuse)
    assert "did you mean 'query-set-differs'?" in str(unknown.exception)
