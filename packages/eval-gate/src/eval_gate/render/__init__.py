"""The verdict in the form that is asked for; what renders a form is imported only when that form is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from eval_gate.verdict import Verdict

#: `table` is for a terminal; each but `json` is a module here.
FORMATS = ("table", "json", "markdown", "junit", "github")


class Place(NamedTuple):
    """Where the files lie that a verdict speaks of. Reports are named by arm where they lie elsewhere."""

    config: Path = Path("eval.toml")
    policy: Path = Path("policy")
    floors: Path = Path("policy/floors.toml")
    reports: Path = Path(".eval/reports")
    named: Mapping[str, Path] = MappingProxyType({})

    def report(self, arm: str) -> Path:
        """Where an arm's report lies."""
        return self.named.get(arm, self.reports / f"{arm}.json")


def terminal(verdict: Verdict, place: Place | None = None) -> str:
    """The text for a terminal, with colour, without a last newline."""
    from eval_gate.render.table import terminal as text

    return text(verdict, place or Place())


def rendered(form: str, verdict: Verdict, place: Place) -> str:
    """The verdict in one of `FORMATS`, without a last newline. Only `github` reads files: it looks up lines."""
    match form:
        case "json":
            return verdict.model_dump_json(by_alias=True, indent=1)
        case "markdown":
            from eval_gate.render.markdown import markdown

            return markdown(verdict, place)
        case "junit":
            from eval_gate.render.junit import junit

            return junit(verdict)
        case "github":
            from eval_gate.render.github import github

            return github(verdict, place)
        case _:
            return terminal(verdict, place)
