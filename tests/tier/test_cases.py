"""The cases of public reports, by their numbers: each a small repository with its verdict and place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tier_support import CI, JOB, ON, REQUIRED, STEPS, finding, placed, settings, whole, workflow

GATE = "eval-gate check"


def gate(text: str) -> str:
    return STEPS.replace(GATE, text)


def block(text: str) -> str:
    lines = "".join(f"          {line}\n" for line in text.split("\n"))
    return STEPS.replace(f"run: {GATE}\n", f"run: |\n{lines}")


JOBS = {
    7: ("  results:\n    needs: [gate]\n    runs-on: x\n    steps:\n      - run: echo ok\n", "results"),
    9: ("  call:\n    uses: ./.github/workflows/inner.yml\n", "validate"),
}
LABEL = "contains(github.event.pull_request.labels.*.name, 'run')"


@pytest.mark.parametrize(
    ("row", "files", "snapshot", "rule", "outcome", "what", "line"),
    [
        (7, {CI: workflow(more=JOBS[7][0])}, settings("results"), "T225", "refuted", "skipped", 12),
        (8, {CI: workflow(job=f"  gate:\n    if: {LABEL}\n    strategy:\n      matrix:\n        a: [b]\n")},
         settings("gate (b)"), "T205", "refuted", "labels", 5),
        (9, {CI: workflow(more=JOBS[9][0]), ".github/workflows/inner.yml":
             workflow("      - run: 'true'\n", on="on: workflow_call\n", job=JOB.replace("gate", "validate"))},
         settings("validate"), "T221", "refuted", "no producer", 5),
        (10, {}, settings("ci"), "T221", "refuted", "no producer", 5),
        (11, {".github/workflows/b.yml": workflow()}, REQUIRED, "T222", "refuted", "ambiguous", 5),
        (12, {CI: workflow(job=JOB + "    continue-on-error: true\n")}, REQUIRED, "T204", "refuted", "of the job", 5),
        (12, {CI: workflow(job=JOB + "    strategy:\n      matrix:\n        soft: [true, false]\n"
                                     "    continue-on-error: ${{ matrix.soft }}\n")}, settings("gate (false)"),
         "T204", "proven", "fails its job", None),
        (13, {CI: workflow(gate(f"{GATE} | tee summary"))}, REQUIRED, "T204", "refuted", "pipe", 10),
        (14, {CI: workflow(gate(f"{GATE} || true"))}, REQUIRED, "T204", "refuted", "true", 10),
        (14, {CI: workflow(gate(f"'# {GATE}'"))}, REQUIRED, "T203", "refuted", "no step of CI grades", None),
        (14, {CI: workflow(STEPS.replace(f"run: {GATE}", f"if: false\n        run: {GATE}"))}, REQUIRED,
         "T205", "refuted", "never runs it", 10),
        (14, {CI: workflow(block(f"set +e\n{GATE}\ntrue"))}, REQUIRED, "T204", "refuted", "", 12),
        (14, {CI: workflow(block(f"set +e\n{GATE}; true"))}, REQUIRED, "T204", "refuted", "", 12),
        (14, {CI: workflow(gate(f"{GATE} &"))}, REQUIRED, "T204", "refuted", "", 10),
        (15, {CI: workflow(on="on: pull_request\n")}, settings("gate", queue=True), "T223", "refuted", "merge", None),
        (16, {CI: workflow(on=ON.replace("pull_request:\n", "pull_request:\n    paths: [src/**]\n"))}, REQUIRED,
         "T205", "refuted", "pending", 2),
        (17, {}, settings("gate", app=99), "T222", "refuted", "never satisfied", 5),
        (18, {CI: workflow(STEPS.replace(f"run: {GATE}", f"continue-on-error: true\n        run: {GATE}"))}, REQUIRED,
         "T204", "refuted", "continue-on-error", 10),
        (19, {CI: workflow(on="on:\n  workflow_dispatch:\n")}, REQUIRED, "T101", "refuted", "workflow_dispatch", None),
        (20, {CI: workflow(on="on: pull_request\n")}, REQUIRED, "T101", "proven", "", 7),
        (22, {"policy/floors.toml": 'schema = "floors-v2"\n'}, REQUIRED, "T201", "refuted", "vacuous", None),
        (22, {"datasets/dedupe/queries.jsonl": ""}, REQUIRED, "T104", "refuted", "no query", None),
        (25, {CI: workflow("      - run: pytest\n"), "tests/test_set.py": "open('datasets/dedupe/queries.jsonl')\n"},
         REQUIRED, "T101", "refuted", "asserts the composition", None),
    ],
    ids=lambda value: f"row{value}" if isinstance(value, int) else None,
)  # fmt: skip
def test_a_case_of_a_public_report_gets_its_verdict_and_its_place(
    tmp_path: Path,
    row: int,
    files: dict[str, str],
    snapshot: bytes,
    rule: str,
    outcome: str,
    what: str,
    line: int | None,
) -> None:
    """S1: tiers by evidence; the rows 1 to 6 are those of settings, in test_settings."""
    found = placed(
        tmp_path, whole() | {name: text.encode() for name, text in files.items()}, snapshot=snapshot
    )
    said = finding(found, rule)
    assert said.outcome == outcome, said
    assert what in said.what
    if line is not None:
        assert line in [place.line for place in said.places], said.places


@pytest.mark.parametrize("row", [23, 24])
def test_other_forges_are_named_and_unknown(tmp_path: Path, row: int) -> None:
    path = {23: ".gitlab-ci.yml", 24: ".gitea/workflows/ci.yml"}[row]
    files = whole()
    text = "gate:\n  script:\n    - eval-core measure\n    - eval-gate check\n"
    files[path] = text.encode()
    del files[CI]
    found = placed(tmp_path, files)
    said = finding(found, "T101")
    assert (said.outcome, found.effect) == ("unknown", 0)
    assert path in [place.file for place in said.places]


def test_a_malformed_workflow_is_one_fault_and_the_others_are_judged(tmp_path: Path) -> None:
    """Row 21: one malformed workflow among five."""
    files = whole() | {
        f".github/workflows/{n}.yml": workflow("      - run: 'true'\n").encode() for n in range(4)
    }
    files[".github/workflows/4.yml"] = b"on: [\n"
    found = placed(tmp_path, files, snapshot=settings("other"))
    assert len(found.faults) == 1 and found.faults[0].startswith(".github/workflows/4.yml:")
    assert finding(found, "T204").outcome == "proven"


def test_nothing_recognised_and_nothing_declared_is_undetermined(tmp_path: Path) -> None:
    found = placed(tmp_path, {CI: workflow("      - run: pytest\n").encode(), "README.md": b"x"})
    assert found.state == "undetermined"
