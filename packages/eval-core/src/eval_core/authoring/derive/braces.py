"""Definitions and doc comments of languages with braces: JavaScript, TypeScript, Java, C, C++, C#, PHP, Rust, Swift.

A light reading and no parser: comments and texts are blanked, what remains is cut at braces and semicolons, and the
head before each cut is held against the forms in which the language defines things. Macros and regular expressions
that hold braces can cost a method the name of its class, or a definition its being found; never its line or its text.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from eval_core.authoring.derive.symbols import Symbol


@dataclass(frozen=True, slots=True)
class Language:
    """How a language of this family is written.

    `types` are the words that open a type, `spaces` those that open a space of names that is no part of a qualified
    name. `functions` is what introduces a function by a word; where it is empty, a function is told by its form:
    `name(` in a type (`methods`), or after a type anywhere (`free`). `single`: texts stand in single quotes too;
    `template`: in back quotes; `slashes`: `///` comments document; `directives`: lines of a preprocessor. `joint`
    joins a qualified name. A definition is public without `hidden` and with `shown` before its name.
    """

    types: str
    spaces: str = r"(?!)"
    functions: str = ""
    methods: bool = False
    free: bool = False
    single: bool = False
    template: bool = False
    slashes: bool = False
    directives: bool = False
    joint: str = "."
    hidden: str = r"\b(?:private|fileprivate)\b"
    shown: str = ""


_NAME = r"[A-Za-z_$][\w$]*"
_SCRIPT = Language(
    types="class|interface|enum",
    spaces="namespace|module",
    functions=rf"\bfunction\b\s*\*?\s*(?P<name>{_NAME})"
    rf"|\b(?:const|let|var)\s+(?P<bound>{_NAME})\s*(?::[^=;]{{0,200}})?=\s*(?:async\s*)?"
    rf"(?:function\b|\([^()]{{0,2000}}\)\s*(?::[^=;]{{0,200}})?=>|{_NAME}\s*=>)"
    rf"|\b{_NAME}(?:\.prototype)?\.(?P<member>{_NAME})\s*=\s*(?:async\s+)?function\b"
    rf"|\btype\s+(?P<alias>[A-Z][\w$]*)\s*(?:<[^=;]{{0,200}}>\s*)?=(?!>)",
    methods=True,
    single=True,
    template=True,
)
_JAVA = Language(types="class|interface|enum|record", methods=True)
_C = Language(
    types=r"class|struct|enum(?:\s+(?:class|struct))?|union",
    spaces="namespace",
    free=True,
    slashes=True,
    directives=True,
    joint="::",
    hidden=r"(?!)",
)
_CSHARP = Language(
    types=r"class|interface|struct|enum|record(?:\s+(?:class|struct))?",
    spaces="namespace",
    methods=True,
    slashes=True,
    directives=True,
)
_PHP = Language(
    types="class|interface|trait|enum", functions=r"\bfunction\s+&?\s*(?P<name>\w+)", single=True, joint="::"
)
_RUST = Language(
    types="struct|enum|trait|union",
    spaces="mod",
    functions=r"\bfn\s+(?P<name>\w+)",
    slashes=True,
    joint="::",
    hidden=r"(?!)",
    shown=r"\bpub\b(?!\s*\()",
)
_SWIFT = Language(
    types="class|struct|enum|protocol|actor|extension", functions=r"\bfunc\s+(?P<name>\w+)", slashes=True
)

#: By the ending of a file's name.
LANGUAGES: dict[str, Language] = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"), _SCRIPT),
    ".java": _JAVA,
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), _C),
    ".cs": _CSHARP,
    ".php": _PHP,
    ".rs": _RUST,
    ".swift": _SWIFT,
}

#: A doc comment farther from a name than this, in characters, is about something else.
_FAR = 4000


def read(text: str, language: Language) -> list[Symbol]:
    """The functions, methods and types of a source text, in the order of its lines. What stands in a function is left
    out."""
    bare, docs = _blanked(text, language)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    begins = [doc.begin for doc in docs]
    found: list[Symbol] = []
    for symbol, place in _Reader(bare, language).symbols():
        above = bisect.bisect_left(begins, place) - 1
        doc = docs[above] if above >= 0 else None
        if doc is not None and place - doc.end < _FAR and _touches(bare[doc.end : place]):
            symbol = replace(symbol, doc="\n".join(doc.lines))
        found.append(replace(symbol, line=bisect.bisect_right(starts, place)))
    return found


# ------------------------------------------------------------- comments and texts


@dataclass(slots=True)
class _Doc:
    begin: int
    end: int
    lines: list[str]


def _token(language: Language) -> re.Pattern[str]:
    """What is no code. An unclosed comment reaches to the end, an unclosed text is none."""
    # Where single quotes hold one character only, a lone one may be something else, such as a lifetime.
    single = r"'(?:\\.|[^'\\\n])*'" if language.single else r"'(?:\\[^'\n]{1,10}|[^'\\\n])'"
    parts = [r"(?P<block>/\*.*?(?:\*/|\Z))", r"(?P<line>//[^\n]*)", r'(?P<text>"(?:\\.|[^"\\\n])*"', single]
    if language.template:
        parts.append(r"`(?:\\.|[^`\\])*(?:`|\Z)")
        # A slash begins a regular expression where a value may stand; elsewhere it divides.
        value = r"(?:(?<=[=(,:!&|?;{}\[\n])|(?<=[=(,:!&|?;{}\[] )|(?<=return ))"
        parts.append(value + r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/")
    parts[-1] += ")"
    if language.directives:
        parts.append(r"(?P<directive>(?m:^)[ \t]*#(?:[^\n\\]|\\\n|\\.)*)")
    return re.compile("|".join(parts), re.DOTALL)


def _blanked(text: str, language: Language) -> tuple[str, list[_Doc]]:
    """The text with all that is no code turned into spaces, place for place, and its doc comments."""
    docs: list[_Doc] = []
    out: list[str] = []
    done = 0
    for token in _token(language).finditer(text):
        whole, begin, end = token[0], token.start(), token.end()
        out += [text[done:begin], re.sub(r"[^\n]", " ", whole)]
        done = end
        if token["block"] and re.match(r"/\*\*[^*/]", whole):
            inner = whole[3:].removesuffix("*/")
            lines = [re.sub(r"^\s*\*(?!\*)\s?", "", line) for line in inner.split("\n")]
            docs.append(_Doc(begin, end, lines))
        elif language.slashes and token["line"] and re.match(r"///(?!/)", whole):
            line = whole[3:].strip()
            last = docs[-1] if docs else None
            if (
                last
                and text.startswith("///", last.begin)
                and re.fullmatch(r"\n[ \t]*", text[last.end : begin])
            ):
                last.lines.append(line)
                last.end = end
            else:
                docs.append(_Doc(begin, end, [line]))
    return "".join([*out, text[done:]]), docs


_GROUP = re.compile(r"\([^()]*\)|<[^<>]*>|\[[^\[\]]*\]")
_BETWEEN = re.compile(
    r"@[\w.]+(?:\(.*\))?|#!?\[.*\]|\[.*\]|template\s*<.*>|(?!(?:import|use|using|package|return)\b)[\w\s*&:<>,\[\]?.]+"
)


def _touches(between: str) -> bool:
    """Whether only annotations, modifiers and types stand between a doc comment and the name that it is about."""
    *whole, last = between.split("\n")
    beside = [last] if not whole else [whole[0], last]  # parts of lines: behind the comment, before the name
    if any(re.search(r"[,;{}()=]", _GROUP.sub("", part)) for part in beside):
        return False
    return all(line.strip() and _BETWEEN.fullmatch(line.strip()) for line in whole[1:])


# ------------------------------------------------------------- definitions


@dataclass(frozen=True, slots=True)
class _Scope:
    """An open brace: of a `type`, of an `impl` (what adds to a type), of a `space`, a `function`, or `other`.

    `open` is a trait or what implements one: its functions are public without a word.
    """

    kind: str
    name: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class _Named:
    """What a head defines or declares, and where in the head its name stands."""

    place: int
    kind: str
    name: str
    qualified: str
    whole: bool = False  # it needs no brace to be a definition
    open: bool = False


_KEYWORDS = (
    "if else for foreach while switch catch return new throw do try synchronized using lock sizeof await yield delete "
    "typeof function super this assert when match guard defer elif fixed checked operator constructor case in"
)
_CONTROL = frozenset(_KEYWORDS.split())


@dataclass(slots=True)
class _Reader:
    bare: str
    language: Language
    scopes: list[_Scope] = field(default_factory=list)
    functions: int = 0

    def symbols(self) -> Iterator[tuple[Symbol, int]]:
        """Each definition or declaration outside of functions, with its place; lines and docs are not filled in."""
        begin = parentheses = literals = 0
        for mark in re.finditer(r"[{}();]", self.bare):
            sign = mark[0]
            if literals:
                literals += {"{": 1, "}": -1}.get(sign, 0)
            elif sign in "()":
                parentheses = max(0, parentheses + (1 if sign == "(" else -1))
            elif sign == "{" and parentheses and not self._opens_body(mark.start()):
                literals = 1  # a value or a pattern among arguments, which is a part of its head
            else:
                scope = _Scope("other")
                if not self.functions:
                    head = self.bare[begin : mark.start()]
                    named = self._named(head, sign)
                    for found in named:
                        if found.kind in ("type", "function") and not self._makes(found):
                            yield self._symbol(found, head, sign), begin + found.place
                    if named:
                        scope = _Scope(named[-1].kind, named[-1].name, named[-1].open)
                    elif self.language.free and head.split()[-1:] == ["extern"]:
                        scope = _Scope("space")
                self._step(sign, scope)
                begin, parentheses = mark.end(), 0

    def _opens_body(self, place: int) -> bool:
        return self.bare[max(0, place - 200) : place].rstrip().endswith((")", "=>"))

    def _step(self, sign: str, scope: _Scope) -> None:
        if sign == "{":
            self.scopes.append(scope)
            self.functions += scope.kind == "function"
        elif sign == "}" and self.scopes:
            self.functions -= self.scopes.pop().kind == "function"

    def _makes(self, found: _Named) -> bool:
        """Whether it is the constructor of the type around it, which is called like the type and told of there."""
        return bool(self.scopes) and self.scopes[-1].name == found.name and found.kind == "function"

    def _symbol(self, found: _Named, head: str, sign: str) -> Symbol:
        language = self.language
        outer = [scope.name for scope in self.scopes if scope.kind in ("type", "impl")]
        line = head[head.rfind("\n", 0, found.place) + 1 : found.place]
        public = not re.search(language.hidden, line) and not found.name.startswith(("_", "#"))
        if language.shown and not (self.scopes and self.scopes[-1].open):
            public = public and re.search(language.shown, line) is not None
        return Symbol(
            found.name,
            language.joint.join([*outer, found.qualified]),
            line=0,
            public=public,
            defined=sign == "{" or found.whole,
        )

    def _named(self, head: str, sign: str) -> list[_Named]:
        """What a head names, in order of place."""
        language = self.language
        head = _ANNOTATION.sub(lambda match: " " * len(match[0]), head)
        if sign == "}" and not language.functions:
            return []
        if language is _RUST and (match := _RUST_IMPL.search(head)):
            group = "second" if match["second"] else "first"
            return [
                _Named(match.start(group), "impl", match[group], match[group], open=bool(match["second"]))
            ]
        inside = self.scopes[-1].kind if self.scopes else "space"
        if language.free and "(" in head:
            function = _c_function(head) if inside in ("space", "type") else None
            return [function] if function else []
        named = list(_types(head, language))
        for match in re.finditer(language.functions, head) if language.functions else ():
            group, name = next((group, name) for group, name in match.groupdict().items() if name)
            kind = "type" if group == "alias" else "function"
            named.append(_Named(match.start(group), kind, name, name, whole=group in ("bound", "alias")))
        if not named and language.methods and inside == "type" and sign != "}":
            named = _method(head, language)
        return sorted(named, key=lambda found: found.place)


_ANNOTATION = re.compile(r"@[A-Za-z_][\w.]*(?:\([^()]*\))?|\btemplate\s*<[^<>]*>|__\w+__\s*\(\([^()]*\)\)")
_RUST_IMPL = re.compile(
    r"\bimpl\b\s*(?:<[^{}]{0,500}?>\s*)?(?:\w+::)*(?P<first>[A-Za-z_]\w*)(?:<[^{}]{0,500}?>)?"
    r"(?:\s+for\s+&?(?:mut\s+)?(?:\w+::)*(?P<second>\w+))?"
)


def _types(head: str, language: Language) -> Iterator[_Named]:
    """Types and spaces: a word, a name, and what may follow on it; `struct a b = …` only names one."""
    words = rf"(?<![.\w$])(?P<word>{language.types}|{language.spaces})\s+(?:[A-Z][A-Z0-9_]+\s+)?"
    follows = r"(?=\s*(?:$|[:<({]|\b(?:extends|implements|final|where|permits)\b))"
    for match in re.finditer(rf"{words}(?P<name>{_NAME}(?:(?:\.|::)\w+)*){follows}", head):
        name, word = match["name"], match["word"]
        if name in ("extends", "implements", "final", "where"):
            continue
        if re.fullmatch(language.spaces, word):
            yield _Named(match.start("name"), "space", name, name)
        elif word == "extension":
            yield _Named(match.start("name"), "impl", name, name)
        else:
            yield _Named(
                match.start("name"), "type", name, name, whole=language is _RUST, open=word == "trait"
            )


_CALLED = re.compile(rf"(?:^|(?<=[\s*>\]?]))(?P<name>#?{_NAME})\s*(?:<[^<>()]*>)?\s*\(")
_MODIFIERS = re.compile(
    r"(?:(?:public|protected|private|static|async|override|readonly|abstract|get|set)\s+|\*\s*)*"
)


def _method(head: str, language: Language) -> list[_Named]:
    """A method told by its form: `name(` with no assignment before it; in JavaScript at its line's beginning."""
    for match in _CALLED.finditer(head):
        before = head[: match.start("name")]
        line = before[before.rfind("\n") + 1 :].lstrip()
        if language is _SCRIPT:
            fits = _MODIFIERS.fullmatch(line) is not None
        else:
            fits = re.search(r"=|\b(?:new|return)\b", before) is None and before.strip() != ""
        if fits and match["name"] not in _CONTROL:
            return [_Named(match.start("name"), "function", match["name"], match["name"])]
    return []


_C_FUNCTION = re.compile(r"(?P<qualified>(?:\w+::)*~?(?P<name>[A-Za-z_]\w*))\s*\(")


def _c_function(head: str) -> _Named | None:
    """A function of C or C++: a type, a name and parameters, with no assignment before them."""
    match = _C_FUNCTION.search(head)
    if match is None or match["name"] in _CONTROL:
        return None
    before = re.sub(r"\b(?:public|private|protected)\s*:", " ", head[: match.start()])
    if not re.search(r"\w", before) or re.search(
        r"=|\b(?:return|else|typedef|using|new|operator|case|throw|goto)\b", before
    ):
        return None
    return _Named(match.start("name"), "function", match["name"], match["qualified"])
