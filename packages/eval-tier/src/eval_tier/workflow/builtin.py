"""The commands that change the shell that runs them: `exit`, `set`, `trap`, `eval`, `source`, `cd` and the like."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tier.workflow.fates import STEERS, Fates
from eval_tier.workflow.models import Place
from eval_tier.workflow.options import changed
from eval_tier.workflow.state import UNKNOWN, Around, Unsure, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: The path and the text of a file that is sourced, by its path as written and the folder; None where there is none.
Sourced = Callable[[str, str], tuple[str, str] | None]

BUILTINS = ("exit", "return", "break", "continue", "exec", "set", "shopt", "trap", "eval", ".", "source", "alias",
            "cd", "pushd", "popd", "hash", ":", "true", "false", "test", "[", "wait", "unset", "export")  # fmt: skip

_ROOT = re.compile(r"git rev-parse --show-toplevel|\$\{?GITHUB_WORKSPACE\b|\$\{?CI_PROJECT_DIR\b")
_OWN_FOLDER = re.compile(
    r"\bdirname\b.*?(?:\$\{?0|BASH_SOURCE)|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}", re.DOTALL
)


class Builtins(Fates):
    """What such a command does to the state of a shell.

    Attributes:
        file, line: whose text is followed, and where it begins; `via` leads to it.
        fixed: the line of a text that stands inside of a command.
        called: the script is a file that is run as one.
    """

    file: str
    line: int
    via: tuple[Place, ...]
    fixed: int | None
    called: bool
    sourced: Sourced | None

    def text(self, script: str, around: Around) -> None:
        """Follow a text."""
        raise NotImplementedError

    def place(self, node: Node) -> Place:
        return Place(self.file, self.fixed if self.fixed is not None else self.line + node.start_point[0])

    def gap(self, node: Node, what: str) -> None:
        raise NotImplementedError

    def builtin(self, node: Node, program: str, words: Sequence[str], around: Around) -> bool:
        """A command that changes the shell itself; whether it is no command of its own."""
        state = self.state
        if program in ("exit", "return", "break", "continue") or (program == "exec" and len(words) > 1):
            self.leave(node, program, words, around)
            return program != "exec"
        if program == "set":
            self.set(words[1:], around)
        elif program == "shopt" and any(re.fullmatch(r"-\w*o\w*", word) for word in words):
            flags = "".join(word for word in words[1:] if word.startswith("-"))
            on = "+o" if "u" in flags else "-o"
            self.set([x for w in words[1:] if not w.startswith("-") for x in (on, w)], around)
        elif program == "shopt" and "inherit_errexit" in words and "-s" in words and not around.doubt:
            state.options = replace(state.options, inherits=True)
        elif program == "trap":
            self.trap(words[1:], around)
        elif program == "eval" and len(words) > 1:
            script = " ".join(words[1:])
            if UNKNOWN in script:
                self.gap(node, "what `eval` runs follows from a value that is not known")
                state.ends["env"] = "`eval` of a value that is not known comes before it"
            else:
                self.within(node, script, self.file, self.place(node).line or 1, around, fixed=True)
        elif program in (".", "source") and len(words) > 1:
            beside = posixpath.dirname(self.file) or "."  # `. "$(dirname "$0")/lib.sh"`
            folders = [beside, state.folder] if UNKNOWN in words[1] and self.called else [state.folder]
            files = (self.sourced(words[1], folder) for folder in folders) if self.sourced else ()
            found = next((file for file in files if file is not None), None)
            if found is not None and len(around.calls) < 8:
                self.within(node, found[1], found[0], 1, around)
                return True
            if self.sourced is not None and words[1] == UNKNOWN:
                state.ends["env"] = "a file that is not known is sourced before it"
            return False
        elif program == "alias":
            state.aliases |= {word.split("=", 1)[0] for word in words[1:] if "=" in word}
            return False
        elif program == "cd" and len(words) > 1:
            self.cd(node, [word for word in words[1:] if word not in ("-P", "-L", "--")], around)
        elif program in ("pushd", "popd"):
            state.folder = UNKNOWN
        elif program == "hash" and "-p" in words:
            state.ends["env"] = "`hash -p` changes which program a name stands for"
        else:
            return program == ":"
        return True

    def within(
        self, node: Node, script: str, file: str, line: int, around: Around, *, fixed: bool = False
    ) -> None:
        """A text that the same shell runs."""
        outer = self.file, self.line, self.via, self.fixed
        if not fixed:
            self.via = (*self.via, self.place(node))
        self.file, self.line, self.fixed = file, line, line if fixed else None
        ends, lost = dict(self.state.ends), self.state.lost
        calls = (*around.calls, f"\0{file if not fixed else script}")
        if around.calls.count(calls[-1]) or len(calls) > 8:
            self.state.ends["env"] = f"{file} sources itself"
        else:
            fate = self.fate(around)
            self.text(script, replace(around, status=fate, leave=around.leave if fixed else fate, calls=calls,
                                      after=None, depth=around.depth + 1))  # fmt: skip
        self.file, self.line, self.via, self.fixed = outer
        if not fixed:
            self.state.ends.pop("return", None)
            for scope, why in self.state.ends.items():
                if ends.get(scope) != why:
                    self.state.ends[scope] = f"{why}, by {file} that is sourced"
            if self.state.lost is not None and self.state.lost is not lost:
                self.state.lost = type(self.state.lost)(f"{self.state.lost}, by {file} that is sourced")

    def leave(self, node: Node, program: str, words: Sequence[str], around: Around) -> None:
        """What follows `exit` and the like is not run; nothing is in doubt where the script then fails."""
        shown = " ".join(words).replace(UNKNOWN, "…")
        scope = {"return": "return", "break": "loop", "continue": "loop"}.get(program, "exit")
        if around.doubt is None:
            self.state.ends.setdefault(scope, f"it stands after `{shown}`")
            return
        written = text_of(node).split()
        code = written[1] if len(written) == 2 else "$?" if len(words) == 1 else ""
        fails = program in ("exit", "return") and self.code(code, around)
        lost = around.exit if program == "exit" else around.leave if around.calls else self.fate(around)
        if not fails or lost is not None:
            self.state.ends.setdefault(scope, f"`{shown}` may come before it")

    def set(self, words: Sequence[str], around: Around) -> None:
        """`set`, by itself or with arguments that are none of options."""
        if "--" in words:
            at = list(words).index("--")
            self.state.arguments = tuple(words[at + 1 :]) if not around.doubt else None
            words = words[:at]
        if not words or not words[0].startswith(("-", "+", UNKNOWN)):
            return
        found = changed(words, self.state.options)
        if found is None:
            shown = " ".join(words).replace(UNKNOWN, "…")
            self.state.ends.setdefault("env", f"`set {shown}` may change what is run")
        elif around.doubt is None:
            self.state.options = found
        elif (self.state.options.stops and not found.stops) or (
            self.state.options.pipefail and not found.pipefail
        ):
            self.state.lost = self.state.lost or Unsure("`set +e` or `+o pipefail` may come before it")

    def trap(self, words: Sequence[str], around: Around) -> None:
        """A trap that may end the script with 0, or change what holds in it."""
        if words[:1] == ["--"]:
            words = words[1:]
        if len(words) < 2 or words[0].startswith("-"):
            if words and words[0] == "-" and not around.doubt:
                self.state.lost = None
            return
        body = words[0]
        for _ in range(3):
            body = re.sub(
                r"[\w-]+", lambda one: text_of(self.state.functions[one[0]].body) if one[0] in self.state.functions
                else one[0], body[:10_000],
            )  # fmt: skip
        saved = re.match(r"\{?\s*(?:local\s+)?(\w+)=\"?\$\?\"?\s*[;\n]", body)
        safe = r"\bexit\s+(?:[1-9]\d?\b" + (rf"|\"?\$\{{?{saved[1]}\}}?\"?" if saved else "") + ")"
        body = re.sub(safe, "", body)
        body = re.sub(r"\A[\s{]*exit(?:\s+\"?\$\?\"?)?\s*(?:;|\}|\Z)", "", body)
        if UNKNOWN not in body and not STEERS.search(body):
            return
        sure = "EXIT" in words[1:] or "0" in words[1:]
        text = "a trap may end the script with another status"
        if sure and not around.doubt and re.search(r"\bexit\s+0\b", body):
            self.state.lost = "a trap on EXIT ends the script with 0"
        else:
            self.state.lost = self.state.lost or Unsure(text)

    def cd(self, node: Node, words: Sequence[str], around: Around) -> None:
        target, text = (words[0], text_of(node)) if words else ("~", "")
        if around.doubt is not None:
            folder = UNKNOWN
        elif UNKNOWN not in target:
            folder = (
                target if target.startswith(("/", "~", "-")) else posixpath.join(self.state.folder, target)
            )
            folder = UNKNOWN if folder[:1] in "/~-" or UNKNOWN in folder else folder
        else:
            rest = target.rsplit(UNKNOWN, 1)[-1]
            text = text if not rest else text.removesuffix('"').removesuffix(rest)
            text += "".join(self.state.sources.get(name, "") for name in re.findall(r"\$\{?(\w+)", text))
            if _ROOT.search(text):
                folder = rest.strip("/") or "."
            elif self.called and _OWN_FOLDER.search(text):
                ups = "../" * text.count("..")
                folder = posixpath.join(posixpath.dirname(self.file) or ".", ups, rest.strip("/"))
            else:
                folder = UNKNOWN
        self.state.folder = UNKNOWN if folder == UNKNOWN else posixpath.normpath(folder)
