"""Doc comments and definitions as each language writes them: name, line, sentence, whether public and defined."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.authoring.derive.code import READERS
from eval_core.authoring.derive.symbols import Symbol, Unparsed
from eval_core.authoring.derive.wording import draft, first_sentence, paragraph


def read(name: str, text: str) -> list[Symbol]:
    return READERS[os.path.splitext(name)[1]](text)


def told(symbols: list[Symbol]) -> list[tuple[int, str, str]]:
    """Line, name and draft of each; `-` before what is not public, `?` behind what is only declared."""
    return [
        (
            s.line,
            ("" if s.public else "-") + s.qualified + ("" if s.defined else "?"),
            draft(first_sentence(paragraph(s.doc)), (s.name, s.qualified)) if s.doc else "",
        )
        for s in symbols
    ]


PYTHON = '''"""Module."""
import x

def outer(a):
    """Splits a line.

    More."""
    def inner():
        """Not seen from outside."""

class Reader(Base):
    """Reads files one by one."""

    @property
    def size(self): ...

    async def fetch_all(self):
        """Returns all that is there."""

    def _hidden(self):
        """Kept for itself."""

    class Part:
        def join(self): "Joins the parts."

if x:
    def late(): "Comes with a condition."
else:
    def other(): ...
try:
    class Tried: ...
except ImportError:
    def failed(): ...
'''

SCRIPT = """/** About the file as a whole. */

import { x } from 'y'

/**
 * Splits a line into {@link Token tokens}.
 * @param line what
 */
export function splitLine({ line, sep } = { line: "", sep: "{" }): string[] {
  /** Not seen from outside. */
  function inner() {}
}

/** Waits until the lock is gone. */
export const waitForLock = async (path: string): Promise<void> => {
  const o = { a: 1 }
}

/** Reads and writes the settings. */
@Injectable({ a: 1 })
export default class SettingsStore<T> extends Base<T> implements Foo {
  private cache = new Map()
  constructor(private x: string) { super() }

  /** Drops what nobody has read. */
  async pruneStale(days = 1): Promise<void> {
    if (x) { y() }
  }

  /** Never tells anyone. */
  private hideAll() {}
}

export interface MaybeMissing {
  /** Says whether it is there. */
  isThere(): boolean;
}
/** One of the winds. */
export type Wind = 'n' | 'e'
/** Turns the wheel once. */
Mill.prototype.turnWheel = function (a) { if (/['"{]/.test(a)) { return `${"{"}` } }
/** Far away from it. */

function alone() {}
// const gone = () => 1
"""

JAVA = """/**
 * Keeps at most <code>n</code> entries.
 * <p>More.
 */
@Foo(bar = "x")
public final class BoundedCache<K, V> extends Base<K> implements Map<K, V> {
    /** Makes a new one. */
    public BoundedCache(int size) { this.size = size; }
    /**
     * Returns the entry used longest ago.
     *
     * @return the entry
     */
    @Override
    public Map.Entry<K, V> eldestEntry(int a) throws IOException {
        new Runnable() { public void run() { } };
    }
    /** Counts what was not found. */
    abstract int missCount();
    private static class Node {
        void link(Node a) {}
    }
    enum Mode { /** First one. */
        A(1), B(2); }
}
"""

CPP = """#define BRACE {
extern "C" {
/** Sends all bytes of the buffer. */
int send_all(int fd, const char *buf);
}
namespace net {
/// Holds one open connection.
/// It is closed at the end.
template <typename T>
class Connection : public Base {
public:
  explicit Connection(int fd) : fd_(fd), x_{1} {}
  /** Throws the rest away. */
  void drainInput(std::vector<int> a = {1, 2});
};
static const struct option opts[] = { {"a", f(1), 'a'} };
void Connection::drainInput(std::vector<int> a) { while (x) { y(); } }
static int
compare_names(const void *a)
{ return 0; }
enum class Color : int { Red };
}
"""

CSHARP = """namespace A.B {
  /// <summary>
  /// Gets the <see cref="T:X.Order"/> placed last.
  /// </summary>
  [Obsolete("x")]
  public class LastOrder : Base {
    #region x {
    /// <summary>Counts what waits.</summary>
    public async Task<int> CountUnpaid(int a) { return await b(); }
    public int Size { get { return 1; } set { } }
    private bool May(int a) { return a > 1; }
  }
}
"""

PHP = """<?php
/** Sends letters to people. */
final class LetterBox extends Box {
    /** Finds who wrote last. */
    public static function lastSender(array $a = []): ?string { if ($a) { return "don't {"; } }
    private function no() {}
}
/** Adds a slash at the end. */
function with_slash($p) { return $p . '/'; }
"""

RUST = """//! Crate.
/// A queue for many threads.
///
/// # Examples
#[derive(Debug, Clone)]
pub struct WorkQueue<'a, T: 'a> { items: Vec<T> }
/// A thing that only marks.
pub struct Marker;
impl<'a, T> WorkQueue<'a, T> {
    /// Takes the oldest one.
    pub fn pop_oldest(&mut self) -> Option<T> { let c = '{'; fn x() {} None }
    /// Stays in here.
    fn secret(&self) {}
    pub(crate) fn near(&self) {}
}
impl<T> std::fmt::Display for WorkQueue<'_, T> {
    /// Writes how many wait.
    fn fmt(&self, f: &mut Formatter) -> Result { Ok(()) }
}
pub trait Painter {
    /// Paints all of it.
    fn fill_canvas(&self);
}
"""

SWIFT = """/// Draws a map of places.
public final class MapView: View {
    /// Moves the map there.
    public func centre(on place: Place) -> Bool { return true }
    private func x() {}
}
protocol Walker {
    /// Goes as far as it can.
    func goFar() -> Int
}
extension MapView {
    func onlyOpen() {}
}
"""

GO = """// Package a does.
package a

// Client is an HTTP client with memory.
type Client struct {
	x int
}

// Do sends the request. More.
//
//go:noinline
func (c *Client) Do(r Request) error {
	return nil
}

// helper helps from inside.
func helper() {}

// A Set holds keys in order.
type Set[K comparable] struct{}

// Something about nothing in particular.
func Other() {}
"""

RUBY = """# frozen_string_literal: true

# Talks to the printer.
module Print
  class Job < Base
    # Prints every page twice.
    #
    # @param x [Integer]
    def print_twice(x)
      if x
      end
    end

    # Finds the present one.
    def self.current; end

    private

    # Hidden from all.
    def hush
    end
  end

  # Not about the next.

  def paper?
  end
end
"""

CASES: dict[str, tuple[str, list[tuple[int, str, str]]]] = {
    "a.py": (
        PYTHON,
        [
            (4, "outer", "Splits a line"),
            (11, "Reader", "Reads files one by one"),
            (15, "Reader.size", ""),
            (17, "Reader.fetch_all", "all that is there"),
            (20, "-Reader._hidden", "Kept for itself"),
            (23, "Reader.Part", ""),
            (24, "Reader.Part.join", "Joins the parts"),
            (27, "late", "Comes with a condition"),
            (29, "other", ""),
            (31, "Tried", ""),
            (33, "failed", ""),
        ],
    ),
    "a.ts": (
        SCRIPT,
        [
            (9, "splitLine", "Splits a line into tokens"),
            (15, "waitForLock", "Waits until the lock is gone"),
            (21, "SettingsStore", "Reads and writes the settings"),
            (26, "SettingsStore.pruneStale", "Drops what nobody has read"),
            (31, "-SettingsStore.hideAll", "Never tells anyone"),
            (34, "MaybeMissing", ""),
            (36, "MaybeMissing.isThere?", "Says whether it is there"),
            (39, "Wind", "One of the winds"),
            (41, "turnWheel", "Turns the wheel once"),
            (44, "alone", ""),
        ],
    ),
    "a.java": (
        JAVA,
        [
            (6, "BoundedCache", "Keeps at most n entries"),
            (15, "BoundedCache.eldestEntry", "the entry used longest ago"),
            (19, "BoundedCache.missCount?", "Counts what was not found"),
            (20, "-BoundedCache.Node", ""),
            (21, "BoundedCache.Node.link", ""),
            (23, "BoundedCache.Mode", ""),
            (24, "BoundedCache.Mode.B?", ""),
        ],
    ),
    "a.cpp": (
        CPP,
        [
            (4, "send_all?", "Sends all bytes of the buffer"),
            (10, "Connection", "Holds one open connection"),
            (14, "Connection::drainInput?", "Throws the rest away"),
            (17, "Connection::drainInput", ""),
            (19, "compare_names", ""),
            (21, "Color", ""),
        ],
    ),
    "a.cs": (
        CSHARP,
        [
            (6, "LastOrder", "Gets the Order placed last"),
            (9, "LastOrder.CountUnpaid", "Counts what waits"),
            (11, "-LastOrder.May", ""),
        ],
    ),
    "a.php": (
        PHP,
        [
            (3, "LetterBox", "Sends letters to people"),
            (5, "LetterBox::lastSender", "Finds who wrote last"),
            (6, "-LetterBox::no", ""),
            (9, "with_slash", "Adds a slash at the end"),
        ],
    ),
    "a.rs": (
        RUST,
        [
            (6, "WorkQueue", "A queue for many threads"),
            (8, "Marker", "A thing that only marks"),
            (11, "WorkQueue::pop_oldest", "Takes the oldest one"),
            (13, "-WorkQueue::secret", "Stays in here"),
            (14, "-WorkQueue::near", ""),
            (18, "WorkQueue::fmt", "Writes how many wait"),
            (20, "Painter", ""),
            (22, "Painter::fill_canvas?", "Paints all of it"),
        ],
    ),
    "a.swift": (
        SWIFT,
        [
            (2, "MapView", "Draws a map of places"),
            (4, "MapView.centre", "Moves the map there"),
            (5, "-MapView.x", ""),
            (7, "Walker", ""),
            (9, "Walker.goFar?", "Goes as far as it can"),
            (12, "MapView.onlyOpen", ""),
        ],
    ),
    "a.go": (
        GO,
        [
            (5, "Client", "an HTTP client with memory"),
            (12, "Client.Do", "sends the request"),
            (17, "-helper", "helps from inside"),
            (20, "Set", "holds keys in order"),
            (23, "Other", ""),
        ],
    ),
    "a.rb": (
        RUBY,
        [
            (4, "Print", "Talks to the printer"),
            (5, "Print::Job", ""),
            (9, "Print::Job#print_twice", "Prints every page twice"),
            (15, "Print::Job.current", "Finds the present one"),
            (20, "-Print::Job#hush", "Hidden from all"),
            (26, "Print#paper?", ""),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_language_documents_and_defines_is_found(name: str) -> None:
    text, expected = CASES[name]
    assert told(read(name, text)) == expected


@pytest.mark.parametrize("name", CASES)
def test_line_ends_of_another_system_change_nothing(name: str) -> None:
    text, expected = CASES[name]
    assert told(read(name, text.replace("\n", "\r\n"))) == expected


@pytest.mark.parametrize("text", ["def f(:", "x = '\0'", "(" * 5000, "class A\n"])
def test_python_that_does_not_parse_is_said_to(text: str) -> None:
    with pytest.raises(Unparsed):
        read("a.py", text)


def test_a_byte_order_mark_and_odd_escapes_are_no_fault_of_python() -> None:
    assert told(read("a.py", '\ufeffdef f():\n    "A \\d digit."\n')) == [(1, "f", "A \\d digit")]


PIECES = [
    "/** a b c d */ ",
    "/// a b c d\n",
    "# a b c d\n",
    "// F a b c d\n",
    "class F ",
    "def f\n",
    "func F(",
    "fn f(",
    "function f(",
    "int f(",
    "{",
    "}",
    "(",
    ")",
    ";",
    '"',
    "'",
    "`",
    "/*",
    "=",
    "\n",
    "impl<",
    "@a",
    "private ",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.sampled_from(sorted(READERS)))
def test_no_text_breaks_a_reader(text: str, ending: str) -> None:
    """Whatever stands in a file: every symbol is a word of the line that it is said to be on."""
    try:
        found = READERS[ending](text)
    except Unparsed:
        assert ending.startswith(".py")
        return
    lines = text.split("\n")
    for symbol in found:
        assert symbol.name in lines[symbol.line - 1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "(" * 100_000),
        ("a.js", "/*" * 100_000),
        ("a.js", "foo([" + "{a:1}," * 50_000 + "])"),
        ("a.js", "const a:" * 30_000),
        ("a.js", "class A{" + "a " * 100_000 + "b("),
        ("a.js", "/** x */\n" * 20_000 + "function a(){}"),
        ("a.java", "class A{" + "x y(" * 50_000),
        ("a.c", "{" * 100_000),
        ("a.c", "int a(" * 30_000),
        ("a.c", "/// a\n" * 50_000),
        ("a.rs", "impl<" * 30_000),
        ("a.rb", "# a\n" * 50_000 + "def a"),
        ("a.go", "// a\n" * 50_000 + "func A("),
        ("a.py", "(" * 50_000),
    ],
)
@pytest.mark.timeout(10)
def test_no_text_takes_long(name: str, text: str) -> None:
    """Time that grows with the square of a file would be minutes here."""
    try:
        read(name, text)
    except Unparsed:
        assert name == "a.py"
