"""Waivers (SYSTEMS S4): each names the exact fingerprint and a reason, and covers that and nothing else."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from eval_core.errors import EvalError, Faults, Misuse
from eval_core.reports import waivers
from eval_core.reports.provenance import DIVERGES, MISSING, Finding
from eval_core.reports.waivers import Waiver, Waivers

ONE, TWO = "1" * 64, "2" * 64

SOUND = f"""\
[[waiver]]
arm = "notes"
fingerprint = "{ONE}"
reason = "measured before the rename of an option"
expires = 2027-01-31

[[waiver]]
arm = "notes"
fingerprint = "{TWO}"
reason = "the weights are not in git"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "waivers.toml"


def test_waivers_are_read(path: Path) -> None:
    path.write_text(SOUND)
    found = waivers.read(path)
    assert [(waiver.arm, waiver.fingerprint, waiver.expires) for waiver in found.waiver] == [
        ("notes", ONE, "2027-01-31"),
        ("notes", TWO, None),
    ]
    path.write_text('schema = "waivers-v1"\n' + SOUND)
    assert waivers.read(path).waiver == found.waiver


def test_no_file_waives_nothing(path: Path) -> None:
    """Deleting it can only make a reader stricter."""
    assert waivers.read(path) == Waivers()
    assert waivers.read(path).covers("notes", ONE) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (SOUND.replace("reason =", "reson =", 1), 4, "did you mean 'reason'?"),
        (SOUND.replace("[[waiver]]", "[[waver]]"), 1, "did you mean 'waiver'?"),
        (SOUND.replace(ONE, ONE[:12]), 3, "fingerprint"),
        (SOUND.replace(ONE, "A" * 64), 3, "fingerprint"),
        (SOUND.replace(ONE, ONE + "\\n"), 3, "fingerprint"),
        (SOUND.replace("the weights are not in git", "  "), 10, "say why"),
        (SOUND.replace('arm = "notes"', 'arm = "*"', 1), 2, "arm"),
        (SOUND.replace("2027-01-31", '"soon"'), 5, "write a date"),
        (SOUND.replace("2027-01-31", "2027-01-31T00:00:00"), 5, "write a date"),
        (SOUND.replace("2027-01-31", '"20270131"'), 5, "write a date"),
        (SOUND.replace(TWO, ONE), 7, "again"),
        ('schema = "waivers-v2"\n', 1, "waivers-v1"),
    ],
)
def test_what_is_wrong_with_them_is_told_with_its_line(path: Path, text: str, line: int, words: str) -> None:
    """S4: a waiver with a misspelt key would waive other things than its author thinks."""
    path.write_text(text)
    with pytest.raises(Faults) as caught:
        waivers.read(path)
    assert caught.value.exit_code == 2
    assert f"{path}:{line}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("key", ["arm", "fingerprint", "reason"])
def test_each_key_is_needed(path: Path, key: str) -> None:
    path.write_text("\n".join(line for line in SOUND.splitlines() if not line.startswith(key)))
    with pytest.raises(Faults, match=f"{key}: it is missing"):
        waivers.read(path)


@pytest.mark.parametrize("text", ["x = [", "waiver = 3", "[waiver]\n", "\ufeff"])
def test_what_is_no_waivers_file_is_misuse(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(EvalError) as caught:
        waivers.read(path)
    assert isinstance(caught.value, Misuse)


def test_one_covers_its_fingerprint_of_its_arm_and_nothing_else(path: Path) -> None:
    """S4."""
    path.write_text(SOUND)
    found = waivers.read(path)
    covering = found.covers("notes", ONE)
    assert covering is not None
    assert covering.reason == "measured before the rename of an option"
    for arm, fingerprint in (
        ("notes", "3" * 64),
        ("other", ONE),
        ("notes", None),
        ("notes", ONE[:63]),
        ("notes", ""),
    ):
        assert found.covers(arm, fingerprint) is None


def test_a_date_ends_one_only_where_the_day_is_given(path: Path) -> None:
    """S4: the gate judges without a clock; who has one says the day."""
    path.write_text(SOUND)
    found = waivers.read(path)
    assert found.covers("notes", ONE) is not None
    assert found.covers("notes", ONE, date(2027, 1, 31)) is not None, "the last day is covered"
    assert found.covers("notes", ONE, date(2027, 2, 1)) is None
    assert found.covers("notes", TWO, date(9999, 1, 1)) is not None


def test_findings_are_parted_into_what_stands_and_what_is_waived(path: Path) -> None:
    """S4: only a divergence can be waived, whatever fingerprint a finding names."""
    path.write_text(SOUND)
    found = waivers.read(path)
    covered = Finding(DIVERGES, "of the file", ONE)
    again = Finding(DIVERGES, "of eval.toml", ONE)
    others = [Finding(DIVERGES, "x", "3" * 64), Finding(DIVERGES, "x"), Finding(MISSING, "x", ONE)]
    kept, used = found.settle("notes", [covered, *others, again])
    assert kept == others
    assert [waiver.fingerprint for waiver in used] == [ONE]
    assert found.settle("other", [covered]) == ([covered], [])
    assert found.settle("notes", [covered], date(2028, 1, 1)) == ([covered], [])


def test_waivers_that_cover_nothing_are_told(path: Path) -> None:
    """S4: unused, stale and expired ones, of the arms that were looked at."""
    path.write_text(SOUND)
    found = waivers.read(path)
    assert found.idle({}) == found.idle({"other": [ONE]}) == []
    assert all("is not used" in line for line in found.idle({"notes": []}))
    assert all("is not used" in line for line in found.idle({"notes": [None]})), "what no waiver could cover"
    [stale] = found.idle({"notes": [ONE]})
    assert f"for {TWO[:12]}… is stale: what diverges now is {ONE}" in stale
    assert "expired on 2027-01-31" in found.idle({"notes": [ONE]}, date(2027, 3, 1))[0]


def test_a_waiver_is_frozen() -> None:
    waiver = Waiver(arm="notes", fingerprint=ONE, reason="r")
    with pytest.raises(ValueError, match="frozen"):
        waiver.arm = "other"  # type: ignore[misc]
