"""What becomes of a failure in a shell script: where it leads, and how what keeps it in a variable is used later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_tier.workflow.state import (
    MOST_DEPTH,
    UNKNOWN,
    After,
    Around,
    State,
    Unsure,
    cannot_fail,
    followers,
    in_background,
    named,
    short,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node


#: Statements that are looked at for the use of one failure.
MOST_AFTER = 50

#: A statement after which a failure is still to be looked for further on.
GOES_ON = Unsure("")

#: What may end a block early, or change what holds for the rest of it.
STEERS = re.compile(r"\b(?:exit|return|exec|eval|trap|set|source|break|continue)\b|(?:^|[;\n&|({]\s*)\.\s")

#: What a script has of the status of the statement before, and of the first part of a pipeline before.
STATUS = ("?", "PIPESTATUS[0]")

_SETTERS = "unset|read|for|let|mapfile|readarray|getopts|printf|local|declare|typeset"
_MARKED = re.compile(r"([A-Za-z_]\w*)=[\"']?(\w+)[\"']?")
_COUNTED = re.compile(
    r"(?:let\s+)?\(?\(?\s*([A-Za-z_]\w*)\s*(?:\+\+|\+=\s*1)\s*\)?\)?|([A-Za-z_]\w*)=\$\(\(\s*\$?\{?\2\}?\s*\+\s*1\s*\)\)"
)


def kept(node: Node, status: str | None) -> tuple[str, str | None] | None:
    """The variable in which a statement notes a failure, and its value; None for a value that is not known but not 0.

    `status` is that of `STATUS` which is still the failure's.
    """
    if node.type not in ("variable_assignment", "compound_statement", "command"):
        return None
    text = text_of(node)
    if status is not None and (found := re.fullmatch(rf"([A-Za-z_]\w*)={used(status)}", text)):
        return found[1], None
    if found := _MARKED.fullmatch(text):
        return found[1], found[2]
    if found := _COUNTED.fullmatch(text):
        return found[1] or found[2], None
    return None


def mentions(text: str, name: str) -> bool:
    """Whether a text uses the variable `name`; `?` is the status of what went before."""
    if name in STATUS:
        return re.search(used(name), text) is not None
    return re.search(rf"\$\{{?{name}\b|\(\([^()]*\b{name}\b", text) is not None


def used(name: str) -> str:
    """The pattern of a use of a variable."""
    if name == "?":
        return r"\"?(?:\$\?|\$\{\?\})\"?"
    if name in STATUS:
        return rf"\"?\$\{{{re.escape(name)}\}}\"?"
    return rf"\"?(?:\${name}|\$\{{{name}(?::?-\w*)?\}})\"?"


def asked(text: str, name: str, value: str | None) -> bool | None:
    """Whether a condition is true when `name` has the value of a failure (None: some value but 0); None if unknown."""
    text = " ".join(text.split())
    if text.startswith("! "):
        inner = asked(text[2:], name, value)
        return None if inner is None else not inner
    variable = used(name)
    if value in ("true", "false") and re.fullmatch(variable, text):
        return value == "true"
    if found := re.fullmatch(r"\(\( ?(.*?) ?\)\)", text):
        bare = re.sub(r"^\$", "", found[1])
        if found := re.fullmatch(rf"{re.escape(name)}(?: ?(!=|>|==) ?0)?", bare):
            return _number(value, found[1] != "==")
        return None
    found = re.fullmatch(r"\[\[? (.*) \]\]?|test (.*)", text)
    if found is None:
        return None
    inside = found[1] or found[2]
    if found := re.fullmatch(rf"(-n|-z) {variable}", inside):
        return found[1] == "-n" if value != "" else found[1] == "-z"
    found = re.fullmatch(rf"{variable} (-ne|-gt|!=|-eq|=|==) [\"']?(\w+)[\"']?", inside)
    if found is None:
        return None
    sign, other = found[1], found[2]
    if other == "0":
        return _number(value, sign in ("-ne", "-gt", "!="))
    if value is None:
        return None
    if sign in ("!=", "=", "=="):
        return (value != other) == (sign == "!=")
    if not (value.isdigit() and other.isdigit()):
        return None
    left, right = int(value), int(other)
    return left > right if sign == "-gt" else (left == right) == (sign == "-eq")


def _number(value: str | None, differs: bool) -> bool | None:
    """The answer of a comparison with 0."""
    if value is None or (value.isdigit() and int(value)):
        return differs
    if value.isdigit():
        return not differs
    return None


def summed(text: str, name: str) -> bool:
    """Whether an exit code is a sum in which a failure that is kept in `name` counts."""
    found = re.fullmatch(r"\"?\$\(\((.*)\)\)\"?", text)
    return found is not None and re.fullmatch(
        rf"\s*(?:\$?\{{?\w+\}}?\s*[+|]\s*)*\$?\{{?{re.escape(name)}\}}?\s*(?:[+|]\s*\$?\{{?\w+\}}?\s*)*", found[1]
    ) is not None  # fmt: skip


def nonzero(text: str, *, turned: bool = False) -> frozenset[str]:
    """The variables that are not 0 where a condition holds; `turned` where it does not."""
    names = {one[0] or one[1] for one in re.findall(r"\$\{?([A-Za-z_]\w*)|\(\(\s*([A-Za-z_]\w*)", text)}
    return frozenset(
        name for name in names if (asked(text, name, None), asked(text, name, "0")) == (not turned, turned)
    )


class Fates:
    """What becomes of a failure, by what stands around it and what follows."""

    state: State

    def fate(self, around: Around) -> str | None:
        """Why the failure of a command is lost."""
        return around.exit if self.state.options.stops and not around.tested else around.status

    def captured(self, node: Node, around: Around) -> str | None:
        """What becomes of the status of a statement that is not the last one."""
        if not (self.state.options.stops and not around.tested):
            why = "`set -e` does not hold in what is tested" if self.state.options.stops else "no `set -e`"
            lost = f"the script goes on after a failure ({why})"
        elif node.type == "list":
            lost = "what stands before && may fail in silence"
        else:
            lost = "the script goes on after it"
        return self.followed("?", None, around, lost)

    def waited(self, after: After, around: Around) -> str | None:
        """What becomes of the failure of a command in the background, which `wait $!` gives."""
        lost = "it runs in the background (&)"
        name = "!"
        for place, node in enumerate(followers(after)):
            text = text_of(node)
            if place > 50:
                break
            found = re.fullmatch(r"([A-Za-z_]\w*)=\"?\$!\"?", text)
            if found and name == "!":
                name = found[1]
            elif (found and found[1] == name) or (name == "!" and in_background(node)):
                break
            elif re.fullmatch(rf"wait \"?\$\{{?{re.escape(name)}\}}?\"?", text):
                if self.state.options.stops and not around.tested:
                    return around.exit
                return Unsure("whether its failure counts rests on `wait`")
            elif "wait" in text:
                return Unsure("whether its failure counts rests on `wait`")
            elif name == "!" and place:
                break
        return lost

    def leads(self, nodes: Sequence[Node], around: Around, lost: str) -> str | None:
        """What becomes of a failure after which these statements are run; `lost` where they take no notice of it."""
        fresh, marks = around.failed, []
        for node in nodes:
            if node.type == "comment":
                continue
            if re.match(r"(?:break|continue)\b", text_of(node)):
                break
            mark = kept(node, "?" if fresh else None)
            if mark is not None:
                marks.append(mark)
                around = replace(around, failing=around.failing | {mark[0]}) if mark[1] != "0" else around
            found = self.lead(node, replace(around, failed=fresh))
            if found is not GOES_ON:
                return found
            fresh = fresh and node.type == "comment"
        for name, value in marks:
            found = self.followed(name, value, around, lost)
            if found is None or isinstance(found, Unsure):
                return found
        return lost

    def lead(self, node: Node, around: Around) -> str | None:
        """What becomes of a failure after which a statement is run; `GOES_ON` where that takes no notice of it."""
        kind, text = node.type, text_of(node)
        if around.depth > MOST_DEPTH:
            return Unsure("what follows its failure is nested too deeply")
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            return self.lead(body, around.inner()) if body is not None else GOES_ON
        if kind == "compound_statement":
            return self.leads(node.named_children, around.inner(), GOES_ON)
        if kind == "subshell":
            fate = self.fate(around)
            return self.leads(node.named_children, around.process(fate), GOES_ON)
        if kind == "list" and "||" not in {child.type for child in node.children}:
            left, right = node.named_children[0], node.named_children[-1]
            if cannot_fail(left):
                return self.lead(right, replace(around.inner(), failed=False))
        if kind == "command":
            words = text.split()
            if (
                words[0] == "false"
                and node.next_named_sibling is not None
                and (around.tested or not self.state.options.stops)
            ):
                return GOES_ON
            if words[0] == "false":
                return self.fate(around)
            if words[0] in ("exit", "return"):
                lost = (
                    around.exit if words[0] == "exit" else around.leave if around.calls else self.fate(around)
                )
                fails = self.code(words[1] if len(words) == 2 else "$?", around)
                return lost if fails else Unsure(short(node)) if fails is None else f"|| {short(node)}"
            if words[0] in self.state.functions and words[0] not in around.calls and len(around.calls) < 8:
                fate = self.fate(around)
                inner = replace(around.inner(), status=fate, leave=fate, calls=(*around.calls, words[0]))
                return self.lead(self.state.functions[words[0]].body, inner)
        if kind in ("variable_assignment", "declaration_command"):
            return GOES_ON
        if STEERS.match(text) or (kind != "command" and STEERS.search(text)):
            return Unsure(f"whether its failure counts rests on {short(node)}")
        return GOES_ON

    def code(self, text: str, around: Around) -> bool | None:
        """Whether an exit code is another one than 0; None if that is not known."""
        text = text.strip("\"'")
        if text == "$?":
            return around.failed
        if any(re.fullmatch(used(name), text) for name in around.failing):
            return True
        if found := re.fullmatch(r"\$\{?(\w+)\}?", text):
            text = self.state.values.get(found[1], UNKNOWN)
        return int(text) % 256 != 0 if re.fullmatch(r"-?\d{1,9}", text) else None

    def followed(self, name: str, value: str | None, around: Around, lost: str) -> str | None:
        """What becomes of a failure that a variable keeps, by the statements that follow; `?` is its status itself."""
        for place, (node, rest) in enumerate(walk(around.after)):
            if place >= MOST_AFTER:
                return Unsure("what becomes of its status is written too far from it")
            here = replace(around, after=rest, failing=around.failing | {name}, failed=name in STATUS)
            found = self.use(node, name, value, here)
            if found is not GOES_ON:
                return found
            if name in STATUS:
                mark = kept(node, name) if "$" in text_of(node) else None
                return self.followed(mark[0], mark[1], here, lost) if mark is not None else lost
        if around.calls and name not in STATUS:
            return Unsure(f"what becomes of its status, kept in {name}, is not followed")
        return lost

    def use(self, node: Node, name: str, value: str | None, around: Around) -> str | None:
        """What a statement makes of a failure that `name` keeps; `GOES_ON` where it is still kept after it."""
        kind, text = node.type, text_of(node)
        unsure = Unsure(f"whether its failure counts rests on {short(node)}")
        if kind == "variable_assignment" and text.split("=", 1)[0] == name:
            new = text.split("=", 1)[1]
            if re.fullmatch(used(name), new) or re.fullmatch(r"[\"']?[1-9]\d*[\"']?", new):
                return GOES_ON if value is None or new == value else unsure
            return (
                unsure if mentions(new, name) else f"its status is kept in {name}, and {short(node)} follows"
            )
        if kind == "command":
            words = text.split()
            if words[0] in ("exit", "return"):
                lost = (
                    around.exit if words[0] == "exit" else around.leave if around.calls else self.fate(around)
                )
                code = text[len(words[0]) :].strip()
                if value == "0" or (value is not None and not value.isdigit() and mentions(code, name)):
                    return unsure
                if re.fullmatch(used(name), code) or summed(code, name) or (not code and name == "?"):
                    return lost
                fails = (
                    None if mentions(code, name) else self.code(code or "$?", replace(around, failed=False))
                )
                return lost if fails else unsure if fails is None else f"{short(node)} follows"
            if words[0] in self.state.functions and STEERS.search(
                text_of(self.state.functions[words[0]].body)
            ):
                return unsure
        truth = asked(text, name, value)
        if truth is not None or re.fullmatch(rf"\(\s*exit\s+{used(name)}\s*\)", text):
            last = next(walk(around.after), None) is None
            if truth is True:
                return GOES_ON
            if last:
                return around.leave if around.calls else around.exit
            return around.exit if self.state.options.stops and not around.tested else unsure
        if kind == "if_statement":
            types = [child.type for child in node.children]
            then = types.index("then") if "then" in types else 0
            other = next(
                (place for place, one in enumerate(types) if one in ("elif_clause", "else_clause", "fi")),
                then,
            )
            truth = asked(" ".join(text_of(one) for one in named(node.children[:then])), name, value)
            if truth:
                return self.leads(named(node.children[then:other]), replace(around, failed=False), GOES_ON)
            if truth is False and types[other] != "elif_clause":
                return self.leads(
                    named(node.children[other].children), replace(around, failed=False), GOES_ON
                )
        elif kind == "list":
            left, right = node.named_children[0], node.named_children[-1]
            both = "&&" in {child.type for child in node.children}
            truth = asked(text_of(left), name, value)
            if truth is not None and truth == both:
                return self.leads([right], replace(around, failed=not both), GOES_ON)
            if truth is False and next(walk(around.after), None) is None:
                return around.leave if around.calls else around.exit
        if (STEERS.match(text) and not text.startswith("set")) or (kind != "command" and STEERS.search(text)):
            return unsure
        if re.search(rf"\b(?:{_SETTERS})\b[^;\n]*[ ,]{re.escape(name)}\b", text):
            return unsure
        for found in re.finditer(rf"(\|\|\s*)?\b{re.escape(name)}=(\S*)", text):
            if not (re.match(r"[\"']?[1-9]", found[2]) or (found[1] and found[2].startswith(("$?", '"$?')))):
                return unsure
        return GOES_ON
