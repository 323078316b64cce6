"""Tier 1: the harness runs in CI, over inputs from version control, offline and without a key."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence

from eval_core.console import count
from eval_core.errors import EvalError
from eval_core.models import parse_toml
from eval_core.sets.definition import Definition
from eval_tier.evidence.repository import Evidence
from eval_tier.evidence.use import Use
from eval_tier.models import Finding
from eval_tier.rules.base import Rule, command_of
from eval_tier.workflow.changes import foreign, hits
from eval_tier.workflow.models import Place, Step, Workflow

#: Events that only an owner starts, so that no fork reaches what they can.
OWNED = ("schedule", "workflow_dispatch", "repository_dispatch", "push", "release")

#: `secrets.NAME`, but for the token that every run has.
_SECRET = re.compile(
    r"secrets\s*(?:\.|\[\s*')\s*(?!GITHUB_TOKEN\b)([A-Za-z_]\w*)|toJSON\(\s*(secrets)\s*\)", re.IGNORECASE
)

_HEAD = re.compile(r"github\.event\.pull_request\.head\b|github\.head_ref|refs/pull/", re.IGNORECASE)


class Measures(Rule):
    """A number that nobody computes in CI is a memory of one. The harness must be run for every pull request, from
    a fork or not, and not only by schedule or by hand. Mend it by a step that measures, in a workflow on pull_request
    without filters of paths."""

    id, tier, title = "T101", 1, "CI measures on every pull request"

    def check(self, evidence: Evidence) -> Finding:
        use = evidence.gate if evidence.audit.mode == "snapshot" else evidence.measuring
        if use is None:
            return self._none(evidence)
        what = f"`{command_of(use)}`"
        return self.on_every_pull_request(use, evidence, what)

    def _none(self, evidence: Evidence) -> Finding:
        if not evidence.known:
            return self.says("unknown", "its files were not given", mend="name a checkout of it as `path`")
        if evidence.other_forges and not evidence.workflows:
            place = Place(evidence.other_forges[0])
            what = "its CI is not GitHub's, and no job of it is declared"
            return self.says("unknown", what, (place,), mend='declare the job: audit.jobs = ["FILE:JOB"]')
        if evidence.elsewhere is not None:
            what = f"our commands are run in {evidence.elsewhere!r}, and this is about {evidence.base!r}"
            return self.says("unknown", what, mend=f"eval-tier audit {evidence.elsewhere}")
        if gap := next(iter(evidence.gaps), None):
            what = f"no step that could be read measures, and this could not be: {gap[0].what}"
            return self.says("unknown", what, gap[0].chain, mend="declare the command: audit.measure")
        if broken := next((w for w in evidence.workflows if any(f.whole for f in w.faults)), None):
            what = f"no step measures in what can be read, and {broken.file} cannot be"
            return self.says("unknown", what, (broken.faults[0].place,), mend="mend that file")
        what = "no step of CI runs retrieval"
        if read := half_step(evidence):
            what = f"{what}; {read[0]} asserts the composition of {read[1]}, which is no measuring"
        return self.says(
            "refuted", what, mend="measure in CI, in a workflow on pull_request:  eval-core measure"
        )


class Breaks(Rule):
    """A harness that broke has measured nothing. Its failure must fail the job, or a run without a number reads like a
    good one. Mend it: no `|| true`, no pipe without pipefail, no continue-on-error."""

    id, tier, title, requires = "T102", 1, "a harness that breaks fails the job", ("T101",)

    def check(self, evidence: Evidence) -> Finding:
        use = evidence.gate if evidence.audit.mode == "snapshot" else evidence.measuring
        if use is None:
            return self.says("unknown", "nothing measures")
        return self.unmasked(use, f"`{command_of(use)}`")


class Reconstructs(Rule):
    """A number over inputs that CI does not build from version-controlled sources cannot be repeated. Sets must lie in
    the commit, or be built from pinned sources in the job that measures."""

    id, tier, title, declarable = "T103", 1, "CI builds every input from version-controlled sources", True

    def check(self, evidence: Evidence) -> Finding:
        if evidence.ours is not None and (evidence.measuring is None or not evidence.measuring.declared):
            return self._ours(evidence)
        inputs = evidence.audit.inputs
        if not inputs:
            return self.says(
                "unknown", "its inputs are not declared", mend='declare them: audit.inputs = ["FILE"]'
            )
        for path in inputs:
            if not (evidence.text(path) or "").strip():
                what = f"the input {path!r} that is declared is not a file of the commit, or is empty"
                return self.says(
                    "refuted", what, (evidence.at(path),), mend="commit it, or build it in the job"
                )
        use = evidence.measuring or evidence.gate
        if use is not None and (finding := self._changed(evidence, use, list(inputs))):
            return finding
        held = f"{len(inputs)} declared input{'s' if len(inputs) > 1 else ''} of the commit"
        return self.says("proven", held, tuple(map(evidence.at, inputs)), basis="declared")

    def _ours(self, evidence: Evidence) -> Finding:
        assert evidence.ours is not None  # noqa: S101  # asked by the only caller
        places = []
        for folder in dict.fromkeys(arm.dataset.rstrip("/") for arm in evidence.ours.arms.values()):
            path = f"{folder}/dataset.toml"
            text = evidence.text(path)
            if text is None:
                path = f"{folder}/corpus.jsonl"
                if not (evidence.text(path) or "").strip():
                    what = f"{folder!r} has no dataset.toml that names sources, and no corpus.jsonl in the commit"
                    return self.says(
                        "refuted", what, (evidence.at(folder),), mend="commit the set, or its recipe"
                    )
            else:
                from pathlib import Path

                try:
                    parse_toml(text, Definition, Path(path), "definition")
                except EvalError as error:
                    return self.says(
                        "refuted", error.message, (evidence.at(path, error.details.line),), mend="mend it"
                    )
            places.append(evidence.at(path))
        if evidence.measuring is None:
            return self.says(
                "unknown", "the sets are in the commit, and nothing in CI builds them", tuple(places)
            )
        folders = [arm.dataset.rstrip("/") for arm in evidence.ours.arms.values()]
        if finding := self._changed(evidence, evidence.measuring, [*folders, "eval.toml"]):
            return finding
        what = (
            "eval-core measure builds each corpus from its recipe, and refuses one that differs from its pins"
        )
        return self.says("proven", what, tuple(places))

    def _changed(self, evidence: Evidence, use: Use, inputs: Sequence[str]) -> Finding | None:
        """Why the files that are measured may not be those of the pull request."""
        if use.generic:
            return None
        if why := foreign(use.job, use.step):
            return self.says(
                "refuted", why[0], (why[1],), mend="actions/checkout comes first, as it is by default"
            )
        held = [evidence.at(path).file for path in inputs]
        for path, command in evidence.changes(use):
            if path == ".":
                what = f"the files are changed before they are measured: `{' '.join(command.words[:4])}`"
                return self.says("unknown", what, command.chain, mend="measure what was checked out")
            if hit := next((one for one in held if hits(path, one)), None):
                what = f"{hit!r} is changed before it is measured, by `{command.words[0] if command.words else '>'}`"
                return self.says("refuted", what, command.chain, mend="measure what was checked out")
        for step in use.job.steps[: use.order[0]]:
            into = step.inputs.get("path", "").strip()
            if (step.uses or "").startswith(("actions/download-artifact@", "actions/cache")) and any(
                hits(posixpath.normpath(line), one) for line in into.split() for one in held
            ):
                what = f"{into!r} comes from elsewhere before it is measured"
                return self.says("refuted", what, (step.place,), mend="measure what was checked out")
        return None


class Queries(Rule):
    """A run over zero queries succeeds at anything. There must be judged queries in the commit, for an arm that CI
    measures without being asked by name."""

    id, tier, title, declarable = "T104", 1, "there are queries to measure on", True

    def check(self, evidence: Evidence) -> Finding:
        if evidence.ours is None or (evidence.measuring is not None and evidence.measuring.declared):
            return self._declared(evidence)
        arms = {name: arm for name, arm in evidence.ours.arms.items() if arm.lane == "pull-request"}
        if not arms:
            what = "every arm is of the owner's lane, so that a pull request measures none"
            return self.says(
                "refuted", what, (evidence.at("eval.toml"),), mend="give an arm the lane of pull requests"
            )
        places = []
        for folder in dict.fromkeys(arm.dataset.rstrip("/") for arm in arms.values()):
            path = f"{folder}/queries.jsonl"
            if not _has_query(evidence.text(path) or ""):
                what = f"{path!r} is not in the commit, or holds no query"
                return self.says("refuted", what, (evidence.at(path),), mend="commit judged queries")
            judged = f"{folder}/qrels/test.tsv"
            if len((evidence.text(judged) or "").split("\n", 2)) < 3:
                what = f"{judged!r} is not in the commit, or holds no judgement"
                return self.says("refuted", what, (evidence.at(judged),), mend="commit judged queries")
            places.append(evidence.at(path))
        said = f"{count(len(arms), 'arm')} on {count(len(places), 'set')} with queries"
        return self.says("proven", said, tuple(places))

    def _declared(self, evidence: Evidence) -> Finding:
        held = [path for path in evidence.audit.inputs if (evidence.text(path) or "").strip()]
        if held:
            return self.says(
                "proven", f"{held[0]} is not empty", tuple(map(evidence.at, held)), basis="declared"
            )
        return self.says("unknown", "no file of queries is declared", mend='audit.inputs = ["queries.jsonl"]')


class Keyless(Rule):
    """What a pull request runs must need no key: a fork has none, and one that it could reach is spent by strangers.
    Mend it: measure with free, offline parts, and leave paid ones to an owner's lane."""

    id, tier, title, requires = "T105", 1, "measuring reads no secret on a pull request", ("T101",)

    def check(self, evidence: Evidence) -> Finding:
        mend = "measure without it, or in a lane of yours"
        for use in (evidence.measuring, evidence.gate):
            if use is None or not _on_pull_request(use.workflow):
                continue
            if found := _secrets(use.step):
                what = f"`{command_of(use)}` is given secrets.{found}"
                return self.says("refuted", what, (use.step.place,), mend=mend)
            for step in use.job.steps[: use.order[0]]:
                found = _secrets(step)
                if found and "GITHUB_ENV" in (step.script or ""):
                    what = f"`{command_of(use)}` is given secrets.{found} by an earlier step"
                    return self.says("refuted", what, (step.place, use.step.place), mend=mend)
                if found and step.uses and not step.uses.startswith("actions/checkout@"):
                    what = (
                        f"`{step.uses.partition('@')[0]}` is given secrets.{found} in the job that measures"
                    )
                    return self.says("unknown", what, (step.place,), mend=mend)
        return self.says("proven", "no secret is given to what measures and grades")


class Reachable(Rule):
    """pull_request_target, workflow_run and comments run with the repository's secrets. A job there that checks the
    pull request's head out hands them to anyone. Mend it: pull_request, without secrets."""

    id, tier, title = "T106", 1, "no fork reaches a paid leg or a key"

    def check(self, evidence: Evidence) -> Finding:
        for workflow in evidence.workflows:
            privileged = [
                e for e in ("pull_request_target", "issue_comment", "workflow_run") if e in workflow.triggers
            ]
            for job in workflow.jobs.values() if privileged else ():
                step = next((step for step in job.steps if _takes_head(step)), None)
                if step is not None and (job.condition or "").strip() != "false":
                    what = f"job {job.key!r} checks the head of a pull request out on {privileged[0]}, with secrets"
                    return self.says(
                        "refuted", what, (step.place,), mend="use pull_request, or do not check it out"
                    )
        return self.says("proven", "no privileged job checks a pull request's head out")


RULES = (Measures, Breaks, Reconstructs, Queries, Keyless, Reachable)


def half_step(evidence: Evidence) -> tuple[str, str] | None:
    """A test file that reads a declared or recognised file of queries, and that file: the deceptive half-step."""
    inputs = list(evidence.audit.inputs)
    if evidence.ours is not None:
        inputs += [f"{arm.dataset.rstrip('/')}/queries.jsonl" for arm in evidence.ours.arms.values()]
    names = {path.rsplit("/", 1)[-1]: path for path in inputs}
    if not names:
        return None
    looked = 0
    for path in evidence.files.below(""):
        parts = path.lower().split("/")
        is_test = (
            any(part in ("test", "tests", "spec", "__tests__") for part in parts[:-1]) or "test" in parts[-1]
        )
        if not is_test or path in inputs:
            continue
        text = evidence.text(path) or ""
        for name, whole in names.items():
            if name in text:
                return path, whole
        looked += 1
        if looked == 500:
            break
    return None


def _has_query(text: str) -> bool:
    """Whether the first line of a file of queries is one."""
    try:
        first = json.loads(next((line for line in text.splitlines() if line.strip()), ""))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and bool({"_id", "id"} & set(first))


def _on_pull_request(workflow: Workflow) -> bool:
    return not workflow.triggers or any(event not in OWNED for event in workflow.triggers)


def _secrets(step: Step) -> str | None:
    for text in (*step.env.values(), *step.inputs.values(), step.script or ""):
        if found := _SECRET.search(text):
            return found[1] or found[2]
    return None


def _takes_head(step: Step) -> bool:
    if (step.uses or "").startswith("actions/checkout@"):
        return bool(
            _HEAD.search(step.inputs.get("ref", "")) or _HEAD.search(step.inputs.get("repository", ""))
        )
    script = step.script or ""
    return "git" in script and bool(_HEAD.search(script))
