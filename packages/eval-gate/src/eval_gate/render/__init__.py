"""The verdict in the form that is wanted; what renders a form is imported only when that form is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_gate.render.place import Place

if TYPE_CHECKING:
    from eval_gate.verdict import Verdict

__all__ = ["FORMATS", "Place", "rendered"]

#: `table` is for a terminal; each but `json` is a module here.
FORMATS = ("table", "json", "markdown", "junit", "github")


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
            from eval_gate.render.table import terminal

            return terminal(verdict, place)
