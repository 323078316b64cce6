"""This repository audits itself: what its files show, what a snapshot adds, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tier_support import ROOT, settings, tier

from eval_tier.audit import default_branch


def test_s1_the_files_show_tier_3_and_the_setting_is_the_one_missing_fact() -> None:
    """S1: the mechanism is proven by files; what the forge requires is not known without a snapshot."""
    assert tier(ROOT, "audit", ".", "--min-mechanism", "3", "--work-tree").code == 0
    done = tier(ROOT, "audit", ".", "--min-tier", "2", "--work-tree")
    assert done.code == 1 and "eval-tier snapshot" in done.out
    assert "tier 2 is one fact away" in tier(ROOT, "why", ".", "--work-tree").out


@pytest.mark.parametrize(
    ("age", "code", "said"), [(0, 0, "3  proven"), (29, 0, "3  proven"), (31, 1, "1  effect")]
)
def test_k7_with_the_required_check_it_is_tier_3_for_thirty_days(
    tmp_path: Path, age: int, code: int, said: str
) -> None:
    """K7: tier 2 is half a setting, and a setting that was seen long ago is not known."""
    snapshot = tmp_path / "settings.json"
    seen = datetime.now(UTC) - timedelta(days=age)
    snapshot.write_bytes(
        settings("all-green", observed=f"{seen:%Y-%m-%dT%H:%M:%SZ}", branch=default_branch(ROOT) or "main")
    )
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        f'schema = "fleet-v1"\n[[repository]]\nname = "o/r"\npath = "{ROOT}"\nsettings = "{snapshot}"\n'
    )
    done = tier(ROOT, "audit", "--fleet", fleet, "--work-tree", "--min-tier", "3")
    assert done.code == code and said in done.out, done.out
    why = tier(ROOT, "why", "o/r", "--fleet", fleet, "--work-tree").out
    assert ("more than 30" in why) == (code == 1) and f"observed {seen:%Y-%m-%d}" in why


def test_the_table_of_the_readme_is_what_the_audit_says() -> None:
    """Made by `eval-tier audit . --format markdown` in a folder called ladder; without commit or date."""
    written = (ROOT / "README.md").read_text().split("<!-- audit -->\n")[1].split("\n<!-- /audit -->")[0]
    said = tier(ROOT, "audit", ".", "--work-tree", "--format", "markdown").out.strip()
    name = ROOT.name.replace("_", r"\_")
    assert said.replace(f"\n| {name} |", "\n| ladder |").replace(f"OWNER/{name} ", "OWNER/ladder ") == written


def test_the_badge_of_the_readme_is_what_the_audit_says() -> None:
    """Made by `eval-tier audit . --format badge`; a date comes with a snapshot alone."""
    assert "![retrieval gate: tier 3 mechanism, 1 effect](docs/tier.svg)" in (ROOT / "README.md").read_text()
    said = tier(ROOT, "audit", ".", "--work-tree", "--format", "badge").out
    assert said == (ROOT / "docs" / "tier.svg").read_text()
