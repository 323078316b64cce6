"""Tier 2, what files can show: a gate grades what was measured against measured floors, and its failure counts."""

from __future__ import annotations

import json
import math
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_core.errors import EvalError
from eval_tier.evidence.repository import Evidence, needed
from eval_tier.evidence.use import Use
from eval_tier.models import Finding
from eval_tier.rules.base import Rule, command_of
from eval_tier.workflow.changes import foreign, hits, inside, touched
from eval_tier.workflow.models import Command

if TYPE_CHECKING:
    from eval_core.policy import Floors

POLICY, FLOORS = "policy", "floors.toml"

#: What a key is called that says how many queries a floor is about.
_COUNT = re.compile(r"^(n|n_queries|queries|count|expected_n|num_queries|support|samples|n_expected)$")

#: Options of `eval-gate check` that take nothing from what is graded.
_ORDINARY = ("--require", "--target", "--format", "--output")
_EVIDENCE = f"{POLICY}/evidence"

#: Names under which keys of models are kept, programs, actions and addresses that ask one.
_MODEL = re.compile(
    r"(OPENAI|ANTHROPIC|GEMINI|MISTRAL|COHERE|GROQ|TOGETHER|OPENROUTER|DEEPSEEK|AZURE_OPENAI)\w*_KEY"
)
_ASKS = ("claude", "llm", "ollama", "openai", "gemini", "codex", "aider", "promptfoo")
_ACTIONS = re.compile(r"^(anthropics|openai|google-github-actions/run-gemini|promptfoo)\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"api\.(openai|anthropic|mistral|cohere|groq|together)\.|generativelanguage\.googleapis|openrouter\.ai"
)


class Present(Rule):
    """A gate without floors, or with floors that any ranking passes, is theatre. There must be floors in the commit,
    each above zero, each with the number of queries that it is about: fewer are refused, not graded."""

    id, tier, title, declarable = "T201", 2, "floors are present, above zero, and state n", True

    def check(self, evidence: Evidence) -> Finding:
        declared = evidence.audit.floors
        if declared:
            return self._foreign(evidence, declared)
        read = floors_of(evidence)
        if read is None:
            mend = "measure twice, then:  eval-gate floor --measure --write"
            if not evidence.known:
                return self.says(
                    "unknown", "its files were not given", mend="name a checkout of it as `path`"
                )
            return self.says("refuted", "there is no floors file", mend=mend)
        place = evidence.at(f"{POLICY}/{FLOORS}")
        if isinstance(read, EvalError):
            return self.says(
                "refuted",
                read.message,
                (evidence.at(f"{POLICY}/{FLOORS}", read.details.line),),
                mend="mend that file",
            )
        if not read.arms:
            return self.says(
                "refuted", "the floors file has no arm: the gate is vacuous", (place,), mend="set a bar"
            )
        for name, arm in read.arms.items():
            if not arm.measures:
                what = f"arm {name!r} has no floor: whatever it scores passes"
                return self.says("refuted", what, (place,), mend=f"eval-gate floor {name} --measure --write")
        lowest = min(arm.n for arm in read.arms.values())
        return self.says(
            "proven", f"{len(read.arms)} arms have floors, each over a stated n (≥ {lowest})", (place,)
        )

    def _foreign(self, evidence: Evidence, paths: tuple[str, ...]) -> Finding:
        for path in paths:
            text = evidence.text(path)
            if text is None:
                what = f"the floors file {path!r} that is declared is not in the commit"
                return self.says(
                    "refuted", what, (evidence.at(path),), mend="commit it, or mend the declaration"
                )
            try:
                tables = list(_tables(_parsed(path, text)))
            except (ValueError, RecursionError) as error:
                return self.says(
                    "refuted", f"it cannot be read: {error}", (evidence.at(path),), mend="mend that file"
                )
            floors = [
                (key, value, table)
                for table in tables
                for key, value in table.items()
                if not _COUNT.match(key)
            ]
            if not floors:
                return self.says(
                    "refuted", "it has no floor: the gate is vacuous", (evidence.at(path),), mend="set floors"
                )
            for key, value, _ in floors:
                if not math.isfinite(value) or value <= 0:
                    place = evidence.at(path, _line(text, key))
                    what = f"the floor {key} = {value} passes whatever is measured"
                    return self.says("refuted", what, (place,), mend="derive it from measured runs")
            if not all(
                any(_COUNT.match(key) and value > 0 for key, value in table.items()) for table in tables
            ):
                if said := evidence.audit.states.get(self.id):
                    return self.says("proven", f"declared: {said}", (evidence.at(path),), basis="declared")
                what = "it does not state n, the number of queries, beside each table of floors"
                return self.says(
                    "unknown", what, (evidence.at(path),), mend=f"state n there, or: audit.states.{self.id}"
                )
        held = f"{len(paths)} declared floors file{'s' if len(paths) > 1 else ''}, each floor above zero and with n"
        return self.says("proven", held, tuple(map(evidence.at, paths)), basis="declared")


class Measured(Rule):
    """Floors come from measured runs with noise under them, never from aspiration: two runs of CI at least, at the
    same task. Ours keep them as lines of policy/evidence/; of other floors files the runs must be declared."""

    id, tier, title, requires, declarable = (
        "T202",
        2,
        "floors stand on two measured runs of CI",
        ("T201",),
        True,
    )

    def check(self, evidence: Evidence) -> Finding:
        read = floors_of(evidence)
        if read is None or isinstance(read, EvalError):
            what = "no file can show from which runs declared floors come"
            return self.says("unknown", what, mend=f'say so: audit.states.{self.id} = "runs 18 and 21 of CI"')
        from eval_core.policy import Budgets, Policy, parse_evidence, path_of
        from eval_core.policy.faults import faults

        policy = Policy(Path(POLICY), read, Budgets(schema_="budgets-v2"))
        places = []
        for name in read.arms:
            path = path_of(Path(POLICY), name).as_posix()
            raw = evidence.files.read(path)
            if raw is None:
                return self._without(evidence, f"the floors of {name!r} have no evidence file", path, name)
            try:
                lines = {line.run_id: line for line in parse_evidence(raw, path)}
                arm = policy.with_lines(name, lines, path)
            except EvalError as error:
                return self._without(evidence, error.message, path, name)
            if wrong := [f for f in faults(arm) if f.code != "reason-missing"]:
                return self._without(evidence, wrong[0].message, path, name)
            if few := [line.run_id for line in arm.lines if line.class_ != "ci" or not line.n]:
                return self._without(evidence, f"run {few[0]} of {name!r} was not measured in CI", path, name)
            places.append(evidence.at(path))
        return self.says(
            "proven", f"each of {len(places)} arms stands on two measured runs of class ci", tuple(places)
        )

    def _without(self, evidence: Evidence, what: str, path: str, name: str) -> Finding:
        mend = f"eval-gate floor {name} --from RUN-1.zip RUN-2.zip --write  takes two runs of CI"
        return self.says("refuted", what, (evidence.at(path),), mend=mend)


class Grades(Rule):
    """A gate grades what was measured: it comes after the measuring, in the same job or one that needs it. What lies
    in the commit could be anything, unless the repository declares that it grades a snapshot."""

    id, tier, title = "T203", 2, "the gate comes after measuring"

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        if gate is None:
            if not evidence.known:
                return self.says(
                    "unknown", "its files were not given", mend="name a checkout of it as `path`"
                )
            if evidence.elsewhere is not None:
                what = f"our commands are run in {evidence.elsewhere!r}, and this is about {evidence.base!r}"
                return self.says("unknown", what, mend=f"eval-tier audit {evidence.elsewhere}")
            if evidence.gaps:
                gap = evidence.gaps[0][0]
                what = f"no gate is recognised, and a part of CI cannot be read: {gap.what}"
                mend = 'declare it: audit.gate = ["COMMAND"], or write it so that it can be read'
                return self.says("unknown", what, gap.chain, mend=mend)
            return self.says(
                "refuted", "no step of CI grades the numbers", mend="add a step:  eval-gate check"
            )
        if not gate.generic and (why := foreign(gate.job, gate.step)):
            what = f"{what_of(gate)} does not grade the files of the pull request: {why[0]}"
            return self.says(
                "refuted", what, (why[1], *gate.places), mend="check the pull request out before"
            )
        if not gate.declared and (finding := self._narrowed(evidence, gate)):
            return finding
        what = f"`{command_of(gate)}`"
        basis: Any = "declared" if gate.declared else "files"
        if evidence.audit.mode == "snapshot":
            said = f"{what} grades a committed snapshot, as declared"
            return self.says("proven", said, gate.places, basis="declared")
        measuring = evidence.measuring
        if measuring is not None and (finding := self._handed(evidence, measuring, gate)):
            return finding
        if measuring is None or not evidence.precedes(measuring, gate):
            where = "nothing measures" if measuring is None else f"`{command_of(measuring)}` does not come"
            said = f"{what} grades what nothing measured: {where} before it in its job or a job that it needs"
            return self.says("refuted", said, gate.places, mend="measure in the same job, before the gate")
        return self.says("proven", f"{what} after `{command_of(measuring)}`", gate.places, basis=basis)

    def _narrowed(self, evidence: Evidence, gate: Use) -> Finding | None:
        """Why our gate, as it is called, does not grade every arm against policy/floors.toml."""
        words = list(gate.command.words[2:])
        arms: list[str] = []
        while words:
            word = words.pop(0)
            if "\0" in word:
                what = f"an argument of {what_of(gate)} is a value that is not known"
                return self.says("unknown", what, gate.places, mend="write it out")
            option, equals, _ = word.partition("=")
            if not word.startswith("-"):
                arms.append(word)
            elif option not in _ORDINARY:
                what = (
                    f"{what_of(gate)} is given {option}: what it then grades, and against what, is not known"
                )
                return self.says("unknown", what, gate.places, mend=f"call it without {option}")
            elif not equals and words:
                words.pop(0)
        floors = floors_of(evidence)
        left = (
            sorted(set(floors.arms) - set(arms))
            if arms and floors and not isinstance(floors, EvalError)
            else []
        )
        if left:
            what = f"{what_of(gate)} leaves out {left[0]!r}, which has floors"
            return self.says(
                "refuted", what, gate.places, mend="eval-gate check  without arms grades all of them"
            )
        return None

    def _handed(self, evidence: Evidence, measuring: Use, gate: Use) -> Finding | None:
        """Why what is graded may not be what was measured."""
        if measuring.job is gate.job:
            for path, command in evidence.changes(gate, measuring):
                if hits(path, inside_of(evidence, ".eval/reports")):
                    what = f"between measuring and the gate {path!r} is changed"
                    return self.says("refuted", what, command.chain, mend="grade what was measured")
        elif evidence.precedes(measuring, gate) and not any(
            (step.uses or "").startswith(("actions/download-artifact@", "actions/cache"))
            for step in gate.job.steps
        ):
            what = f"how the numbers of the job {measuring.job.key!r} reach {gate.job.key!r} is not seen"
            mend = "actions/upload-artifact there and actions/download-artifact here, or one job"
            return self.says("unknown", what, gate.places, mend=mend)
        return None


class Counts(Rule):
    """A breach must fail the check. `|| true`, a pipe into tee without pipefail, `set +e`, `&`, and continue-on-error
    of the step or of the job turn a red gate green. Mend it: let the gate's exit code be that of its step."""

    id, tier, title, requires = "T204", 2, "a breach fails the check", ("T203",)

    def check(self, evidence: Evidence) -> Finding:
        if evidence.gate is None:
            return self.says("unknown", "there is no gate")
        return self.unmasked(evidence.gate, f"`{command_of(evidence.gate)}`")


class Everywhere(Rule):
    """A gate that some pull request skips does not grade every pull request, whether the forge then merges it (a job
    that `if` skips is posted as skipped) or waits for ever (a workflow that `paths` leave out posts nothing)."""

    id, tier, title, requires = "T205", 2, "the gate runs on every pull request", ("T203",)

    def check(self, evidence: Evidence) -> Finding:
        if evidence.gate is None:
            return self.says("unknown", "there is no gate")
        return self.on_every_pull_request(evidence.gate, evidence, f"`{command_of(evidence.gate)}`")


class Untouched(Rule):
    """Whoever moves the bar must be a person, in a commit of its own. A workflow that writes floors or baselines, on
    any event, can move it to wherever the numbers fell."""

    id, tier, title = "T206", 2, "CI never writes the bar"

    def check(self, evidence: Evidence) -> Finding:
        for use in evidence.of("write"):
            what = f"CI runs `{command_of(use)}`"
            return self.says(
                "refuted", what, use.places, mend="move the bar by hand, in a commit that cites the runs"
            )
        paths = [
            inside_of(evidence, path) for path in (*evidence.audit.floors, f"{POLICY}/{FLOORS}", _EVIDENCE)
        ]
        mend = "leave the floors to a person's commit"
        for *_, commands in evidence.scripts:
            for command in commands:
                for path in (*touched(command), *_staged(command)):
                    if path != "." and (hit := next((p for p in paths if hits(path, p)), None)):
                        return self.says("refuted", f"CI writes {hit!r}", command.chain, mend=mend)
        for workflow in evidence.workflows:
            for step in (step for job in workflow.jobs.values() for step in job.steps):
                into = step.inputs.get("path", "")
                if (step.uses or "").startswith(("actions/download-artifact@", "actions/cache")) and any(
                    hits(posixpath.normpath(line.strip()), path)
                    for line in into.splitlines() for path in paths if line.strip() and posixpath.normpath(line) != "."
                ):  # fmt: skip
                    return self.says("refuted", f"CI writes {into.strip()!r}", (step.place,), mend=mend)
        for gap, workflow, _ in evidence.gaps:
            text = (evidence.root.read(gap.chain[-1].file) or b"").decode("utf-8", "replace")
            if any(path in text for path in paths) or "eval-gate floor" in text:
                what = f"{workflow.file} names the floors in a part that cannot be read: {gap.what}"
                return self.says("unknown", what, gap.chain, mend="write it so that it can be read")
        return self.says("proven", "no workflow writes floors or evidence")


class Impartial(Rule):
    """A model that judges at merge time is never a gate: its verdict is neither free nor repeatable. Grade what was
    measured by figures, and leave a judging model to an owner's lane."""

    id, tier, title, requires = "T207", 2, "no model judges at merge time", ("T203",)

    def check(self, evidence: Evidence) -> Finding:
        gate = evidence.gate
        if gate is None:
            return self.says("unknown", "there is no gate")
        jobs = [gate.job, *(gate.workflow.jobs[key] for key in needed(gate.workflow, gate.job))]
        for job in jobs:
            for step in job.steps:
                if _ACTIONS.search(step.uses or "") or _ADDRESS.search(step.script or ""):
                    asked = (step.uses or "").partition("@")[0] or "the address of a model"
                    what = f"job {job.key!r}, which grades, asks a model: {asked}"
                    return self.says("refuted", what, (step.place,), mend="grade figures, without a model")
                for name, value in step.env.items():
                    if _MODEL.search(name) or _MODEL.search(value):
                        what = f"job {job.key!r}, which grades, is given {name}"
                        return self.says(
                            "refuted", what, (step.place,), mend="grade figures, without a model"
                        )
        for workflow, job, _, commands in evidence.scripts:
            for command in commands if workflow is gate.workflow and job in jobs else ():
                if command.words and command.words[0] in _ASKS:
                    what = f"job {job.key!r}, which grades, asks a model: `{command.words[0]}`"
                    return self.says("refuted", what, command.chain, mend="grade figures, without a model")
        return self.says(
            "proven", "the job that grades has no key of a model, and runs no client of one that is known"
        )


class Healthy(Rule):
    """A run with rows that failed is no finding about the retriever. The gate must refuse it. Ours does, always; of
    another gate no file can show it, so it must be declared."""

    id, tier, title, requires, declarable = "T208", 2, "rows that failed fail the gate", ("T203",), True

    def check(self, evidence: Evidence) -> Finding:
        if evidence.gate is None:
            return self.says("unknown", "there is no gate")
        if not evidence.gate.declared:
            return self.says(
                "proven", "our gate refuses a report with rows that failed", evidence.gate.places
            )
        what = "whether this gate refuses a run with failed rows is in no file that can be read"
        return self.says("unknown", what, mend=f'say why it does: audit.states.{self.id} = "…"')


class Deletes(Rule):
    """A step that makes a committed file anew and compares must delete it first: a generator that writes nothing leaves
    the old file, and the comparison passes."""

    id, tier, title = "T209", 2, "what is made anew and compared is deleted first"

    def check(self, evidence: Evidence) -> Finding:
        said = evidence.audit
        kept = (*said.floors, *said.provenance, *said.inputs)
        compared = False
        removed: set[tuple[int, str]] = set()  # by the job, whose files no other job deletes
        for _, job, _, commands in evidence.scripts:
            for command in commands:
                words = command.words
                if words[:1] == ("rm",):
                    removed |= {(id(job), word) for word in words[1:]}
                if words[:2] != ("git", "diff") or not {"--exit-code", "--quiet"} & set(words):
                    continue
                for path in (path for path in kept if path in words):
                    compared = True
                    if (id(job), path) not in removed:
                        what = f"{path!r} is compared with its committed form, and not deleted before"
                        return self.says("refuted", what, command.chain, mend=f"rm {path}  comes first")
        if not compared:
            return self.says("not-applicable", "no committed artefact is made anew and compared")
        return self.says("proven", "what is compared is deleted first")


class Remeasured(Rule):
    """A committed snapshot grows old while the code moves on. Where the gate grades one, a job that is scheduled or
    started by hand must measure it anew."""

    id, tier, title = "T210", 2, "a graded snapshot is measured anew on a schedule"

    def check(self, evidence: Evidence) -> Finding:
        if evidence.audit.mode != "snapshot":
            return self.says("not-applicable", "the gate grades what its own job measured")
        for use in evidence.of("measure"):
            if {"schedule", "workflow_dispatch"} & set(use.workflow.triggers):
                return self.says(
                    "proven", f"`{command_of(use)}` measures it anew", use.places, basis="declared"
                )
        what = "no scheduled or dispatched job measures what is graded"
        return self.says("refuted", what, mend="add a job on schedule and workflow_dispatch that measures")


RULES = (Present, Measured, Grades, Counts, Everywhere, Untouched, Impartial, Healthy, Deletes, Remeasured)


def floors_of(evidence: Evidence) -> Floors | EvalError | None:
    """Our floors file, the error that reading it gives, or None where another is declared or there is none."""
    if evidence.audit.floors:
        return None
    text = evidence.text(f"{POLICY}/{FLOORS}")
    if text is None:
        return None
    from eval_core.policy import parse_floors  # of one that is none of ours nothing of it is asked

    try:
        return parse_floors(text, Path(POLICY) / FLOORS)
    except EvalError as error:
        return error


def _parsed(path: str, text: str) -> Any:
    if path.endswith(".toml"):
        return tomllib.loads(text)
    if path.endswith(".json"):
        return json.loads(text)
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError("is not YAML") from error


def _tables(value: Any) -> Iterator[dict[str, float]]:
    """The numbers of each table of a floors file, those of a table without numbers left out."""
    if isinstance(value, dict):
        numbers = {
            str(key): float(number)
            for key, number in value.items()
            if isinstance(number, int | float) and not isinstance(number, bool)
        }
        if numbers:
            yield numbers
        for inner in value.values():
            yield from _tables(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _tables(inner)


def _line(text: str, key: str) -> int | None:
    return next(
        (n for n, line in enumerate(text.splitlines(), 1) if line.strip().strip('"').startswith(key)), None
    )


def _staged(command: Command) -> Iterator[str]:
    """The paths that a command puts into a commit."""
    if command.words[:2] in (("git", "add"), ("git", "commit")):
        for word in command.words[2:]:
            if (path := inside(word, command.folder)) is not None:
                yield path


def inside_of(evidence: Evidence, path: str) -> str:
    """A path below the audited folder, relative to the top of the repository."""
    return evidence.at(path).file


def what_of(use: Use) -> str:
    """The command in a sentence."""
    return f"`{command_of(use)}`"
