"""The commands of the audit, as they are typed: tables, exit codes, formats, and what docs/audit.md prints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tier_support import CI, REQUIRED, ROOT, STEPS, commit, put, tier, tier_process, whole, workflow

from eval_tier.audit import origin
from eval_tier.evidence.settings import sealed

PAGE = (ROOT / "docs" / "audit.md").read_text()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three repositories beside one another, and settings of the whole one."""
    folder = tmp_path_factory.mktemp("src")
    commit(put(folder / "good", whole()))
    commit(
        put(
            folder / "masked",
            whole() | {CI: workflow(STEPS.replace("check\n", "check || true\n", 1)).encode()},
        )
    )
    commit(put(folder / "bare", {"README.md": b"nothing\n"}))
    (folder / "settings.json").write_bytes(REQUIRED)
    return folder


def test_s2_the_table_has_a_row_for_each_and_what_is_not_gated(here: Path) -> None:
    """S2: generated, dated, with what is not gated and the next step."""
    done = tier(here, "audit", "good", "masked", "bare")
    assert done.code == 1
    rows = done.out.splitlines()
    assert re.match(r" repository +commit +tier +not gated +next step", rows[0])
    assert re.match(r" good +[0-9a-f]{7} +3 +mechanism", rows[1]) and "1  effect" in rows[2]
    assert re.match(
        r" masked +[0-9a-f]{7} +1 +proven +a failure of `eval-gate check` does not fail the check", rows[3]
    )
    assert " ?" in rows[4] and "not_applicable" in rows[4]
    assert re.match(r"read 20\d\d-\d\d-\d\d · 3 repositories · why: eval-tier why good", rows[-1])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["audit", "good"], 0),
        (["audit", "good", "--min-mechanism", "3"], 0),
        (["audit", "good", "--min-tier", "1"], 0),
        (["audit", "good", "--min-tier", "2"], 1),
        (["audit", "masked", "--min-mechanism", "2"], 1),
        (["audit", "bare"], 1),
        (["audit", "good", "--work-tree"], 0),
        (["audit", "good", "--ref", "nothing"], 3),
        (["audit", "good", "--ref", "HEAD..HEAD"], 3),
        (["audit", "good", "--ref", "a\nb"], 3),
        (["audit", "good", "--ref", "-x"], 3),
        (["audit", "good", "--ref", ""], 3),
        (["audit", "good", "nowhere"], 3),
        (["audit", "good", "--settings", "good/eval.toml"], 2),
        (["audit", "good", "--explain", "T999"], 2),
        (["audit", "good", "masked", "--settings", "settings.json"], 2),
        (["audit", "good", "--settings", "none.json"], 2),
        (["audit", "good", "masked", "--format", "badge"], 2),
        (["audit", "--fleet", "none.toml"], 2),
        (["audit", "--min-tier", "4"], 2),
        (["why", "good"], 0),
        (["why", "nowhere"], 3),
        (["rules"], 0),
        (["rules", "T2O4"], 2),
    ],
)
def test_exit_codes(here: Path, words: list[str], code: int) -> None:
    done = tier(here, *words)
    assert done.code == code, done
    if code == 2:
        assert done.out == "" and done.err


@pytest.mark.parametrize("form", ["json", "markdown", "badge"])
@pytest.mark.parametrize(("name", "code"), [("good", 0), ("bare", 1)])
def test_exit_codes_are_the_same_in_every_format(here: Path, form: str, name: str, code: int) -> None:
    assert tier(here, "audit", name, "--format", form).code == code


def test_why_names_the_one_missing_fact_and_the_chain(here: Path) -> None:
    done = tier(here, "why", "good")
    assert done.out.startswith("good is at tier 1 in effect, 3 by mechanism; tier 2 is one fact away.")
    assert re.search(r"proven +T203 .* \.github/workflows/ci\.yml:10$", done.out, re.M)
    assert done.out.splitlines()[-1].startswith("Next: eval-tier snapshot OWNER/good")
    masked = tier(here, "why", "masked").out
    assert (
        re.search(r"refuted +T204 .*\|\| true", masked) and "Next: let its exit code be the step's" in masked
    )


def test_json_markdown_and_badge(here: Path) -> None:
    held = json.loads(tier(here, "audit", "good", "bare", "--format", "json").out)
    assert held["schema"] == "audit-v1"
    good, bare = held["repositories"]
    assert (good["mechanism"], good["effect"], good["ceiling"], bare["state"]) == (3, 1, 3, "undetermined")
    assert all(one["what"] for one in good["findings"])
    page = tier(here, "audit", "good", "--format", "markdown").out
    assert page == tier(here, "audit", "good", "--format", "markdown").out and not re.search(r"20\d\d-", page)
    badge = ElementTree.fromstring(tier(here, "audit", "good", "--format", "badge").out)
    assert [text.text for text in badge.findall(".//{*}text")] == [
        "retrieval gate",
        "tier 3 mechanism, 1 effect",
    ]
    widths = [float(field.attrib["width"]) for field in badge.findall(".//{*}rect")]
    assert sum(widths) == float(badge.attrib["width"])


def test_what_changed_since_an_earlier_audit(here: Path) -> None:
    before = here / "before.json"
    before.write_text(
        tier(here, "audit", "good", "--format", "json").out.replace('"effect": 1', '"effect": 2')
    )
    done = tier(here, "audit", "good", "--against", "before.json")
    assert done.code == 1 and "fell  good: tier 2 → 1" in done.out
    before.write_text("{}")
    assert tier(here, "audit", "good", "--against", "before.json").code == 2


def test_a_fleet_has_declared_tiers_places_that_need_none_and_names_alone(here: Path) -> None:
    text = """schema = "fleet-v1"
[[repository]]
path = "good"
tier = 2
[[repository]]
path = "masked"
tier = 1
final = true
[[repository]]
path = "bare"
not_applicable = "no retrieval | <b>"
[[repository]]
name = "OWNER/far"
"""
    (here / "fleet.toml").write_text(text)
    done = tier(here, "audit", "--fleet", "fleet.toml")
    assert done.code == 1 and "1 below its declared tier" in done.out
    assert re.search(r"masked .* 1  final", done.out) and "no retrieval | <b> (declared)" in done.out
    assert re.search(r"OWNER/far +\? +its files were not given", done.out)
    assert "\\|" in tier(here, "audit", "--fleet", "fleet.toml", "--format", "markdown").out
    assert tier(here, "why", "masked", "--fleet", "fleet.toml").code == 0
    (here / "policy").mkdir(exist_ok=True)
    (here / "policy" / "fleet.toml").write_text(text)
    assert "1 below its declared tier" in tier(here, "audit", "good", here / "good").out
    (here / "policy" / "fleet.toml").unlink()
    assert "did you mean 'masked'" in tier(here, "why", "maskt", "--fleet", "fleet.toml").err
    (here / "fleet.toml").write_text(text.replace('path = "masked"', 'path = "good"'))
    assert "is named twice" in tier(here, "audit", "--fleet", "fleet.toml").err
    (here / "fleet.toml").write_text(text.replace("tier = 2", "teir = 2"))
    assert (
        "fleet.toml:4" in (said := tier(here, "audit", "--fleet", "fleet.toml").err)
        and "at least" not in said
    )
    (here / "fleet.toml").write_text(text.replace("tier = 2", 'audit.states.T203 = "trust me"'))
    done = tier(here, "audit", "--fleet", "fleet.toml")
    assert (
        done.code == 1
        and "error  good: audit.states.T203: only what no file can show is declared" in done.out
    )


@pytest.mark.parametrize(
    ("fleet", "edit", "why"),
    [
        ('name = "acme/search"', {}, "is of o/r, not of acme/search"),
        ("", {"branch": "release"}, "is of 'release', and the default branch is 'main'"),
        ("", {"default": "trunk"}, "is of 'main', and the default branch is 'trunk'"),
        ("", {"forge": "gitlab"}, "is of gitlab, which does not run .github/workflows"),
    ],
)
def test_a_snapshot_of_another_repository_branch_or_forge_says_nothing(
    here: Path, fleet: str, edit: dict[str, str], why: str
) -> None:
    """K7: what another repository requires is not what this one does."""
    held = json.loads(REQUIRED)
    if "default" in edit:
        held["calls"][0]["body"]["default_branch"] = edit.pop("default")
    if "forge" in edit:
        held |= {"calls": [], "settings": {"required": [{"context": "gate"}], "bypass": [], "admins": True,
                 "queue": False, "pipelines": {"only_allow_merge_if_pipeline_succeeds": True}}}  # fmt: skip
    if "branch" in edit:
        for call in held["calls"]:
            call["path"] = call["path"].replace("/main", f"/{edit['branch']}")
    (here / "other.json").write_text(json.dumps(sealed(held | edit)))
    (here / "other.toml").write_text(
        f'schema = "fleet-v1"\n[[repository]]\npath = "good"\nsettings = "other.json"\n{fleet}\n'
    )
    found = json.loads(tier(here, "audit", "--fleet", "other.toml", "--format", "json").out)["repositories"][
        0
    ]
    assert (found["mechanism"], found["effect"], found["ceiling"]) == (3, 1, 3)
    assert why in next(one["what"] for one in found["findings"] if one["rule"] == "T221")


def test_where_a_clone_comes_from(tmp_path: Path) -> None:
    for url, name in (
        ("https://forge.example/acme/search.git", "acme/search"),
        ("git@forge.example:acme/search", "acme/search"),
        ("ssh://git@forge.example:22/acme/search.git/", "acme/search"),
        ("../search", None),
    ):
        (tmp_path / ".git").mkdir(exist_ok=True)
        (tmp_path / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n\tfetch = x\n')
        assert origin(tmp_path) == name


def test_a_folder_of_a_repository_is_asked_for_its_own_harness(tmp_path: Path) -> None:
    """Workflows stand at the top, the harness below; each command counts in the folder in which it is run."""
    below = {f"svc/{path}": data for path, data in whole().items() if not path.startswith(".github")}
    steps = STEPS.replace("run: eval", "working-directory: svc\n        run: eval")
    commit(put(tmp_path, below | {CI: workflow(steps).encode()}))
    for words in ([], ["--work-tree"]):
        assert tier(tmp_path, "audit", "svc", "--min-mechanism", "3", *words).code == 0
    assert "eval-tier audit svc" in tier(tmp_path, "why", ".").out
    assert "could not be read" in tier(tmp_path, "why", "svc/eval.toml").out


def test_a_repository_that_is_damaged_is_told_as_that(here: Path) -> None:
    folder = commit(put(here / "damaged", whole()))
    (folder / ".git" / "HEAD").unlink()
    done = tier(here, "audit", "damaged")
    assert done.code == 3 and "is not a sound git repository" in done.out


def test_what_cannot_be_read_is_told_in_every_format(here: Path) -> None:
    folder = commit(put(here / "broken", whole() | {".github/workflows/x.yml": b"a: ["}))
    for form in ("table", "markdown", "badge", "json"):
        done = tier(here, "audit", folder, "--format", form)
        assert done.code == 1 and "x.yml" in done.out + done.err


def test_the_page_s_commands_and_fleet_file_are_sound(here: Path) -> None:
    """docs/audit.md: each command of its fence is typed; the fleet file fits its model."""
    fence = PAGE.split("```\neval-tier audit ", 1)[1].split("```")[0]
    for line in f"eval-tier audit {fence}".strip().splitlines():
        words = line.split("  ")[0].split()[1:]
        assert tier(here / "good", *words).code == 0, line
    (here / "policy").mkdir(exist_ok=True)
    (here / "policy" / "fleet.toml").write_text(PAGE.split("```toml\n", 1)[1].split("```")[0])
    done = tier(here, "audit")
    assert (
        done.code == 3  # there is no ../kb-agent here
        and "kb-agent" in done.out
        and "no retrieval, and no number is claimed (declared)" in done.out
    )


@pytest.mark.parametrize(("branch", "tier_of"), [("master", 3), ("topic", 0)])
def test_the_default_branch_is_that_of_the_clone(tmp_path: Path, branch: str, tier_of: int) -> None:
    """A workflow for pull requests to master covers them where master is the default branch."""
    on = "on:\n  pull_request:\n    branches: [master]\n"
    commit(put(tmp_path, whole() | {CI: workflow(on=on).encode()}))
    subprocess.run(["git", "checkout", "-q", "-B", branch], cwd=tmp_path, check=True)
    assert (
        json.loads(tier(tmp_path, "audit", ".", "--format", "json").out)["repositories"][0]["mechanism"]
        == tier_of
    )


def test_many_repositories_are_shared_among_processes_and_stay_in_order(here: Path) -> None:
    fleet = "".join(
        f'[[repository]]\nname = "n{n:02}"\npath = "{"good" if n % 2 else "masked"}"\n' for n in range(60)
    )
    (here / "many.toml").write_text(f'schema = "fleet-v1"\n{fleet}')
    held = json.loads(tier_process(here, "audit", "--fleet", "many.toml", "--format", "json").out)[
        "repositories"
    ]
    assert [(one["name"], one["mechanism"]) for one in held] == [
        (f"n{n:02}", 3 if n % 2 else 1) for n in range(60)
    ]
