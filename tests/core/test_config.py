"""eval.toml: the arms of a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_core.config import load_workspace
from eval_core.errors import Faults, Misuse

ARMS = """
[arms.fast]
dataset = "sets/a"
backend = "bm25"

[arms."slow.one"]
dataset = "sets/a"
backend = "bm25"
options = { k1 = 1.2 }
lane = "owner"
"""


def write(folder: Path, text: str = ARMS) -> Path:
    path = folder / "eval.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_datasets_and_output_are_found_from_the_folder_of_the_file(tmp_path: Path) -> None:
    workspace = load_workspace(write(tmp_path))
    assert workspace.root == tmp_path
    assert workspace.dataset_folder(workspace.arms["fast"]) == tmp_path / "sets/a"
    assert workspace.output("reports") == tmp_path / ".eval" / "reports"


def test_there_are_several_arms_over_one_set(tmp_path: Path) -> None:
    """K1: each is its own configuration."""
    assert list(load_workspace(write(tmp_path)).arms) == ["fast", "slow.one"]


@pytest.mark.parametrize(
    ("names", "lane", "expected"),
    [
        ((), "pull-request", ["fast"]),
        ((), "owner", ["slow.one"]),
        ((), None, ["fast", "slow.one"]),
        (("slow.one",), "pull-request", ["slow.one"]),  # asked for by name
        (("slow.one", "fast"), "pull-request", ["fast", "slow.one"]),  # in the file's order
        (("fast", "fast"), None, ["fast"]),
    ],
)
def test_arms_are_chosen_by_name_or_by_lane(
    tmp_path: Path, names: tuple[str, ...], lane: str | None, expected: list[str]
) -> None:
    """What runs only on the owner's demand stays out of the pull request's lane."""
    assert list(load_workspace(write(tmp_path)).chosen(names, lane)) == expected


def test_an_unknown_arm_is_told_with_the_nearest(tmp_path: Path) -> None:
    workspace = load_workspace(write(tmp_path))
    with pytest.raises(Misuse) as caught:
        workspace.chosen(("fsat",))
    assert (
        str(caught.value)
        == f"{workspace.path}: there is no arm 'fsat'; did you mean 'fast'?  (arms: fast, slow.one)"
    )


def test_a_missing_file_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(
        Misuse,
        match=r"there is no such file\n  Run in the folder that holds eval\.toml, or say --config FILE",
    ):
        load_workspace(tmp_path / "eval.toml")


@pytest.mark.parametrize("name", ["Upper", "-a", "a b", "a/b", "..", "é", "a\\n", ""])
def test_a_name_that_is_no_file_name_is_a_fault(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, f'\n[arms."{name}"]\ndataset = "d"\nbackend = "b"\n')
    with pytest.raises(Faults) as caught:
        load_workspace(path)
    assert "a name consists of lower-case letters, digits, and . _ -" in str(caught.value)


def test_cutoffs_past_the_limit_are_a_fault(tmp_path: Path) -> None:
    path = write(tmp_path, '[arms.a]\ndataset = "d"\nbackend = "b"\nlimit = 5\ncutoffs = [1, 10]\n')
    with pytest.raises(Faults) as caught:
        load_workspace(path)
    assert f"{path}:1: arms.a: cut-off 10 is past the limit 5; raise limit, or write cutoffs = [1, 5]" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("keys", "line"),
    [(("fast",), 2), (("fast", "backend"), 4), (("slow.one",), 6), (("slow.one", "options", "k1"), 9)],
)
def test_a_key_of_an_arm_is_found_in_the_file(tmp_path: Path, keys: tuple[str, ...], line: int) -> None:
    workspace = load_workspace(write(tmp_path))
    assert workspace.line(*keys) == line


def test_a_workspace_that_stands_in_no_file_has_no_lines(tmp_path: Path) -> None:
    workspace = load_workspace(write(tmp_path))
    workspace.path.unlink()
    assert workspace.line("fast", "backend") is None


# The arm that answers by default


def test_a_dataset_names_the_arm_that_answers_by_default(tmp_path: Path) -> None:
    """A5: what a promotion moves is one line of eval.toml, by dataset folder."""
    assert load_workspace(write(tmp_path)).default == {}
    workspace = load_workspace(write(tmp_path, '[default]\n"./sets/a/" = "slow.one"\n' + ARMS))
    assert workspace.default == {"./sets/a/": "slow.one"}


@pytest.mark.parametrize(
    ("table", "line", "told"),
    [
        (
            '"sets/a" = "fsat"',
            2,
            "default.'sets/a' = 'fsat': there is no such arm; did you mean 'fast'?  (arms of it: fast, slow.one)",
        ),
        (
            '"sets/b" = "fast"',
            2,
            "default.'sets/b' = 'fast': is an arm of 'sets/a', not of it  (arms of it: none)",
        ),
        (
            '"sets/a" = "fast"\n"sets/a/" = "slow.one"',
            3,
            "default.'sets/a/': is the same folder as default.'sets/a'; keep one of them",
        ),
        ('"sets/a" = 1', 2, 'default."sets/a" = 1: should be a valid string'),
    ],
)
def test_a_default_that_is_no_arm_of_its_dataset_is_a_fault(
    tmp_path: Path, table: str, line: int, told: str
) -> None:
    """A5: a default that nothing measures would be gated by nothing."""
    path = write(tmp_path, f"[default]\n{table}\n{ARMS}")
    with pytest.raises(Faults) as caught:
        load_workspace(path)
    assert f"{path}:{line}: {told}" in str(caught.value)
