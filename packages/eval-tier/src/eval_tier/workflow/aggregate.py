"""Whether a job that gathers others fails unless each of them succeeded: its scripts are worked out for each result.

A script is not run: a closed set of constructs is evaluated over its syntax tree, and what is outside of it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from eval_tier.workflow.conditions import truth
from eval_tier.workflow.models import Job, Place, Step, Workflow
from eval_tier.workflow.shell import parser

if TYPE_CHECKING:
    from tree_sitter import Node

#: What a needed job may come to without having succeeded.
OTHERS = ("failure", "cancelled", "skipped")

#: Steps of the evaluation of one script.
MOST_STEPS = 5_000

_RESULT = re.compile(r"needs\.([\w-]+)\.result|needs\['([\w-]+)'\]\.result")
_ALL = re.compile(r"join\(\s*needs\.\*\.result\s*,\s*'([^']*)'\s*\)")
_CONTAINS = re.compile(r"contains\(\s*needs\.\*\.result\s*,\s*'(\w+)'\s*\)")
STATUS = re.compile(r"\b(always|failure|cancelled)\s*\(", re.IGNORECASE)
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.DOTALL)


class _Unread(Exception):
    pass


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def honest(job: Job) -> tuple[bool | None, str, Place]:
    """Whether a job fails unless every job that it needs succeeded; None where that cannot be worked out.

    Success alone counts: a job that was skipped or cancelled has proved nothing.
    """
    condition = re.sub(r"\s", "", job.condition or "")
    if not job.needs:
        return False, "it needs no job", job.place
    if not re.search(r"always\(\)|!cancelled\(\)", condition):
        return (
            False,
            "without `if: always()` it is skipped where a job that it needs fails, and skipped passes",
            job.place,
        )
    if condition not in ("always()", "!cancelled()"):
        return None, f"its condition `{job.condition}` is not read", job.place
    for step in job.steps:
        if (step.uses or "").startswith("re-actors/alls-green@") and step.masked is None:
            if step.condition not in (None, "always()"):
                return None, f"the condition of its step, `{step.condition}`, is not read", step.place
            allowed = [key for key in ("allowed-skips", "allowed-failures") if step.inputs.get(key)]
            if allowed:
                return False, f"{allowed[0]} lets jobs pass that did not succeed", step.place
            if "tojson(needs)" in step.inputs.get("jobs", "").lower().replace(" ", ""):
                return True, "", step.place
    try:
        if _fails(job, dict.fromkeys(job.needs, "success")):
            return None, "it fails even where every job succeeded", job.place
        for name in job.needs:
            for other in OTHERS:
                results = dict.fromkeys(job.needs, "success") | {name: other}
                if not _fails(job, results):
                    return False, f"it passes where {name!r} came to {other}", job.place
    except _Unread as error:
        return None, f"it cannot be worked out whether it fails: {error}", job.place
    return True, "", job.place


def carries(workflow: Workflow, gathers: Job, failed: str) -> str | None:
    """The job that keeps a failure of the job `failed` from an honest one that gathers results; None where none does.

    A job without a status function in its condition is skipped where one that it needs fails, and skipped is no
    success; one that is run all the same must be honest itself.
    """
    reached, kept = {failed}, ""
    for _ in workflow.jobs:
        for key, job in workflow.jobs.items():
            if key in reached or not reached & set(job.needs):
                continue
            if key == gathers.key:
                return None
            if not STATUS.search(job.condition or "") or honest(job)[0] is True:
                reached.add(key)
            else:
                kept = key
    return kept or gathers.key


def _fails(job: Job, results: Mapping[str, str]) -> bool:
    """Whether one of the job's steps fails where the jobs that it needs came to these results."""
    for step in job.steps:
        if step.script is None:
            continue
        runs = _runs(step, results)
        if runs and step.masked is None and _code(step, results):
            return True
    return False


def _runs(step: Step, results: Mapping[str, str]) -> bool:
    if step.condition is None:
        return True
    text = _CONTAINS.sub(lambda one: "true" if one[1] in results.values() else "false", step.condition)
    text = _RESULT.sub(lambda one: f"'{results.get(one[1] or one[2], '')}'", text)
    # In a job of its own nothing before the step has failed, whatever the needed jobs came to.
    found, why = truth(text, "branch")
    if found not in ("true", "false"):
        raise _Unread(why)
    return found == "true"


def _code(step: Step, results: Mapping[str, str]) -> int:
    """The exit code of a step's script."""
    if step.shell not in (None, "bash", "sh"):
        raise _Unread(f"the shell {step.shell!r} is not read")
    values = {name: _filled(value, results) for name, value in step.env.items()}
    known = {name: value for name, value in values.items() if value is not None}
    script = _filled(step.script or "", results)
    if script is None:
        raise _Unread("an expression in it is not known")
    tree = parser().parse(script.encode("utf-8", "replace"))
    if tree.root_node.has_error:
        raise _Unread("its script cannot be parsed")
    try:
        return _Evaluation(known).block(tree.root_node)
    except _Exit as done:
        return done.code
    except RecursionError as error:
        raise _Unread("its script is nested too deeply") from error


def _filled(text: str, results: Mapping[str, str]) -> str | None:
    """A text with the results of jobs in the place of their expressions; None where another one is in it."""
    unknown = False

    def value(found: re.Match[str]) -> str:
        nonlocal unknown
        if match := _RESULT.fullmatch(found[1]):
            return results.get(match[1] or match[2], "")
        if match := _ALL.fullmatch(found[1]):
            return match[1].join(results.values())
        if match := _CONTAINS.fullmatch(found[1]):
            return "true" if match[1] in results.values() else "false"
        unknown = True
        return ""

    filled = _EXPRESSION.sub(value, text)
    return None if unknown else filled


class _Evaluation:
    """A script's exit code under `bash -e`."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        self.left = MOST_STEPS

    def block(self, node: Node, *, stops: bool = True) -> int:
        code = 0
        for child in node.named_children:
            if child.type != "comment":
                code = self.statement(child, stops=stops)
        return code

    def statement(self, node: Node, *, stops: bool) -> int:
        """The status of a statement; where the shell stops at failures, one that fails ends the script."""
        self.left -= 1
        if self.left < 0:
            raise _Unread("it takes too many steps")
        kind = node.type
        if kind == "if_statement":
            return self.branch(node, stops=stops)
        if kind == "for_statement":
            return self.loop(node, stops=stops)
        if kind == "case_statement":
            return self.case(node, stops=stops)
        if kind == "compound_statement":
            return self.block(node, stops=stops)
        if kind in ("variable_assignment", "variable_assignments"):
            self.assign(node)
            return 0
        code = self.condition(node, stops=stops)
        if code and stops and kind not in ("negated_command", "list"):
            raise _Exit(code)
        if code and stops and kind == "list" and self.last_failed:
            raise _Exit(code)
        return code

    last_failed = True

    def condition(self, node: Node, *, stops: bool = False) -> int:
        kind = node.type
        if kind == "list":
            left, right = node.named_children[0], node.named_children[-1]
            sign = next(child.type for child in node.children if child.type in ("&&", "||"))
            code = self.quiet(left)
            if (code == 0) == (sign == "&&"):
                self.last_failed = True
                return self.quiet(right)
            self.last_failed = False
            return code
        if kind == "negated_command":
            return int(self.quiet(node.named_children[-1]) == 0)
        if kind == "test_command":
            return int(
                not self.test(
                    [self.word(child) if child.is_named else child.type for child in self.flat(node)]
                )
            )
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            if body is None:
                return 0
            return self.condition(body, stops=stops)
        if kind == "command":
            return self.command(node)
        raise _Unread(f"`{_short(node)}` is not worked out")

    def quiet(self, node: Node) -> int:
        """The status of a statement whose failure does not stop the shell."""
        if node.type in (
            "compound_statement",
            "if_statement",
            "for_statement",
            "case_statement",
            "variable_assignment",
        ):
            return self.statement(node, stops=False)
        return self.condition(node)

    def flat(self, node: Node) -> list[Node]:
        """The parts of `[ … ]` or `[[ … ]]` without the brackets, expressions taken apart."""
        found: list[Node] = []
        for child in node.children:
            if child.type in ("[", "]", "[[", "]]"):
                continue
            if child.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
                found += self.flat(child)
            else:
                found.append(child)
        return found

    def test(self, words: list[str]) -> bool:
        """`test`: texts compared, or asked for being empty; `-a`, `&&`, `-o`, `||` and `!` join."""
        for signs, joined in ((("||", "-o"), any), (("&&", "-a"), all)):
            parts: list[list[str]] = [[]]
            for word in words:
                if word in signs:
                    parts.append([])
                else:
                    parts[-1].append(word)
            if len(parts) > 1:
                return joined([self.test(part) for part in parts])
        if words[:1] == ["!"]:
            return not self.test(words[1:])
        if len(words) == 1:
            return words[0] != ""
        if len(words) == 2 and words[0] in ("-n", "-z"):
            return (words[1] != "") == (words[0] == "-n")
        if len(words) == 3 and words[1] in ("=", "==", "!="):
            if any(sign in words[2] for sign in "*?["):
                raise _Unread("a pattern is compared")
            return (words[0] == words[2]) == (words[1] != "!=")
        if len(words) == 3 and words[1] in ("-eq", "-ne", "-gt", "-lt", "-ge", "-le"):
            try:
                one, other = int(words[0]), int(words[2])
            except ValueError as error:
                raise _Unread("no numbers are compared as numbers") from error
            return {"-eq": one == other, "-ne": one != other, "-gt": one > other, "-lt": one < other,
                    "-ge": one >= other, "-le": one <= other}[words[1]]  # fmt: skip
        raise _Unread(f"a test is not worked out: {' '.join(words)[:60]}")

    def command(self, node: Node) -> int:
        words = [word for child in node.named_children for word in self.split(child)]
        if not words:
            return 0
        name, *rest = words
        if name == "exit":
            raise _Exit(int(rest[0]) if rest and rest[0].isdigit() else 1 if rest else 0)
        if name in ("echo", "printf", ":", "true"):
            return 0
        if name == "false":
            return 1
        if name in ("test", "["):
            return int(not self.test([word for word in rest if word != "]"]))
        if name == "set" and all(re.fullmatch(r"-[eux]*o?|pipefail", word) for word in rest):
            return 0
        raise _Unread(f"`{_short(node)}` is not worked out")

    def branch(self, node: Node, *, stops: bool) -> int:
        asked: list[Node] = []
        body: list[Node] = []
        then = False
        for child in node.children:
            if child.type == "then":
                then = True
            elif child.type in ("elif_clause", "else_clause"):
                break
            elif child.is_named and child.type != "comment":
                (body if then else asked).append(child)
        code = 0
        for one in asked:
            code = self.quiet(one)
        if code == 0:
            status = 0
            for one in body:
                status = self.statement(one, stops=stops)
            return status
        others = [child for child in node.children if child.type in ("elif_clause", "else_clause")]
        for other in others:
            if other.type == "else_clause":
                return self.block(other, stops=stops)
            parts = [child for child in other.children if child.is_named or child.type == "then"]
            place = next(n for n, child in enumerate(parts) if child.type == "then")
            if all(self.quiet(one) == 0 for one in parts[:place]):
                status = 0
                for one in parts[place + 1 :]:
                    status = self.statement(one, stops=stops)
                return status
        return 0

    def loop(self, node: Node, *, stops: bool) -> int:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if name is None or body is None:
            raise _Unread("a loop is not worked out")
        values = [word for child in node.children_by_field_name("value") for word in self.split(child)]
        code = 0
        for value in values:
            self.values[_text(name)] = value
            code = self.block(body, stops=stops)
        return code

    def case(self, node: Node, *, stops: bool) -> int:
        value = node.child_by_field_name("value")
        if value is None:
            raise _Unread("a case is not worked out")
        given = self.word(value)
        for item in node.named_children:
            if item.type != "case_item":
                continue
            patterns = item.children_by_field_name("value")
            if any(_text(one) == "*" or self.word(one) == given for one in patterns):
                code = 0
                for child in item.named_children:
                    if child not in patterns and child.type != "comment":
                        code = self.statement(child, stops=stops)
                return code
        return 0

    def assign(self, node: Node) -> None:
        for one in node.named_children if node.type == "variable_assignments" else [node]:
            name, value = one.child_by_field_name("name"), one.child_by_field_name("value")
            if name is not None:
                self.values[_text(name)] = "" if value is None else self.word(value)

    def split(self, node: Node) -> list[str]:
        """The words of an argument: a variable without quotes is split at spaces."""
        if node.type in ("simple_expansion", "expansion"):
            return self.word(node).split()
        return [self.word(node)]

    def word(self, node: Node) -> str:
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            match = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", _text(node))
            if match is None or match[1] not in self.values:
                raise _Unread(f"the value of {_text(node)[:40]} is not known")
            return self.values[match[1]]
        if kind == "string":
            raw, end, out = node.text or b"", node.start_byte + 1, []
            for child in node.named_children:
                out.append(
                    raw[end - node.start_byte : child.start_byte - node.start_byte].decode("utf-8", "replace")
                )
                out.append(_text(child) if child.type == "string_content" else self.word(child))
                end = child.end_byte
            out.append(raw[end - node.start_byte : len(raw) - 1].decode("utf-8", "replace"))
            return "".join(out)
        if kind == "raw_string":
            return _text(node)[1:-1]
        if kind in ("concatenation", "command_name"):
            return "".join(self.word(child) for child in node.children)
        if kind in (
            "word",
            "number",
            "variable_name",
            "test_operator",
            "string_content",
            "extglob_pattern",
            "regex",
        ):
            return _text(node)
        raise _Unread(f"`{_short(node)}` is not worked out")


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _short(node: Node) -> str:
    text = " ".join(_text(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
