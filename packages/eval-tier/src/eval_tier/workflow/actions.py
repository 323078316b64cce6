"""A workflow file of GitHub Actions, with the reusable workflows and composite actions of the same repository."""

# long because: one walk over a workflow and all that it calls; the forms of jobs and steps are read side by side
from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_tier.workflow import yaml
from eval_tier.workflow.models import Defect, Job, Place, Step, Trigger, Workflow
from eval_tier.workflow.yaml import entries, fields, get, line, text, texts

#: The content of a file of the audited repository by its path; None where no regular file stands there.
Reader = Callable[[str], bytes | None]

MAX_LEGS = 256
MAX_CALLS = 4
MAX_STEPS = 2_000
MAX_JOBS = 500
MAX_FILES = 100

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_INPUT = re.compile(r"\binputs\.([A-Za-z_][\w-]*)|\binputs\['([^']*)'\]")
_LITERAL = re.compile(r"true|false|-?\d+(\.\d+)?")
_MATRIX = re.compile(r"\s*matrix\.([\w-]+(?:\.[\w-]+)*)\s*")
_STATUS = re.compile(r"\b(always|success|failure|cancelled)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a node is read: its file, the values of `inputs` that are known, and the files that lead to it."""

    file: str
    read: Reader
    inputs: Mapping[str, str]
    typed: frozenset[str] = frozenset()
    calls: tuple[str, ...] = ()

    def place(self, node: Node | None) -> Place:
        return Place(self.file, line(node) if node is not None else None)

    def fault(self, node: Node | None, what: str) -> Defect:
        return Defect(self.place(node), what)

    def text(self, node: Node | None) -> str | None:
        found = text(node)
        return None if found is None else self.bind(found)

    def bind(self, value: str) -> str:
        """The text with literal inputs in place of `${{ inputs.x }}`, and quoted ones inside longer expressions."""
        if "inputs" not in value or not self.inputs:
            return value
        return _EXPRESSION.sub(self._expression, value)

    def _expression(self, match: re.Match[str]) -> str:
        whole = _INPUT.fullmatch(match[1].strip())
        value = self.inputs.get(whole[1] or whole[2]) if whole else None
        if value is not None and "\n" not in value:
            return value
        return "${{" + self.expression(match[1]) + "}}"

    def expression(self, value: str) -> str:
        return _INPUT.sub(self._literal, value) if self.inputs else value

    def _literal(self, match: re.Match[str]) -> str:
        name = match[1] or match[2]
        value = self.inputs.get(name)
        if value is None or "\n" in value:
            return match[0]
        if "${{" in value:
            inner = _EXPRESSION.fullmatch(value.strip())
            return f"({inner[1].strip()})" if inner else match[0]
        if name in self.typed and _LITERAL.fullmatch(value):
            return value
        return "'" + value.replace("'", "''") + "'"

    def condition(self, node: Node | None) -> str | None:
        found = text(node)
        if found is None or not found.strip():
            return None
        whole = _EXPRESSION.fullmatch(found.strip())
        return self.expression(whole[1] if whole else found).strip()

    def env(self, node: Node | None, outer: Mapping[str, str]) -> Mapping[str, str]:
        if node is None:
            return outer
        own = {key: self.text(value) for key, (_, value) in entries(node).items()}
        return {**outer, **{key: value for key, value in own.items() if value is not None}}

    def masked(self, node: Node | None) -> str | None:
        found = self.text(node)
        return None if found is None or found.strip().lower() in ("", "false") else found


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What holds for the steps of a job where they say nothing else."""

    env: Mapping[str, str]
    shell: str | None = None
    folder: str = "."

    def within(self, scope: _Scope, held: Mapping[str, Node]) -> _Defaults:
        """These with what the fields of a workflow or a job say."""
        if "defaults" not in held and "env" not in held:
            return self
        run = fields(get(held.get("defaults"), "run"))
        return _Defaults(
            scope.env(held.get("env"), self.env),
            scope.text(run.get("shell")) or self.shell,
            _folder(scope.text(run.get("working-directory")), self.folder),
        )


def _folder(found: str | None, outer: str) -> str:
    return posixpath.normpath(found) if found else outer


def joined(outer: str | None, inner: str | None) -> str | None:
    """Both conditions at once; an outer one without a status function keeps its implied `success()`."""
    if outer is None:
        return inner
    if not _STATUS.search(outer):
        outer = f"success() && ({outer})"
    return f"({outer})" if inner is None else f"({outer}) && ({inner})"


def parse(file: str, raw: bytes, read: Reader) -> Workflow:
    """One workflow; a wrong form of a job is a fault of that job, and the rest is read."""
    document = yaml.compose(file, raw)
    if document.root is None:
        return Workflow(file, faults=document.faults)
    scope = _Scope(file, _bounded(read), {})
    top = entries(document.root)
    faults = list(document.faults)
    triggers = _triggers(scope, top["on"][1] if "on" in top else None, faults)
    if "on" not in top:
        faults.append(scope.fault(None, "the workflow has no `on`"))
    node = top["jobs"][1] if "jobs" in top else None
    if not isinstance(node, MappingNode):
        faults.append(scope.fault(node, "`jobs` is not a mapping"))
    jobs = _jobs(scope, document.root, _Defaults({}))
    return Workflow(file, text(get(document.root, "name")) or "", triggers, jobs, tuple(faults))


def _bounded(read: Reader) -> Reader:
    """The same files until the budget of one workflow is spent: calls of calls may multiply without end."""
    spent = [0, 0]

    def bounded(path: str) -> bytes | None:
        if spent[0] >= MAX_FILES or spent[1] >= yaml.MAX_BYTES:
            return None
        raw = read(path)
        spent[0] += 1
        spent[1] += len(raw or b"")
        return raw

    return bounded


def _triggers(scope: _Scope, node: Node | None, faults: list[Defect]) -> dict[str, Trigger]:
    if isinstance(node, ScalarNode):
        return {node.value: Trigger(node.value, scope.place(node))} if node.value else {}
    if isinstance(node, SequenceNode):
        return {
            str(n.value): Trigger(str(n.value), scope.place(n))
            for n in node.value
            if isinstance(n, ScalarNode)
        }
    found: dict[str, Trigger] = {}
    for event, (key, value) in entries(node).items():
        filters: dict[str, tuple[str, ...] | None] = {}
        for name in (
            *("branches", "branches-ignore", "tags", "tags-ignore", "paths", "paths-ignore", "types"),
        ):
            given = get(value, name)
            if given is not None:
                filters[name.replace("-", "_")] = written = texts(given)
                if written is None:
                    faults.append(
                        scope.fault(given, f"`{name}` of `{event}` is neither a text nor a list of texts")
                    )
                    filters[name.replace("-", "_")] = ()
        found[event] = Trigger(event, scope.place(key), **filters)
    return found


def _jobs(scope: _Scope, root: Node, outer: _Defaults) -> dict[str, Job]:
    """The jobs of one file, those of the reusable workflows that they call in their place."""
    held = fields(root)
    defaults = outer.within(scope, held)
    node = held.get("jobs")
    inner: dict[str, dict[str, Job]] = {}
    for key, (at, body) in entries(node).items():
        inner[key] = _job(scope, key, at, body, defaults)
        if sum(map(len, inner.values())) > MAX_JOBS:
            what = f"more than {MAX_JOBS} jobs once reusable workflows are read"
            inner[key] = {key: Job(scope.place(at), key, (key,), key, faults=(scope.fault(at, what),))}
            break
    jobs: dict[str, Job] = {}
    for caller, group in inner.items():
        for key, job in group.items():
            needs: list[str] = []
            faults = list(job.faults)
            for need in job.needs:
                if need in group and need != caller:
                    needs.append(need)
                elif need in inner:
                    needs.extend(inner[need])
                else:
                    faults.append(Defect(job.place, f"needs {need!r}, which is not a job of this workflow"))
            if job.needs:
                job = replace(job, needs=tuple(dict.fromkeys(needs)), faults=tuple(faults))
            jobs[key] = job
    return jobs


def _job(scope: _Scope, key: str, at: Node, body: Node, outer: _Defaults) -> dict[str, Job]:
    place = scope.place(at)
    if not isinstance(body, MappingNode):
        return {
            key: Job(place, key, (key,), key, faults=(scope.fault(at, f"the job {key!r} is not a mapping"),))
        }
    faults: list[Defect] = []
    held = fields(body)
    defaults = outer.within(scope, held)
    needs = texts(held["needs"]) if "needs" in held else ()
    if needs is None:
        faults.append(scope.fault(held["needs"], "`needs` is neither a text nor a list of texts"))
    legs, open_ = _legs(scope, get(held.get("strategy"), "matrix"), faults)
    checks, template, open_ = _checks(key, scope.text(held.get("name")), legs, open_)
    runner = held.get("runs-on")
    uses = scope.text(held.get("uses"))
    steps: tuple[Step, ...] = ()
    if uses is None:
        found = _steps(scope, held.get("steps"), defaults, faults, None)
        steps = tuple(itertools.islice(found, MAX_STEPS + 1))
        if len(steps) > MAX_STEPS:
            faults.append(Defect(place, f"more than {MAX_STEPS:,} steps once composite actions are read"))
    job = Job(
        place,
        key,
        checks,
        template,
        open_,
        scope.condition(held.get("if")),
        needs or (),
        scope.masked(held.get("continue-on-error")),
        scope.text(runner) or ", ".join(texts(runner) or texts(get(runner, "labels")) or ()),
        legs,
        defaults.env,
        steps[:MAX_STEPS],
        tuple(faults),
    )
    return {key: job} if uses is None else _called(scope, job, uses, body, faults)


def _called(scope: _Scope, job: Job, uses: str, body: Node, faults: list[Defect]) -> dict[str, Job]:
    """The jobs of a reusable workflow in their caller's place."""

    def refused(what: str) -> dict[str, Job]:
        faults.append(scope.fault(get(body, "uses"), what))
        return {job.key: replace(job, open=True, faults=tuple(faults))}

    if not uses.startswith("./"):
        return refused(f"the reusable workflow {uses!r} is of another repository: its commands are unknown")
    path = posixpath.normpath(uses)
    if path == scope.file or path in scope.calls:
        return refused(f"the reusable workflow {uses!r} calls itself")
    if len(scope.calls) >= MAX_CALLS:
        return refused(f"reusable workflows are nested more than {MAX_CALLS} levels")
    raw = scope.read(path)
    if raw is None:
        return refused(f"the reusable workflow {uses!r} does not exist, or too many are read")
    document = yaml.compose(path, raw)
    if document.root is None:
        faults.extend(document.faults)
        return refused(f"the reusable workflow {uses!r} could not be read")
    faults.extend(document.faults)
    call = get(get(document.root, "on"), "workflow_call")
    inner = _inside(scope, path, get(call, "inputs"), get(body, "with"))
    called = _jobs(inner, document.root, _Defaults({}))
    if not called:
        return refused(f"the reusable workflow {uses!r} has no jobs")
    found: dict[str, Job] = {}
    for key, each in called.items():
        checks = tuple(f"{name} / {check}" for name in job.checks for check in each.checks)[:MAX_LEGS]
        found[f"{job.key}/{key}"] = replace(
            each,
            key=f"{job.key}/{key}",
            checks=checks,
            template=f"{job.template} / {each.template}",
            open=job.open or each.open or len(checks) < len(job.checks) * len(each.checks),
            condition=joined(job.condition, each.condition),
            needs=(*job.needs, *(f"{job.key}/{need}" for need in each.needs)),
            masked=each.masked or job.masked,
            faults=(*faults, *each.faults),
        )
    return found


def _inside(scope: _Scope, path: str, declared: Node | None, given: Node | None) -> _Scope:
    """The scope of a called file: its defaults, and what `with` gives."""
    inputs: dict[str, str] = {}
    typed: set[str] = set()
    for name, (_, about) in entries(declared).items():
        default = text(get(about, "default"))
        kind = text(get(about, "type"))
        if kind in ("boolean", "number"):
            typed.add(name)
            default = default or ("false" if kind == "boolean" else "0")
        if default is not None or text(get(about, "required")) != "true":
            inputs[name] = default or ""
    for name, (_, value) in entries(given).items():
        written = scope.text(value)
        if written is None:
            inputs.pop(name, None)
        else:
            inputs[name] = written
    return _Scope(path, scope.read, inputs, frozenset(typed), (*scope.calls, scope.file))


def _steps(
    scope: _Scope, node: Node | None, defaults: _Defaults, faults: list[Defect], outer: Step | None
) -> Iterator[Step]:
    """The steps of a list; `outer` is the step that uses the composite action which has them."""
    if not isinstance(node, SequenceNode):
        faults.append(scope.fault(node, "`steps` is not a list"))
        return
    for item in node.value:
        if not isinstance(item, MappingNode):
            faults.append(scope.fault(item, "a step is not a mapping"))
            continue
        held = fields(item)
        run, uses = held.get("run"), scope.text(held.get("uses"))
        script = scope.text(run)
        if script is None and not uses:
            faults.append(scope.fault(item, "a step has neither `run` nor `uses`"))
            continue
        own = scope.condition(held.get("if"))
        step = Step(
            scope.place(item),
            scope.text(held.get("name")) or "",
            text(held.get("id")) or "",
            joined(outer.condition, own) if outer else own,
            uses or None,
            script,
            yaml.script_line(run) if run is not None else 0,
            scope.text(held.get("shell")) or defaults.shell,
            _folder(scope.text(held.get("working-directory")), defaults.folder),
            (outer.masked if outer else None) or scope.masked(held.get("continue-on-error")),
            scope.env(held.get("env"), defaults.env),
            scope.env(held.get("with"), {}),
        )
        if uses and uses.startswith("./"):
            yield from _composite(scope, step, uses, item, faults)
        else:
            yield step


def _composite(scope: _Scope, step: Step, uses: str, item: Node, faults: list[Defect]) -> Iterator[Step]:
    """The steps of a composite action of the repository; the step itself where it is another kind of action."""

    def refused(what: str) -> Iterator[Step]:
        faults.append(scope.fault(get(item, "uses"), what))
        yield step

    folder = posixpath.normpath(uses)
    for name in ("action.yml", "action.yaml"):
        path = posixpath.normpath(f"{folder}/{name}")
        raw = scope.read(path)
        if raw is not None:
            break
    else:
        yield from refused(f"the action {uses!r} does not exist, or too many are read")
        return
    if path in scope.calls or path == scope.file:
        yield from refused(f"the action {uses!r} uses itself")
        return
    if len(scope.calls) >= 2 * MAX_CALLS:
        yield from refused(f"actions are nested more than {2 * MAX_CALLS} levels")
        return
    document = yaml.compose(path, raw)
    faults.extend(document.faults)
    if document.root is None:
        yield from refused(f"the action {uses!r} could not be read")
        return
    runs = get(document.root, "runs")
    if text(get(runs, "using")) != "composite":
        yield from refused(f"the action {uses!r} is no composite one: its commands are unknown")
        return
    inner = _inside(scope, path, get(document.root, "inputs"), get(item, "with"))
    yield from _steps(
        replace(inner, typed=frozenset()), get(runs, "steps"), _Defaults(step.env), faults, step
    )


def _legs(scope: _Scope, node: Node | None, faults: list[Defect]) -> tuple[tuple[dict[str, str], ...], bool]:
    """The legs of a matrix in the forge's order, and whether they cannot be listed."""
    if node is None:
        return (), False
    if not isinstance(node, MappingNode):
        return (), True
    axes: dict[str, list[dict[str, str]]] = {}
    extra: dict[str, list[dict[str, str]]] = {"include": [], "exclude": []}
    for key, (_, value) in entries(node).items():
        if not isinstance(value, SequenceNode):
            return (), True
        if key in extra:
            if not all(isinstance(item, MappingNode) for item in value.value):
                return (), True
            extra[key] = [_flat(scope, "", item) for item in value.value]
        else:
            axes[key] = [_flat(scope, key, item) for item in value.value]
    size = 1
    for values in axes.values():
        size *= len(values)
    if size + len(extra["include"]) > MAX_LEGS:
        faults.append(scope.fault(node, f"the matrix has more than {MAX_LEGS} legs"))
        return (), True
    every = [*itertools.chain(*axes.values(), *extra.values())]
    if any("${{" in value for values in every for value in values.values()):
        return (), True
    product = [_merge(parts) for parts in itertools.product(*axes.values())] if axes else []
    legs = [leg for leg in product if not any(out.items() <= leg.items() for out in extra["exclude"])]
    base = [dict(leg) for leg in legs]
    names = {name for values in itertools.chain(*axes.values()) for name in values}
    added: list[dict[str, str]] = []
    for include in extra["include"]:
        fits = [
            i for i, leg in enumerate(base) if all(leg.get(k) == v for k, v in include.items() if k in names)
        ]
        for index in fits:
            legs[index].update(include)
        if not fits:
            added.append(include)
    return (*legs, *added), False


def _merge(parts: tuple[dict[str, str], ...]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for part in parts:
        merged.update(part)
    return merged


def _flat(scope: _Scope, name: str, node: Node) -> dict[str, str]:
    """A value of a matrix as dotted names and texts, so that `matrix.a.b` is found."""
    if isinstance(node, MappingNode):
        parts = [
            _flat(scope, f"{name}.{key}" if name else key, value) for key, (_, value) in entries(node).items()
        ]
        return _merge(tuple(parts))
    found = scope.text(node)
    return {name: found if found is not None else ", ".join(texts(node) or ("${{ list }}",))}


def _checks(
    key: str, name: str | None, legs: tuple[dict[str, str], ...], open_: bool
) -> tuple[tuple[str, ...], str, bool]:
    """The names of the checks, the name of the job where it is skipped as a whole, whether they are not all known."""
    template = name or key
    if open_ or not legs:
        return (template,), template, open_ or "${{" in template
    checks: list[str] = []
    for leg in legs:
        if "${{" not in template:
            checks.append(f"{template} ({', '.join(leg.values())})" if leg else template)
            continue
        checks.append(_EXPRESSION.sub(lambda found, leg=leg: _value(found, leg), template))  # type: ignore[misc]
    return tuple(dict.fromkeys(checks)), template, any("${{" in check for check in checks)


def _value(found: re.Match[str], leg: Mapping[str, str]) -> str:
    name = _MATRIX.fullmatch(found[1])
    if not name:
        return found[0]
    prefix = name[1] + "."
    return leg.get(name[1], found[0] if any(key.startswith(prefix) for key in leg) else "")


_FORGES = (
    (r"\.github/workflows/[^/]+\.ya?ml", "GitHub Actions"),
    (r"\.gitlab-ci\.ya?ml", "GitLab CI"),
    (r"\.gitea/workflows/[^/]+\.ya?ml", "Gitea Actions"),
    (r"\.forgejo/workflows/[^/]+\.ya?ml", "Forgejo Actions"),
    (r"\.woodpecker\.ya?ml|\.woodpecker/.+\.ya?ml", "Woodpecker"),
    (r"\.circleci/config\.ya?ml", "CircleCI"),
    (r"\.?azure-pipelines\.ya?ml", "Azure Pipelines"),
    (r"Jenkinsfile", "Jenkins"),
    (r"\.travis\.ya?ml", "Travis CI"),
    (r"bitbucket-pipelines\.ya?ml", "Bitbucket Pipelines"),
    (r"\.drone\.ya?ml", "Drone"),
    (r"\.buildkite/.+\.ya?ml", "Buildkite"),
)
_FORGE = [(re.compile(pattern), name) for pattern, name in _FORGES]


def forge(path: str) -> str | None:
    """The name of the CI that reads a file, by its path; None for any other file."""
    return next((name for pattern, name in _FORGE if pattern.fullmatch(path)), None)


_SCRIPTS = ("before_script", "script", "run", "commands", "command")


def generic(file: str, raw: bytes, job: str) -> tuple[Step, ...] | Defect:
    """The scripts of a job that is declared by name, in any CI file that is YAML; no condition is read."""
    document = yaml.compose(file, raw)
    if document.faults:
        return document.faults[0]
    for key in (None, "jobs", "pipeline", "steps"):
        group = document.root if key is None else get(document.root, key)
        named = get(group, job)
        if named is None and isinstance(group, SequenceNode):
            named = next((item for item in group.value if text(get(item, "name")) == job), None)
        if isinstance(named, MappingNode):
            steps = tuple(_scripts(file, named))
            return steps or Defect(Place(file, line(named)), f"the job {job!r} has no script")
    return Defect(Place(file), f"the file has no job {job!r}")


def _scripts(file: str, node: Node) -> Iterator[Step]:
    for name in _SCRIPTS:
        value = get(node, name)
        if isinstance(value, ScalarNode):
            yield Step(Place(file, line(value)), script=text(value), script_line=yaml.script_line(value))
        elif isinstance(value, SequenceNode):
            for item in value.value:
                if isinstance(item, ScalarNode):
                    yield Step(Place(file, line(item)), script=text(item), script_line=yaml.script_line(item))
        elif isinstance(value, MappingNode):
            yield from _scripts(file, value)
    steps = get(node, "steps")
    for item in steps.value if isinstance(steps, SequenceNode) else ():
        yield from _scripts(file, item)
