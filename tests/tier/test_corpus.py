"""Small repositories of every kind, each placed: none higher than it is, and each whole one as high as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tier_support import (
    CI,
    DECLARED,
    FOREIGN,
    JOB,
    ON,
    REQUIRED,
    STEPS,
    placed,
    settings,
    whole,
    workflow,
)

from eval_core.config import Audit

MEASURE = "      - uses: actions/checkout@v4\n      - run: eval-core measure\n"
GATE = "eval-gate check"


def ci(steps: str = STEPS, **parts: str) -> dict[str, bytes]:
    return {CI: workflow(steps, **parts).encode()}


def run(*lines: str, head: str = "") -> str:
    """The steps of the whole, with the gate's step as a script of these lines."""
    text = "".join(f"          {line}\n" for line in lines)
    return STEPS.replace(f"      - run: {GATE}\n", f"      - {head}run: |\n{text}")


def without(*names: str) -> dict[str, bytes]:
    return {name: data for name, data in whole().items() if not name.startswith(names)}


#: Scripts in which a breach fails the step, so that the repository is whole.
HONEST = {
    "plain": run(GATE),
    "exit": run(f"{GATE} || exit 1"),
    "group": run(f"{GATE} || {{ echo breach; exit 1; }}"),
    "if": run(f"if ! {GATE}; then exit 1; fi"),
    "code": run("set +e", GATE, "rc=$?", "echo done", "exit $rc"),
    "pipefail": run("set -o pipefail", f"{GATE} | tee summary"),
    "bash": run(f"{GATE} | tee summary", head="shell: bash\n        "),
    "and": run(f"true && {GATE}"),
    "variable": run('GATE="eval-gate check"', "$GATE"),
    "launcher": run("uv run --frozen eval-gate check"),
    "module": run("python -m eval_gate check"),
    "path": run(".venv/bin/eval-gate check"),
    "continued": run("eval-gate \\", "  check"),
    "subshell": run(f"( cd . && {GATE} )"),
    "comment": run("# nothing || true", GATE),
}

#: Scripts in which it does not, or the gate may not be run.
MASKED = {
    "or-true": run(f"{GATE} || true"),
    "or-echo": run(f"{GATE} || echo breach"),
    "colon": run(f"{GATE} || :"),
    "pipe": run(f"{GATE} | tee summary"),
    "no-e": run("set +e", GATE, "true"),
    "no-e-exit": run("set +e", GATE, "exit 0"),
    "background": run(f"{GATE} &"),
    "condition": run(f"if {GATE}; then echo good; fi"),
    "negated": run(f"! {GATE} || true"),
    "quoted": run(f"echo '{GATE}'"),
    "heredoc": run("cat <<EOF", GATE, "EOF"),
    "commented": run(f"# {GATE}", "true"),
    "maybe": run(f"if [ -f floors ]; then {GATE}; fi"),
    "after-exit": run("exit 0", GATE),
    "help": run(f"{GATE} --help"),
    "or": run(f"true || {GATE}"),
    "python": run(GATE, head="shell: python\n        "),
    "step": STEPS.replace(f"- run: {GATE}", f"- continue-on-error: true\n        run: {GATE}"),
}

CALLED = {
    "script": {"tools/gate.sh": b"#!/usr/bin/env bash\nset -euo pipefail\neval-gate check\n"},
    "make": {"Makefile": b"gate: data\n\teval-gate check\ndata:\n\ttrue\n"},
    "nox": {
        "noxfile.py": b"import nox\n@nox.session\ndef gate(session):\n    session.run('eval-gate', 'check')\n"
    },
    "tox": {"tox.ini": b"[testenv:gate]\ncommands =\n    eval-gate check\n"},
    "npm": {"package.json": b'{"scripts": {"gate": "eval-gate check"}}'},
}
CALLS = {
    "script": "bash tools/gate.sh",
    "make": "make gate",
    "nox": "nox -s gate",
    "tox": "tox -e gate",
    "npm": "npm run gate",
}
HIDING = {
    "script": {"tools/gate.sh": b"#!/usr/bin/env bash\neval-gate check\ntrue\n"},
    "make": {"Makefile": b"gate:\n\t-eval-gate check\n"},
    "nox": {
        "noxfile.py": b"import nox\n@nox.session\ndef gate(session):\n"
        b"    session.run('eval-gate', 'check', success_codes=[0, 1])\n"
    },
    "tox": {"tox.ini": b"[testenv:gate]\ncommands =\n    - eval-gate check\n"},
    "npm": {"package.json": b'{"scripts": {"gate": "eval-gate check || true"}}'},
}

FORGES = {
    ".gitlab-ci.yml": "gate:\n  script:\n    - eval-core measure\n    - eval-gate check\n",
    ".gitea/workflows/ci.yml": workflow(),
    ".forgejo/workflows/ci.yml": workflow(),
    ".woodpecker.yml": "steps:\n  gate:\n    commands:\n      - eval-core measure\n      - eval-gate check\n",
    ".circleci/config.yml": "jobs:\n  gate:\n    steps:\n      - run: eval-gate check\n",
    "Jenkinsfile": "pipeline { sh 'eval-gate check' }\n",
    ".travis.yml": "script: eval-gate check\n",
    "azure-pipelines.yml": "steps:\n  - script: eval-gate check\n",
}

Case = tuple[dict[str, bytes], Audit | None, bytes | None, int, int]


def cases() -> dict[str, Case]:
    """By name: files, declaration, settings; the tier by mechanism and in effect that a reader gives it."""
    everything = whole()
    found: dict[str, Case] = {
        "tier 3": (everything, None, REQUIRED, 3, 3),
        "tier 3, nobody saw the settings": (everything, None, None, 3, 1),
        "tier 3, not required": (everything, None, settings(), 3, 1),
        "tier 3, by push, too": (everything | ci(on="on: [push, pull_request, merge_group]\n"), None, REQUIRED, 3, 3),
        "tier 2: nothing is published": (everything | ci(MEASURE + f"      - run: {GATE}\n"), None, REQUIRED, 2, 2),
        "tier 1: no gate": (everything | ci(MEASURE), None, REQUIRED, 1, 1),
        "tier 1: no floors": (without("policy/"), None, REQUIRED, 1, 1),
        "tier 1: no evidence": (without("policy/evidence/"), None, REQUIRED, 1, 1),
        "tier 0: tests alone": (everything | ci("      - run: pytest\n"), None, REQUIRED, 0, 0),
        "tier 0: no CI": (without(".github/"), None, REQUIRED, 0, 0),
        "tier 0: by schedule": (everything | ci(on="on:\n  schedule:\n    - cron: 1 1 * * *\n"), None, REQUIRED, 0, 0),
        "tier 0: by push to main": (everything | ci(on="on:\n  push:\n    branches: [main]\n"), None, REQUIRED, 0, 0),
        "tier 0: by push of tags": (everything | ci(on="on:\n  push:\n    tags: [v*]\n"), None, REQUIRED, 0, 0),
        "tier 0: by paths": (everything | ci(on="on:\n  pull_request:\n    paths: [src/**]\n"), None, REQUIRED, 0, 0),
        "tier 0: no fork": (
            everything | ci(job="  gate:\n    if: github.event.pull_request.head.repo.fork == false\n    runs-on: x\n"),
            None, REQUIRED, 0, 0,
        ),
        "tier 0: no draft": (
            everything | ci(job="  gate:\n    if: '!github.event.pull_request.draft'\n    runs-on: x\n"),
            None, REQUIRED, 0, 0,
        ),
        "foreign": (FOREIGN, DECLARED, REQUIRED, 2, 2),
        "foreign, undeclared": (FOREIGN, None, REQUIRED, 0, 0),
        "foreign, no second run": (FOREIGN, DECLARED.model_copy(update={"states": {"T208": "so"}}), REQUIRED, 1, 1),
        "foreign, floor of zero": (
            FOREIGN | {"evals/thresholds.toml": b"[a]\nn = 27\nmrr = 0.0\n"}, DECLARED, REQUIRED, 1, 1,
        ),
    }  # fmt: skip
    for name, steps in HONEST.items():
        found[f"honest {name}"] = (everything | ci(steps), None, REQUIRED, 3, 3)
    for name, steps in MASKED.items():
        found[f"masked {name}"] = (everything | ci(steps), None, REQUIRED, 1, 1)
    for name, call in CALLS.items():
        steps = STEPS.replace(GATE, call)
        found[f"called by {name}"] = (everything | CALLED[name] | ci(steps), None, REQUIRED, 3, 3)
        found[f"hidden in {name}"] = (everything | HIDING[name] | ci(steps), None, REQUIRED, 1, 1)
        found[f"{name} without a file"] = (everything | ci(steps), None, REQUIRED, 1, 1)
    for path, text in FORGES.items():
        found[f"forge {path}"] = (without(".github/") | {path: text.encode()}, None, REQUIRED, 0, 0)
    inner = workflow(on="on: workflow_call\n")
    found["reusable"] = (
        everything | {".github/workflows/inner.yml": inner.encode()}
        | {CI: f"{ON}jobs:\n  call:\n    uses: ./.github/workflows/inner.yml\n".encode()},
        None, settings("call / gate"), 3, 3,
    )  # fmt: skip
    action = "runs:\n  using: composite\n  steps:\n    - run: eval-gate check\n      shell: bash\n"
    composite = STEPS.replace("run: eval-gate check", "uses: ./tools/gate")
    found["composite"] = (
        everything | {"tools/gate/action.yml": action.encode()} | ci(composite),
        None,
        REQUIRED,
        3,
        3,
    )
    needing = "  gate:\n    needs: [measure]\n    runs-on: x\n"
    first = f"  measure:\n    runs-on: x\n    steps:\n{MEASURE}"
    handed = STEPS.replace("run: eval-core measure", "uses: actions/download-artifact@v4")
    found["two jobs, both required"] = (
        everything | ci(handed, job=first + needing),
        None,
        settings("gate", "measure"),
        3,
        3,
    )
    found["two jobs, of which one is required"] = (
        everything | ci(handed, job=first + needing),
        None,
        REQUIRED,
        3,
        1,
    )
    always = needing.replace("    runs-on", "    if: always()\n    runs-on")
    found["two jobs, the second in any case"] = (
        everything | ci(handed, job=first + always),
        None,
        REQUIRED,
        3,
        3,
    )
    found["two jobs, and nothing handed over"] = (
        everything | ci(STEPS.replace("      - run: eval-core measure\n", ""), job=first + needing),
        None, settings("gate", "measure"), 1, 1,
    )  # fmt: skip
    matrix = JOB + "    strategy:\n      matrix:\n        python: ['3.11', '3.13']\n"
    found["matrix"] = (everything | ci(job=matrix), None, settings("gate (3.11)", "gate (3.13)"), 3, 3)
    some = STEPS.replace("run: eval-gate", "if: matrix.python == '3.13'\n        run: eval-gate")
    found["a leg that grades"] = (everything | ci(some, job=matrix), None, settings("gate (3.13)"), 3, 3)
    found["a leg that does not grade"] = (
        everything | ci(some, job=matrix),
        None,
        settings("gate (3.11)"),
        3,
        1,
    )
    for name, edit in OTHER_FILES.items():
        found[f"other files: {name}"] = (everything | ci(edit), None, REQUIRED, 0, 0)
    for name, (edit, reached) in NARROWED.items():
        found[f"another gate: {name}"] = (everything | ci(STEPS.replace("eval-gate check", edit)), None, REQUIRED,
                                          reached, min(reached, 1) if reached < 3 else 3)  # fmt: skip
    for name, script in BAR.items():
        step = f"      - run: |\n          {script}\n"
        found[f"the bar: {name}"] = (everything | ci(STEPS + step), None, REQUIRED, 1, 1)
    for name, script in INPUTS.items():
        step = f"      - run: {json.dumps(script)}\n"
        found[f"an input: {name}"] = (
            everything | ci(STEPS.replace("      - run: eval-core", step + "      - run: eval-core")),
            None, REQUIRED, 0, 0,
        )  # fmt: skip
    between = STEPS.replace(
        "      - run: eval-gate", "      - run: cp snap/*.json .eval/reports/\n      - run: eval-gate"
    )
    found["reports that are exchanged"] = (everything | ci(between), None, REQUIRED, 1, 1)
    its = {"gate.sh": b"set -e\neval-gate check\n"}
    called = STEPS.replace("eval-gate check", "bash gate.sh")
    found["a script that is changed"] = (
        everything | its | ci(called.replace("      - run: bash", "      - run: cp x gate.sh\n      - run: bash")),
        None, REQUIRED, 1, 1,
    )  # fmt: skip
    found["a script"] = (everything | its | ci(called), None, REQUIRED, 3, 3)
    for name, edit in KEYS.items():
        found[f"a key: {name}"] = (everything | ci(edit), None, REQUIRED, 0, 0)
    for name, step in MODELS.items():
        found[f"a model: {name}"] = (everything | ci(STEPS + step), None, REQUIRED, 1, 1)
    gathered = "  all:\n    if: always()\n    needs: [mid]\n    runs-on: x\n    steps:\n"
    gathered += '      - run: test "${{ needs.mid.result }}" = success\n'
    middle = "  mid:\n    needs: [gate]\n    runs-on: x\n    steps:\n      - run: echo\n"
    found["gathered by way of another"] = (
        everything | ci(more=middle + gathered),
        None,
        settings("all"),
        3,
        3,
    )
    found["gathered by way of one that always succeeds"] = (
        everything | ci(more=middle.replace("    needs", "    if: always()\n    needs") + gathered),
        None, settings("all"), 3, 1,
    )  # fmt: skip
    green = (
        gathered.split("    steps:")[0].replace("mid", "gate")
        + "    steps:\n      - uses: re-actors/alls-green@v1\n"
    )
    green += "        with:\n          jobs: ${{ toJSON(needs) }}\n"
    found["alls-green"] = (everything | ci(more=green), None, settings("all"), 3, 3)
    found["alls-green, masked"] = (
        everything | ci(more=green + "        continue-on-error: true\n"),
        None,
        settings("all"),
        3,
        1,
    )
    below = {f"svc/{path}": data for path, data in everything.items() if not path.startswith(".github")}
    found["a harness in a folder, asked for at the top"] = (
        below | ci(STEPS.replace("run: eval", "working-directory: svc\n        run: eval")),
        None,
        REQUIRED,
        0,
        0,
    )
    found["our commands in another folder"] = (
        everything | ci(STEPS.replace("run: eval", "working-directory: demo\n        run: eval")),
        None,
        REQUIRED,
        0,
        0,
    )
    masked = STEPS.replace("run: eval-gate", "id: g\n        continue-on-error: true\n        run: eval-gate")
    found["a failure that a later step looks at"] = (
        everything | ci(masked + "      - if: steps.g.outcome != 'success'\n        run: exit 1\n"),
        None,
        REQUIRED,
        3,
        3,
    )
    found["a failure that a later step tells"] = (
        everything | ci(masked + "      - if: steps.g.outcome != 'success'\n        run: echo no\n"),
        None,
        REQUIRED,
        1,
        1,
    )
    named = "  other:\n    name: ${{ vars.NAME }}\n    runs-on: x\n    steps:\n      - run: 'true'\n"
    found["another job that may have the name"] = (everything | ci(more=named), None, REQUIRED, 3, 1)
    named = named.replace("${{ vars.NAME }}", "test ${{ vars.NAME }}")
    found["another job that cannot have the name"] = (everything | ci(more=named), None, REQUIRED, 3, 3)
    everywhere = "on:\n  pull_request:\n    paths: ['**']\n  merge_group:\n"
    found["paths that leave out nothing"] = (everything | ci(on=everywhere), None, REQUIRED, 3, 3)
    return found


CHECKOUT = "      - uses: actions/checkout@v4\n"

#: Files that are not those of the pull request.
OTHER_FILES = {
    "a ref": STEPS.replace("@v4\n", "@v4\n        with:\n          ref: main\n"),
    "the base": STEPS.replace("@v4\n", "@v4\n        with:\n          ref: ${{ github.base_ref }}\n"),
    "another repository": STEPS.replace("@v4\n", "@v4\n        with:\n          repository: o/other\n"),
    "a folder": STEPS.replace("@v4\n", "@v4\n        with:\n          path: sub\n"),
    "a part": STEPS.replace("@v4\n", "@v4\n        with:\n          sparse-checkout: docs\n"),
    "too late": STEPS.replace(CHECKOUT, "") + CHECKOUT,
    "another commit": STEPS.replace("@v4\n", "@v4\n      - run: git checkout origin/main -- .\n"),
    "a branch": STEPS.replace("@v4\n", "@v4\n      - run: git switch main\n"),
}

#: How our gate is called, and the mechanism that is reached.
NARROWED = {
    "another floors file": ("eval-gate check --floors other.toml --allow-unbound", 1),
    "another policy": ("eval-gate check --policy other", 1),
    "another configuration": ("eval-gate check --config=other.toml", 1),
    "a report that is named": ("eval-gate check --report dedupe-bm25=snap.json", 1),
    "an option that is not known": ("eval-gate check $EXTRA", 1),
    "its only arm": ("eval-gate check dedupe-bm25", 3),
    "how it prints": ("eval-gate check --format github --output markdown=out.md --require=class", 3),
}

#: Scripts that move the bar.
BAR = {
    "a path": "cat easy.toml > ./policy/floors.toml",
    "the workspace": "cat easy.toml > $PWD/policy/floors.toml",
    "in its folder": "cd policy && cp ../easy.toml floors.toml",
    "into its folder": "cp easy/floors.toml policy/",
    "a folder": "rsync -a easy/ policy/",
    "in place": "sed -i 's/0.7/0.1/' policy/floors.toml",
    "of another branch": "git checkout origin/easy -- policy",
    "its evidence": "cat x >> policy/evidence/dedupe-bm25.jsonl",
    "into a commit": "git add policy && git commit -m floors",
}

#: Scripts that change what is measured.
INPUTS = {
    "fetched": "curl -o datasets/dedupe/queries.jsonl https://example.org/q",
    "shortened": "sed -i 5d datasets/dedupe/queries.jsonl",
    "removed": "rm datasets/dedupe/qrels/test.tsv",
    "a folder": "aws s3 sync s3://b datasets",
    "the arms": "sed -i s/bm25/oracle/ eval.toml",
}

KEYS = {
    "all secrets": STEPS.replace("measure\n", "measure\n        env:\n          T: ${{ toJSON(secrets) }}\n"),
    "by the environment": STEPS.replace(
        CHECKOUT, CHECKOUT + "      - run: echo K=${{ secrets.K }} >> $GITHUB_ENV\n"
    ),
    "by an action": STEPS.replace(
        CHECKOUT, CHECKOUT + "      - uses: x/setkey@v1\n        with:\n          key: ${{ secrets.K }}\n"
    ),
}

MODELS = {
    "an action": "      - uses: anthropics/claude-code-action@v1\n",
    "an address": "      - run: curl https://api.openai.com/v1/responses\n",
}


@pytest.mark.parametrize("name", cases())
def test_a_repository_is_placed_where_it_is(tmp_path: Path, name: str) -> None:
    """S1, S2: zero wrong promotions, and each whole one reaches its rung."""
    files, audit, snapshot, mechanism, effect = cases()[name]
    found = placed(tmp_path, files, snapshot=snapshot, audit=audit)
    assert (found.mechanism, found.effect) == (mechanism, effect), [
        one for one in found.findings if not one.holds
    ]


def test_there_are_enough_of_both_kinds() -> None:
    held = cases()
    assert len(held) >= 60
    assert sum(effect == 3 for *_, effect in held.values()) >= 20
