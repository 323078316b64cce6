"""`eval-core publish` (SYSTEMS S4, S6): outward numbers are rendered from what was measured, or held against it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import write_policy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published_support import Desk, measured

from eval_core import publish
from eval_core.errors import CouldNot, Faults, Refused
from eval_core.files import atomic
from eval_core.policy.evidence import dump
from eval_core.publish import figures, marks
from eval_core.publish.marks import Asserted, Mark, Table
from eval_core.publish.models import Publication
from eval_core.reports import provenance
from eval_core.reports.report import Report, summarise, write_report
from eval_core.reports.waivers import Waiver, Waivers


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """The memory set, measured."""
    return measured(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(base: Desk, tmp_path: Path) -> Desk:
    """A copy of it, with a page of one number."""
    shutil.copytree(base.root, tmp_path / "desk")
    desk = Desk(tmp_path / "desk")
    desk.page.write_text(NUMBER)
    return desk


# The memory set under bm25: figures of an independent count are in the tests of the set; here, of the report's JSON.
NUMBER = "We find <!-- metric plain recall@10 -->?<!-- /metric --> of them.\n"


def mean(desk: Desk, arm: str, measure: str, category: str | None = None) -> float:
    """A mean over the rows of a report's JSON, worked here."""
    rows = json.loads(desk.report(arm).read_bytes())["rows"]
    values = [
        row["metrics"][measure] for row in rows if category is None or row["meta"]["category"] == category
    ]
    return float(sum(values) / len(values))


# --- rendering ---


def test_a_number_is_rendered_and_the_check_passes_after(desk: Desk) -> None:
    """S4: publishing is idempotent, and --check holds what it wrote."""
    assert desk.codes("--check") == ["publish-differs"]
    assert desk.page.read_text() == NUMBER, "--check changes nothing"
    told = desk.told()
    assert told["written"] == ["README.md"]
    assert desk.page.read_text() == NUMBER.replace("?", f"{mean(desk, 'plain', 'recall@10'):.3f}")
    before = desk.page.stat()
    again = desk.told()
    assert (again["written"], again["marks"][0]["state"]) == ([], "equal")
    assert desk.page.stat().st_mtime_ns == before.st_mtime_ns, "a page that is right is not written"
    assert desk.told("--check")["exit_code"] == 0


@pytest.mark.parametrize(
    ("mark", "arm", "measure", "category", "form"),
    [
        ("plain recall@10 .4f", "plain", "recall@10", None, ".4f"),
        ("kind recall@10 .1%", "kind", "recall@10", None, ".1%"),
        ("kind mrr .0%", "kind", "mrr", None, ".0%"),
        ("plain[paraphrase] ndcg@5", "plain", "ndcg@5", "paraphrase", ".3f"),
        ("plain[pair]  all@10\t.2f", "plain", "all@10", "pair", ".2f"),
    ],
)
def test_a_number_takes_the_form_that_its_mark_says(
    desk: Desk, mark: str, arm: str, measure: str, category: str | None, form: str
) -> None:
    desk.page.write_text(f"<!-- metric {mark} --> 0 <!-- /metric -->")
    desk.told()
    value = format(mean(desk, arm, measure, category), form)
    assert desk.page.read_text() == f"<!-- metric {mark} --> {value} <!-- /metric -->", "white space stays"


def test_n_is_a_count(desk: Desk) -> None:
    desk.page.write_text(
        "<!-- metric plain n --><!-- /metric -->/<!-- metric plain[pair] n -->5<!-- /metric -->"
    )
    desk.told()
    rows = json.loads(desk.report().read_bytes())["rows"]
    pairs = sum(row["meta"]["category"] == "pair" for row in rows)
    assert [mark["given"] for mark in desk.told("--check")["marks"]] == [str(len(rows)), str(pairs)]


TABLE = "Intro\n\n  <!-- metrics plain kind[pair]: n recall@10 mrr .2f -->\n  <!-- /metrics -->\nafter\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_table_is_rendered_with_the_line_ends_of_its_page(desk: Desk, newline: str) -> None:
    desk.page.write_bytes(TABLE.replace(" .2f", "").replace("\n", newline).encode())
    assert desk.told()["numbers"] == 6
    lines = [
        "Intro",
        "",
        "  <!-- metrics plain kind[pair]: n recall@10 mrr -->",
        "  | arm | n | recall@10 | mrr |",
        "  |---|---:|---:|---:|",
        f"  | plain | 55 | {mean(desk, 'plain', 'recall@10'):.3f} | {mean(desk, 'plain', 'mrr'):.3f} |",
        "  | kind[pair] | 16 | {:.3f} | {:.3f} |".format(
            *(mean(desk, "kind", measure, "pair") for measure in ("recall@10", "mrr"))
        ),
        "",
        "  kind: limit 10 of a median of 11 candidates: a random ranking finds much of it.",
        "  <!-- /metrics -->",
        "after",
        "",
    ]
    assert desk.page.read_bytes().decode() == newline.join(lines)
    assert desk.told("--check")["exit_code"] == 0
    assert desk.told()["written"] == []


def test_a_table_that_a_formatter_padded_says_the_same(desk: Desk) -> None:
    desk.page.write_text(TABLE.replace("n recall@10 mrr .2f", "recall@10"))
    desk.told()
    padded = (
        desk.page.read_text()
        .replace("| plain |", "| plain      |")
        .replace("|---|---:|", "| ---------- | ----: |")
    )
    desk.page.write_text(padded)
    assert desk.told("--check")["exit_code"] == 0
    desk.page.write_text(padded.replace("0.8", "0.9"))
    [mark] = desk.told("--check")["marks"]
    assert (mark["state"], mark["line"]) == ("differs", 6), "the line of the table that differs"


def test_a_table_with_a_row_too_many_is_not_the_one_that_was_measured(desk: Desk) -> None:
    desk.page.write_text(TABLE.replace("n recall@10 mrr .2f", "recall@10"))
    desk.told()
    desk.page.write_text(
        desk.page.read_text().replace("  <!-- /metrics", "  | ours | 0.999 |\n  <!-- /metrics")
    )
    [mark] = desk.told("--check")["marks"]
    assert (mark["written"], mark["given"]) == ("| ours | 0.999 |", "")


def test_every_page_is_checked_and_each_mismatch_told_with_its_line(desk: Desk) -> None:
    """S4: from the first to the last, with what is written and what the report gives."""
    (desk.root / "docs").mkdir()
    other = desk.root / "docs" / "page.md"
    other.write_text("\n\n" + NUMBER.replace("?", "0.111") + NUMBER.replace("?", "0.222"))
    told = desk.told("--check")
    places = [(mark["page"], mark["line"], mark["written"]) for mark in told["marks"]]
    assert places == [("README.md", 1, "?"), ("docs/page.md", 3, "0.111"), ("docs/page.md", 4, "0.222")]
    done = desk.publish("--check")
    assert done.code == 1
    given = f"{mean(desk, 'plain', 'recall@10'):.3f}"
    assert [line.split() for line in done.out.splitlines()[1:4]] == [
        ["README.md:1", "plain", "recall@10", "?", "→", given],
        ["docs/page.md:3", "plain", "recall@10", "0.111", "→", given],
        ["docs/page.md:4", "plain", "recall@10", "0.222", "→", given],
    ]


def test_the_output_has_its_schema(desk: Desk) -> None:
    schema = Publication.model_json_schema(by_alias=True)
    for arguments in ((), ("--check",)):
        jsonschema.validate(desk.told(*arguments), schema)
    desk.evidence().unlink()
    jsonschema.validate(desk.told(), schema)


def test_a_page_is_written_through_a_link(desk: Desk) -> None:
    real = desk.root / "real.md"
    desk.page.rename(real)
    desk.page.symlink_to(real)
    assert desk.told("README.md", "real.md")["pages"] == ["README.md"], "one page by two names is one"
    assert desk.page.is_symlink()
    assert "0.8" in real.read_text()


# --- code is an example ---

EXAMPLE = "<!-- metric plain recall@10 -->0.123<!-- /metric -->"


@pytest.mark.parametrize(
    "code",
    [
        f"```\n{EXAMPLE}\n```\n",
        f"~~~ md\n{EXAMPLE}\n```\n{EXAMPLE}\n~~~~\n",
        f"````\n```\n{EXAMPLE}\n````\n",
        f"- item\n\n  ```html\n  {EXAMPLE}\n  ```\n",
        f"   ```\r\n   {EXAMPLE}\r\n   ```\r\n",
        f"Write `{EXAMPLE}`.\n",
        f"Write `` ` {EXAMPLE} ``.\n",
        "Write `<!-- metric ARM MEASURE -->`.\n",
        f"```\n{EXAMPLE}",
    ],
)
def test_marks_in_code_are_examples(desk: Desk, code: str) -> None:
    """Neither checked nor touched; the number after them is."""
    closed = not code.endswith("-->")
    desk.page.write_bytes((code + "\n" + NUMBER if closed else NUMBER.rstrip() + " \n").encode())
    assert [mark["written"] for mark in desk.told("--check")["marks"]] == ["?"]
    desk.told()
    assert (code in desk.page.read_bytes().decode()) is closed


@pytest.mark.parametrize(
    "text",
    [
        "``` not a fence ` here\n",
        "a ` backtick alone\n",
        "<!-- a comment with ``` in it\n```\n-->\n",
        "text ``` within a line\n",
        "    > no fence\n",
        "<!-- metrically speaking -->\n",
    ],
)
def test_what_is_no_code_hides_no_mark(desk: Desk, text: str) -> None:
    """S4: a claim must not escape."""
    desk.page.write_text(text + NUMBER)
    assert desk.codes("--check") == ["publish-differs"]


def test_in_html_nothing_is_a_fence(desk: Desk) -> None:
    page = desk.root / "page.html"
    page.write_text("<p>``` `\n" + NUMBER)
    assert desk.codes("--check", "page.html") == ["publish-differs"]


# --- marks that are none ---


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n<!-- metric plain mrr -->0.1\n", 2, "is not closed by <!-- /metric -->"),
        ("<!-- metric plain mrr -->\n<!-- metric plain n -->1<!-- /metric -->", 1, "another opens on line 2"),
        ("\n\n0.1<!-- /metric -->", 3, "closes nothing"),
        ("<!-- metrics plain: n -->\n<!-- /metric -->", 2, "closes the metrics of line 1"),
        ("<!-- metric plain mrr -->1\n<!-- /metric -->", 1, "closes on the line where it opens"),
        ("<!-- metric plain mrr -->1<!-- /metric plain -->", 1, "alone"),
        ("<!-- metric plain mrr", 1, "has no end"),
        ("<!-- metric -->1<!-- /metric -->", 1, "write  metric ARM MEASURE"),
        ("<!-- metric plain -->1<!-- /metric -->", 1, "write  metric ARM MEASURE"),
        ("<!-- metric Plain mrr -->1<!-- /metric -->", 1, "write  metric ARM MEASURE"),
        ("<!-- metric ../plain mrr -->1<!-- /metric -->", 1, "write  metric ARM MEASURE"),
        ("<!-- metric plain mrr 3f -->1<!-- /metric -->", 1, "'3f' is not a form of a number"),
        ("<!-- metric plain mrr .99f -->1<!-- /metric -->", 1, "'.99f' is not a form of a number"),
        ("<!-- metric from: -->1<!-- /metric -->", 1, "metric from:KEY"),
        ("<!-- metric from:a..b -->1<!-- /metric -->", 1, "metric from:KEY"),
        ("<!-- metrics plain n -->\n<!-- /metrics -->", 1, "write  metrics ARM"),
        ("<!-- metrics plain: .3f -->\n<!-- /metrics -->", 1, "write  metrics ARM"),
        ("<!-- metrics plain: n --> <!-- /metrics -->", 1, "on lines of their own"),
        ("> <!-- metrics plain: n -->\n> <!-- /metrics -->", 1, "on lines of their own"),
        ("\n```\n<!-- metric plain mrr -->1<!-- /metric -->\n", 2, "never closed"),
        ("<!-- metric plain p95_ms -->1<!-- /metric -->", 1, "'p95_ms' is timing"),
        ("<!-- metric plain n .1f -->1<!-- /metric -->", 1, "n is a count"),
        ("<!-- metric plane mrr -->1<!-- /metric -->", 1, "no arm 'plane'; did you mean 'plain'?"),
        (
            "<!-- metric plain recal@10 -->1<!-- /metric -->",
            1,
            "no measure 'recal@10' in plain; did you mean 'recall@10'?",
        ),
        ("<!-- metric plain recall@20 -->1<!-- /metric -->", 1, "no measure 'recall@20'"),
        (
            "<!-- metric plain[pairs] mrr -->1<!-- /metric -->",
            1,
            "no category 'pairs' in plain; did you mean 'pair'?",
        ),
        ("<!-- metrics plain kind: n mmr -->\n<!-- /metrics -->", 1, "no measure 'mmr' in kind"),
        ("<!-- metric from:a -->1<!-- /metric -->", 1, "say  --from FILE"),
        ("<!-- metric " + "a" * 300 + " mrr -->1<!-- /metric -->", 1, "no arm 'aaa"),
    ],
)
@pytest.mark.parametrize("check", [(), ("--check",)], ids=["render", "check"])
def test_a_mark_that_is_wrong_is_told_with_its_line(
    desk: Desk, text: str, line: int, words: str, check: tuple[str, ...]
) -> None:
    """Exit 2, and no page changes, not even one that is right."""
    sound, page = desk.page.read_bytes(), desk.root / "other.md"
    page.write_text(text)
    done = desk.publish("README.md", "other.md", *check)
    assert done.code == 2, done.out
    assert f"other.md:{line}: " in done.err
    assert words in done.err
    assert (desk.page.read_bytes(), page.read_text()) == (sound, text)


def test_all_faults_of_all_pages_are_told_at_once(desk: Desk) -> None:
    desk.page.write_text("<!-- /metric -->\n\n<!-- metric plain recal@10 -->1<!-- /metric -->\n")
    done = desk.publish("README.md", "absent.md")
    assert done.code == 2
    assert "3 faults; no page was changed." in done.err


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", "folder"])
def test_a_page_that_cannot_be_read_is_told(desk: Desk, content: bytes | str | None) -> None:
    page = desk.root / "other.md"
    if content == "folder":
        page.mkdir()
    elif isinstance(content, bytes):
        page.write_bytes(content)
    done = desk.publish("--check", "README.md", "other.md")
    assert (done.code, "other.md" in done.err) == (2, True)


def test_a_byte_order_mark_stays_where_it_was(desk: Desk) -> None:
    desk.page.write_bytes(b"\xef\xbb\xbf" + NUMBER.encode())
    desk.told()
    assert desk.page.read_bytes().startswith(b"\xef\xbb\xbfWe find ")


# --- what looked at nothing ---


@pytest.mark.parametrize("text", ["", "no marks at all\n", f"```\n{EXAMPLE}\n```\n"])
@pytest.mark.parametrize("check", [(), ("--check",)], ids=["render", "check"])
def test_no_mark_is_a_failure(desk: Desk, text: str, check: tuple[str, ...]) -> None:
    """S4, LADDER corollary 2: a check that looked at nothing fails."""
    desk.page.write_text(text)
    assert desk.codes(*check) == ["publish-vacuous"]


def test_no_page_is_a_failure(desk: Desk) -> None:
    desk.page.unlink()
    assert desk.codes("--check") == ["publish-vacuous"]


# --- provenance ---


def reconfigured(desk: Desk) -> None:
    text = desk.config.read_text()
    desk.config.write_text(text.replace('backend = "bm25"\n\n', 'backend = "bm25"\noptions.b = 0.5\n\n'))


def unhealthy(desk: Desk) -> None:
    """Evidence of a run in which a row errored, sound by its digests."""
    report, _ = desk.read()
    rows = list(report.rows)
    rows[0] = rows[0].model_copy(
        update={
            "outcome": "errored",
            "ids": (),
            "metrics": {},
            "detail": "it broke",
            "judged": tuple(judged.model_copy(update={"rank": None}) for judged in rows[0].judged),
        }
    )
    fields = {name: getattr(report, name) for name in Report.model_fields if name != "digests"}
    fields["health"] = report.health.model_copy(update={"scored": len(rows) - 1, "errored": 1})
    broken = Report.sealed(**{**fields, "rows": tuple(rows), "summary": summarise(rows, report.measures)})
    write_report(desk.report(), broken)
    desk.stand()


def ungated(desk: Desk) -> None:
    write_policy(desk.policy, {"kind": [desk.read("kind")[0]]})


def edited(desk: Desk) -> None:
    text = desk.evidence().read_text()
    desk.evidence().write_text(text.replace('"documents":50', '"documents":51'))


Harm = Callable[[Desk], object]


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (reconfigured, "provenance-diverges"),
        (lambda desk: desk.evidence().unlink(), "evidence-missing"),
        (lambda desk: desk.evidence().write_text("{}"), "evidence-malformed"),
        (lambda desk: shutil.copy(desk.evidence("kind"), desk.evidence()), "evidence-missing"),
        (edited, "evidence-contradicts"),
        (ungated, "arm-without-floors"),
        (unhealthy, "rows-errored"),
    ],
)
@pytest.mark.parametrize("check", [(), ("--check",)], ids=["render", "check"])
def test_a_number_that_nothing_vouches_for_is_refused(
    desk: Desk, harm: Harm, code: str, check: tuple[str, ...]
) -> None:
    """S4: before the harm the page passes; after it nothing is published, and the sound arm's number is not either."""
    desk.page.write_text(NUMBER + "<!-- metric kind mrr --><!-- /metric -->")
    assert desk.told()["exit_code"] == desk.told("--check")["exit_code"] == 0
    sound = desk.page.read_text()
    page = sound.replace("-->0.", "-->9.")
    harm(desk)
    desk.page.write_text(sound)
    assert desk.codes(*check) == [code], "though the page says what it said"
    desk.page.write_text(page)
    assert desk.codes(*check)[0] == code
    assert desk.page.read_text() == page
    assert desk.told(*check)["marks"][0]["given"] is None


def test_only_the_arms_that_pages_quote_are_asked_for(desk: Desk) -> None:
    """The control: another arm's evidence is no matter of this page."""
    desk.evidence("kind").unlink()
    assert desk.told()["exit_code"] == 0


def fingerprint(desk: Desk) -> str:
    return desk.line().fingerprint


def test_a_waiver_by_exact_fingerprint_lets_a_divergent_number_stand_and_is_told(desk: Desk) -> None:
    """S4: with its reason; another fingerprint, or another arm's, does not."""
    reconfigured(desk)
    exact = fingerprint(desk)
    assert exact in desk.publish().out, "the refusal says what a waiver would have to name"
    for arm, named in (("kind", exact), ("plain", "0" * 64)):
        desk.waivers.write_text(f'[[waiver]]\narm = "{arm}"\nfingerprint = "{named}"\nreason = "because"\n')
        assert desk.codes() == ["provenance-diverges"]
    assert "is stale" in desk.told()["warnings"][0]
    desk.waivers.write_text(
        f'[[waiver]]\narm = "plain"\nfingerprint = "{exact}"\nreason = "the weights are gone"\n'
    )
    told = desk.told()
    assert told["exit_code"] == 0
    assert told["waived"][0] | {"findings": 0} == {
        "arm": "plain",
        "fingerprint": exact,
        "reason": "the weights are gone",
        "findings": 0,
    }
    assert f"waived  plain  {exact}  the weights are gone" in desk.publish("--check").out


def test_a_waiver_covers_no_evidence_that_does_not_hold(desk: Desk) -> None:
    """S4."""
    exact = fingerprint(desk)
    desk.waivers.write_text(f'[[waiver]]\narm = "plain"\nfingerprint = "{exact}"\nreason = "because"\n')
    told = desk.told()
    assert (told["exit_code"], "is not used" in told["warnings"][0]) == (0, True)
    edited(desk)
    assert desk.codes() == ["evidence-contradicts"]
    desk.evidence().unlink()
    assert desk.codes() == ["evidence-missing"]


def test_a_waiver_is_spent_when_the_producer_changes(desk: Desk) -> None:
    """S4: it expires when the fingerprint does."""
    reconfigured(desk)
    desk.waivers.write_text(
        f'[[waiver]]\narm = "plain"\nfingerprint = "{fingerprint(desk)}"\nreason = "because"\n'
    )
    assert desk.told()["exit_code"] == 0
    desk.core("measure", "-q", "plain")
    shutil.copytree(desk.root / ".eval/reports", desk.root / "kept", dirs_exist_ok=True)
    desk.stand()
    desk.config.write_text(desk.config.read_text().replace("0.5", "0.6"))
    assert desk.codes() == ["provenance-diverges"]


def test_a_day_ends_a_waiver_where_one_is_given(desk: Desk) -> None:
    reconfigured(desk)
    waivers = Waivers(
        waiver=(Waiver(arm="plain", fingerprint=fingerprint(desk), reason="r", expires="2026-12-01"),)
    )
    for today, code in ((None, 0), (date(2026, 12, 1), 0), (date(2026, 12, 2), 1)):
        done = publish.publish(
            [desk.page],
            check=False,
            policy=desk.policy,
            config=desk.config,
            waivers=waivers,
            today=today,
        )
        assert done.exit_code == code
    assert "expired on 2026-12-01" in done.warnings[0]


@pytest.mark.parametrize("text", ["[[waiver]]\n", "x = [", '[[waver]]\narm = "plain"\n'])
def test_a_waivers_file_that_is_wrong_is_told(desk: Desk, text: str) -> None:
    desk.waivers.write_text(text)
    assert desk.publish().code == 2


def test_without_floors_no_measured_number_is_published(desk: Desk) -> None:
    """LADDER, corollary 1: one run is a dated measurement; what is quoted is what floors stand on."""
    shutil.rmtree(desk.policy)
    done = desk.publish()
    assert (done.code, "eval-gate floor --measure" in done.err) == (2, True)


def test_a_number_is_that_of_the_last_run_that_the_floors_cite(desk: Desk) -> None:
    """Later lines of the evidence, which no floor cites yet, are not quoted."""
    plain, kind = desk.line("plain"), desk.line("kind")
    assert plain.mean("recall@10") != kind.mean("recall@10")
    write_policy(desk.policy, {"plain": [kind, plain], "kind": [kind]})
    assert desk.told()["marks"][0]["given"] == f"{plain.mean('recall@10'):.3f}"
    write_policy(desk.policy, {"plain": [plain], "kind": [kind]})
    desk.evidence().write_bytes(
        dump([plain, kind.model_copy(update={"started": "2999-01-01T00:00:00.000Z"})])
    )
    assert desk.codes() == ["evidence-contradicts"]
    desk.evidence().write_bytes(dump([plain, kind]))
    assert desk.told()["marks"][0]["given"] == f"{plain.mean('recall@10'):.3f}"


def test_without_eval_toml_no_measured_number_is_published(desk: Desk) -> None:
    """S4: nothing would say how the numbers are produced now."""
    desk.config.unlink()
    assert desk.publish().code == 2


# --- all pages or none ---


def test_where_one_page_cannot_be_written_none_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [desk.root / f"{name}.md" for name in "abc"]
    for page in pages:
        page.write_text(NUMBER)
    written: list[str] = []

    def failing(path: Path) -> Any:
        written.append(path.name)
        if written[-1] == "c.md":
            raise CouldNot("cannot-write", "the disk is full")
        return atomic(path)

    monkeypatch.setattr(publish, "atomic", failing)
    assert desk.publish("a.md", "b.md", "c.md").code == 3
    assert written[:3] == ["a.md", "b.md", "c.md"]
    assert {page.read_text() for page in pages} == {NUMBER}


# --- another repository's values (S6) ---

OTHER = """
{"gold": {"n": 54, "category_accuracy": 94.40, "f1": 0.93, "label": "v3.2", "ok": true, "none": null,
 "runs": [{"mrr": 0.5}, {"mrr": 0.25}], "a.b": {"c d": 1e-3}, "big": 1e999, "bad": "a --> b", "text": "two\\nlines"}}
"""


@pytest.fixture
def other(desk: Desk) -> Path:
    path = desk.root / "metrics.json"
    path.write_text(OTHER)
    return path


def claim(key: str, value: str, form: str = "") -> str:
    return f"They claim <!-- metric from:{key}{form} -->{value}<!-- /metric -->.\n"


@pytest.mark.parametrize(
    ("key", "form", "value"),
    [
        ("gold.n", "", "54"),
        ("gold.category_accuracy", "", "94.40"),
        ("gold.category_accuracy", " .1f", "94.4"),
        ("gold.f1", " .0%", "93%"),
        ("gold.label", "", "v3.2"),
        ("gold.runs[1].mrr", "", "0.25"),
        ("gold.runs.0.mrr", "", "0.5"),
        ('gold."a.b"."c d"', "", "1e-3"),
        ('gold."a.b"."c d"', " .4f", "0.0010"),
    ],
)
def test_a_claim_is_held_against_the_file(desk: Desk, other: Path, key: str, form: str, value: str) -> None:
    """S6: as the file writes it, or in the mark's form; one digit more, and it is refused."""
    desk.page.write_text(claim(key, value, form))
    assert desk.told("--check", "--from", other)["exit_code"] == 0
    desk.page.write_text(claim(key, value + "1", form))
    assert desk.codes("--check", "--from", other) == ["publish-differs"]
    desk.told("--from", other)
    assert desk.page.read_text() == claim(key, value, form)


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [
        ("gold.acuracy", "key-unknown", "no 'acuracy' in gold"),
        ("gold.category_acuracy", "key-unknown", "did you mean 'category_accuracy'?"),
        ("golden.n", "key-unknown", "no 'golden' in the file; did you mean 'gold'?"),
        ("gold.runs[2].mrr", "key-unknown", "no '2' in gold.runs"),
        ("gold.runs.00.mrr", "key-unknown", "no '00' in gold.runs"),
        ("gold.n.deeper", "key-unknown", "no 'deeper' in gold.n"),
        ("gold", "value-unfit", "is a table"),
        ("gold.runs", "value-unfit", "is a list"),
        ("gold.ok", "value-unfit", "is true or false"),
        ("gold.none", "value-unfit", "is null"),
        ("gold.big", "value-unfit", "not a finite number"),
        ("gold.bad", "value-unfit", "no mark can hold"),
        ("gold.text", "value-unfit", "no mark can hold"),
        ("gold.label .1f", "value-unfit", "has no form"),
    ],
)
def test_a_claim_about_what_is_not_there_fails(
    desk: Desk, other: Path, key: str, code: str, words: str
) -> None:
    """S6: an unknown key fails, and so does what is no number."""
    desk.page.write_text(claim(key, "1"))
    told = desk.told("--check", "--from", other)
    assert [reason["code"] for reason in told["reasons"]] == [code]
    assert words in told["reasons"][0]["message"]


def test_no_claim_about_the_file_fails(desk: Desk, other: Path) -> None:
    """S6: zero markers, though the page has others."""
    desk.told()
    assert desk.told("--check")["exit_code"] == 0
    assert desk.codes("--check", "--from", other) == ["publish-vacuous"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "from-missing"),
        ("", "from-malformed"),
        ('{"a": 1, "a": 2}', "from-malformed"),
        ("[" * 100_000, "from-malformed"),
    ],
)
def test_a_file_that_cannot_be_read_fails(desk: Desk, other: Path, content: str | None, code: str) -> None:
    """S6: a missing input is a failure, not a skip."""
    other.unlink()
    if content is not None:
        other.write_text(content)
    desk.page.write_text(claim("gold.n", "54") * 2)
    assert desk.codes("--check", "--from", other) == [code]


def test_toml_is_asserted_as_well(desk: Desk) -> None:
    path = desk.root / "thresholds.toml"
    path.write_text("[baseline]\nfloor = 0.830\nn = 54\nbad = nan\n")
    desk.page.write_text(claim("baseline.floor", "0.830") + claim("baseline.n", "54"))
    assert desk.told("--check", "--from", path)["exit_code"] == 0
    desk.page.write_text(claim("baseline.bad", "nan"))
    assert desk.codes("--check", "--from", path) == ["value-unfit"]
    path.write_text("[baseline")
    assert desk.codes("--check", "--from", path) == ["from-malformed"]


def test_claims_need_neither_reports_nor_eval_toml(tmp_path: Path) -> None:
    """S6: in a repository that only speaks of another's numbers."""
    desk = Desk(tmp_path)
    (tmp_path / "metrics.json").write_text(OTHER)
    desk.page.write_text(claim("gold.n", "54"))
    assert desk.told("--check", "--from", "metrics.json")["exit_code"] == 0


def test_the_published_numbers_of_a_tier_3_repository(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """S6: as they stand in its own files; its sidecar is no statement of ours, and is refused as that."""
    folder = shared_data("classifier/evals")
    metrics, floors = folder / "metrics.json", folder / "thresholds.toml"
    desk = Desk(tmp_path)
    desk.page.write_text(
        claim("gold.category_accuracy", "94.4") + claim("gold.n", "54") + claim("version", "3.2.1")
    )
    assert desk.told("--check", "--from", metrics)["exit_code"] == 0
    desk.page.write_text(
        claim("gold.category_accuracy", "94.5") + claim("gold.n", "54") + claim("gold.recall", "1")
    )
    assert sorted(desk.codes("--check", "--from", metrics)) == ["key-unknown", "publish-differs"]
    desk.page.write_text(claim("baseline.category_accuracy", "83%", " .0%"))
    assert desk.told("--check", "--from", floors)["exit_code"] == 0
    with pytest.raises(Refused) as caught:
        provenance.read(folder / "gold_predictions_v3.provenance.json")
    assert caught.value.code == "provenance-malformed"


def test_our_own_committed_numbers_can_be_asserted_by_another(desk: Desk) -> None:
    """S6, without files of others: a report is a file of values too."""
    desk.page.write_text(
        claim("summary.overall.n", "55") + claim('summary.overall.metrics."recall@10"', "0.891", " .3f")
    )
    assert desk.told("--check", "--from", desk.report())["exit_code"] == 0


# --- hostile pages ---

PIECES = st.sampled_from(
    [
        "<!-- metric plain recall@10 -->",
        "<!-- metric plain n -->",
        "<!-- metric kind mrr .1% -->",
        "<!-- /metric -->",
        "<!-- metrics plain: n mrr -->",
        "<!-- /metrics -->",
        "<!-- metric from:gold.n -->",
        "<!--",
        "-->",
        "`",
        "```",
        "~~~",
        "\n",
        "\r\n",
        "\r",
        "\n```\n",
        "\n> ",
        " ",
        "\t",
        "0.891",
        "|",
        "é",
        "\u2028",
        "\x00",
        "metric ",
        "/metric",
        "<!-- metric plain recall@10 -->0.1<!-- /metric -->",
        "\n<!-- metrics kind: n -->\n<!-- /metrics -->\n",
    ]
)
PAGES = st.lists(PIECES | st.text(max_size=5), max_size=14).map("".join)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=PAGES)
def test_a_hostile_page_is_published_whole_or_not_at_all(base: Desk, text: str) -> None:
    """Never a traceback; what was written passes its own check; what is not between marks is never touched."""
    page, before = base.root / "hostile.md", text.encode("utf-8", "surrogatepass")
    page.write_bytes(before)
    other = base.root / "other.json"
    other.write_text(OTHER)

    def go(check: bool) -> Publication:
        return publish.publish(
            [page],
            check=check,
            policy=base.policy,
            config=base.config,
            waivers=Waivers(),
            other=other,
        )

    try:
        done = go(False)
    except Faults:
        assert page.read_bytes() == before
        return
    after = page.read_bytes().decode()
    if done.exit_code:
        assert after == text
        return
    assert go(True).exit_code == 0
    old, new = marks.find(page, text), marks.find(page, after)
    assert outside(old.text, old.marks) == outside(new.text, new.marks)


def outside(text: str, found: tuple[Mark, ...]) -> list[str]:
    """What stands between the marks."""
    ends = [0, *(mark.end for mark in found)]
    starts = [*(mark.start for mark in found), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


@given(rest=st.text(max_size=30), name=st.sampled_from(["metric", "metrics"]))
def test_any_words_in_a_mark_are_a_target_or_a_fault(rest: str, name: str) -> None:
    found = marks.parse(name, rest)
    assert isinstance(found, str) or (isinstance(found, Table) == (name == "metrics"))


@given(text=st.text(max_size=60), key=st.sampled_from(["a", "a.b", "a[0]", '"x y".z']))
def test_any_file_of_values_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, key: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "values.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    target = marks.parse("metric", f"from:{key}")
    assert isinstance(target, Asserted)
    try:
        figures.value(figures.read(path), target, path)
    except Refused as error:
        assert error.code in ("from-malformed", "key-unknown", "value-unfit")
