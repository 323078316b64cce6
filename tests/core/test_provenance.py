"""The provenance sidecar (SYSTEMS S4): it binds a report's bytes to what produced them, and no edit of it passes."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from core_support import Space, told
from published_support import Desk, measured
from report_support import Path_, at, leaves, put

from eval_core.errors import EvalError, Misuse, Refused
from eval_core.reports import provenance
from eval_core.reports.provenance.configuration import (
    DEFAULTS,
    Configured,
    Run,
    against_config,
    configuration,
)
from eval_core.reports.provenance.models import Statement
from eval_core.reports.report import Report, dump, parse_report, write_report
from eval_core.sets.definition import Definition


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """The memory set, measured."""
    return measured(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(base: Desk, tmp_path: Path) -> Desk:
    """A copy of it."""
    shutil.copytree(base.root, tmp_path / "desk")
    return Desk(tmp_path / "desk")


@pytest.fixture
def report(desk: Desk) -> Report:
    return desk.read()[0]


def found(desk: Desk, arm: str = "plain") -> list[provenance.Finding]:
    """What is found of an arm's sidecar."""
    report, raw = desk.read(arm)
    return provenance.check(report, raw, desk.sidecar(arm))


def codes(desk: Desk, arm: str = "plain") -> list[str]:
    return [finding.code for finding in found(desk, arm)]


def test_measuring_writes_an_in_toto_statement_of_the_reports_bytes(base: Desk) -> None:
    """S4: the statement as in-toto's specification has it, with digests taken here by other means."""
    folder = base.root / ".eval" / "reports"
    raw, sidecar = (folder / "kind.json").read_bytes(), (folder / "kind.intoto.jsonl").read_bytes()
    statement, report = json.loads(sidecar), json.loads(raw)
    assert sorted(statement) == ["_type", "predicate", "predicateType", "subject"]
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:ladder:retrieval-measurement:v1"
    assert statement["subject"] == [
        {"name": "kind.json", "digest": {"sha256": hashlib.sha256(raw).hexdigest()}}
    ]
    predicate = statement["predicate"]
    assert predicate["run_id"] == report["run_id"]
    assert predicate["digests"] == {name: report["digests"][name] for name in ("rankings", "quality")}
    producer = predicate["producer"]
    assert producer["tool"] == {"name": "eval-core", "version": report["environment"]["version"]}
    assert producer["system"]["options"] == {"k1": 1.2}, "as written in eval.toml"
    assert producer["system"]["implementation"]["library"].startswith("rank-bm25 ")
    assert {"corpus", "query_ids", "judgements", "limit", "filter", "metrics"} <= producer["task"].keys()
    canonical = json.dumps(producer, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert predicate["fingerprint"] == hashlib.sha256(canonical).hexdigest()
    whole = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert sidecar == whole + b"\n", "canonical JSON, in one line"
    jsonschema.validate(statement, Statement.model_json_schema(by_alias=True))


def test_the_fingerprint_is_of_the_producer_and_of_no_run_of_it(desk: Desk) -> None:
    """S4: measuring again gives the same one; another option, set or version gives another."""
    first = desk.read()[0]
    desk.core("measure", "-q", "plain")
    path = desk.root / ".eval" / "reports" / "plain.json"
    again = parse_report(path.read_bytes(), path)
    assert again.run_id != first.run_id
    assert provenance.fingerprint_of(again) == provenance.fingerprint_of(first)
    assert provenance.read(provenance.sidecar(path)).fingerprint == provenance.fingerprint_of(first)
    for before, now in (
        ('backend = "bm25"\n\n', 'backend = "bm25"\noptions.b = 0.7\n\n'),
        ('backend = "bm25"\n\n', 'backend = "bm25"\nlimit = 11\n\n'),
    ):
        text = desk.config.read_text()
        desk.config.write_text(text.replace(before, now))
        desk.core("measure", "-q", "plain")
        desk.config.write_text(text)
        assert provenance.fingerprint_of(parse_report(path.read_bytes(), path)) != provenance.fingerprint_of(
            first
        )
    newer = first.model_copy(update={"environment": first.environment.model_copy(update={"version": "9"})})
    assert provenance.fingerprint_of(newer) != provenance.fingerprint_of(first)


def test_one_more_cutoff_is_no_other_producer(desk: Desk, report: Report) -> None:
    """It changes no number that there was; that eval.toml says another is told all the same."""
    desk.config.write_text(desk.config.read_text().replace('bm25"\n\n', 'bm25"\ncutoffs = [1, 3, 5, 10]\n\n'))
    desk.core("measure", "-q", "plain")
    path = desk.root / ".eval" / "reports" / "plain.json"
    assert provenance.fingerprint_of(parse_report(path.read_bytes(), path)) == provenance.fingerprint_of(
        report
    )
    assert "cutoffs [1, 5, 10] → [1, 3, 5, 10]" in configuration(desk.config).against(report)[0].message


def test_a_sidecar_that_measuring_wrote_fits(desk: Desk) -> None:
    """S4: the control of every refusal below."""
    assert found(desk) == found(desk, "kind") == []


def test_a_committed_copy_gets_its_own(desk: Desk, report: Report) -> None:
    """S4: a copy is read elsewhere, without measuring: stripped, with a sidecar of the stripped bytes."""
    write_report(desk.report(), report.stripped())
    assert codes(desk) == ["provenance-subject-differs"], "the one of the unstripped report is of other bytes"
    assert provenance.write(desk.report(), report.stripped()) == desk.sidecar()
    assert found(desk) == []


def test_another_spelling_of_the_same_statement_fits(desk: Desk) -> None:
    desk.alter(desk.sidecar(), lambda value: None)
    assert desk.sidecar().read_bytes().startswith(b'{"_type": '), "it is not in canonical form any more"
    assert found(desk) == []


def other(value: Any, path: Path_) -> Any:
    """Another value of the same kind, so that only its meaning is wrong."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value is None:
        return "something"
    if len(value) == 64:
        return ("0" if value[0] != "0" else "1") + value[1:]
    return f"{value}x"


def test_no_single_edit_of_a_sidecar_passes(desk: Desk) -> None:
    """S4: every leaf of the statement changed, removed, or of another kind: refused, and never by a traceback."""
    sound = json.loads(desk.sidecar("kind").read_bytes())
    paths = list(leaves(sound))
    assert len(paths) > 35
    for path in paths:
        value = at(sound, path)
        for new in (
            other(value, path),
            [value],
            {"": value},
            str(value) if not isinstance(value, str) else 7,
        ):
            desk.sidecar("kind").write_text(json.dumps(put(sound, path, new)))
            assert codes(desk, "kind"), (path, new)
        gone = copy.deepcopy(sound)
        del at(gone, path[:-1])[path[-1]]
        desk.sidecar("kind").write_text(json.dumps(gone))
        assert codes(desk, "kind"), path


def tables(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from tables(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from tables(inner, (*path, place))


def test_nothing_can_be_added_to_a_sidecar(desk: Desk) -> None:
    """S4: what is not recomputed could be claimed."""
    sound = json.loads(desk.sidecar().read_bytes())
    for path in tables(sound):
        more = copy.deepcopy(sound)
        at(more, path)["approved"] = True
        desk.sidecar().write_text(json.dumps(more))
        assert codes(desk), path
    second = copy.deepcopy(sound)
    second["subject"].append(second["subject"][0])
    desk.sidecar().write_text(json.dumps(second))
    assert codes(desk) == ["provenance-malformed"]


@pytest.mark.parametrize(
    ("path", "new", "code", "words"),
    [
        (("subject", 0, "name"), "kind.json", "provenance-subject-differs", "is about 'kind.json'"),
        (("subject", 0, "digest", "sha256"), "0" * 64, "provenance-subject-differs", "other bytes"),
        (
            ("predicate", "producer", "system", "backend"),
            "dense",
            "provenance-diverges",
            "system.backend 'dense' → 'bm25'",
        ),
        (
            ("predicate", "producer", "task", "limit"),
            20,
            "provenance-diverges",
            "producer.task.limit 20 → 10",
        ),
        (
            ("predicate", "producer", "task", "limit"),
            10.0,
            "provenance-diverges",
            "producer.task.limit 10.0 → 10",
        ),
        (("predicate", "producer", "system", "expand"), 0, "provenance-diverges", "expand 0 → False"),
        (("predicate", "fingerprint"), "0" * 64, "provenance-diverges", "fingerprint '0000"),
        (("predicate", "run_id"), "r", "provenance-diverges", "run_id 'r' → "),
        (("predicate", "environment", "dirty"), True, "provenance-diverges", "environment.dirty True → None"),
        (("predicateType",), "urn:ladder:other:v1", "provenance-malformed", "predicateType"),
        (("predicate", "fingerprint"), "F" * 64, "provenance-malformed", "fingerprint"),
    ],
)
def test_each_divergence_has_its_code_and_is_named(
    desk: Desk, path: Path_, new: Any, code: str, words: str
) -> None:
    """S4."""
    desk.alter(desk.sidecar(), lambda value: at(value, path[:-1]).__setitem__(path[-1], new))
    [finding] = found(desk)
    assert finding.code == code
    assert words in finding.message


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "provenance-missing"),
        (b"", "provenance-malformed"),
        (b"{}", "provenance-malformed"),
        (b"[" * 100_000, "provenance-malformed"),
        (b"\xff\xfe", "provenance-malformed"),
        (b'{"_type": NaN}', "provenance-malformed"),
        (b'{"_type": "\\ud800"}', "provenance-malformed"),
        (b"9" * 10_000, "provenance-malformed"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_sidecar_is_told_as_that(desk: Desk, content: bytes | None, code: str) -> None:
    """S4: a missing input is a failure; a broken one never a traceback."""
    desk.sidecar().unlink()
    if content is not None:
        desk.sidecar().write_bytes(content)
    assert codes(desk) == [code]
    with pytest.raises(Refused) as caught:
        provenance.read(desk.sidecar())
    assert caught.value.code == code


def test_a_pipe_and_a_folder_are_no_sidecar(desk: Desk) -> None:
    desk.sidecar().unlink()
    os.mkfifo(desk.sidecar())
    assert codes(desk) == ["provenance-missing"], "and it was not waited for"
    desk.sidecar().unlink()
    desk.sidecar().mkdir()
    assert codes(desk) == ["provenance-missing"]


def test_a_key_given_twice_is_refused(desk: Desk) -> None:
    """Parsers differ in which of the two they believe."""
    text = desk.sidecar().read_text()
    desk.sidecar().write_text(text.replace('"arm":', '"arm":"other","arm":'))
    assert codes(desk) == ["provenance-malformed"]


def test_the_sidecar_of_another_arm_or_run_is_refused(desk: Desk) -> None:
    """S4."""
    shutil.copy(desk.sidecar("kind"), desk.sidecar("plain"))
    assert codes(desk) == ["provenance-subject-differs"]
    desk.core("measure", "-q", "plain")
    shutil.copy(desk.root / ".eval/reports/plain.intoto.jsonl", desk.sidecar())
    assert codes(desk) == ["provenance-subject-differs"]


def test_no_single_edit_of_the_report_passes_its_sidecar(desk: Desk) -> None:
    """S4: an altered report does not load, or its bytes are others than the sidecar's."""
    raw = desk.report().read_bytes()
    value = json.loads(raw)
    value["rows"] = value["rows"][:1]
    for path in list(leaves(value)):
        altered = json.dumps(put(json.loads(raw), path, other(at(value, path), path))).encode()
        try:
            report = parse_report(altered, desk.report())
        except Refused:
            continue
        finding, *_ = provenance.check(report, altered, desk.sidecar())
        assert finding.code == "provenance-subject-differs" or path == ("arm",), path
    report, _ = desk.read()
    assert provenance.check(report, raw + b"\n", desk.sidecar())[0].code == "provenance-subject-differs"


def test_a_waiver_can_cover_a_known_producer_and_nothing_else(desk: Desk) -> None:
    """S4: a sidecar that contradicts itself, or speaks of another run, has no fingerprint to be waived by."""
    sound = json.loads(desk.sidecar().read_bytes())
    fitting = copy.deepcopy(sound)
    fitting["predicate"]["producer"]["system"]["options"] = {"k1": 2}
    desk.sidecar().write_text(json.dumps(fitting))
    assert found(desk)[0].fingerprint is None, "its fingerprint is of another producer"
    assert provenance.read(desk.sidecar()).fingerprint is None
    canonical = json.dumps(
        fitting["predicate"]["producer"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    fingerprint = hashlib.sha256(canonical.encode()).hexdigest()
    fitting["predicate"]["fingerprint"] = fingerprint
    desk.sidecar().write_text(json.dumps(fitting))
    assert found(desk)[0].fingerprint == fingerprint
    fitting["predicate"]["run_id"] = "another"
    desk.sidecar().write_text(json.dumps(fitting))
    assert found(desk)[0].fingerprint is None


# --- against eval.toml ---


def arm(**changes: Any) -> dict[str, Any]:
    return {"dataset": "memory", "backend": "bm25", **changes}


@pytest.mark.parametrize(
    ("table", "definition", "words"),
    [
        (arm(backend="dense"), None, "backend 'bm25' → 'dense'"),
        (arm(options={"k1": 1.2}), None, "options.k1 – → 1.2"),
        (arm(options={"nested": {"a": 1}}), None, "options.nested – → {'a': 1}"),
        (arm(expand=True), None, "expand False → True"),
        (arm(expand=0), None, "expand False → 0"),
        (arm(limit=20), None, "limit 10 → 20"),
        (arm(cutoffs=[1, 10]), None, "cutoffs [1, 5, 10] → [1, 10]"),
        (arm(filter_from=["kind"]), None, "filter_from [] → ['kind']"),
        (arm(filter_from=3), None, "filter_from [] → 3"),
        (arm(split="dev"), None, "split 'test' → 'dev'"),
        (arm(select={"category": ["pair"]}), None, "select.category 'indirect' → ['pair']"),
        (arm(), {"limit": 50}, "limit 10 → 50"),
        (arm(), {"cutoffs": [10]}, "cutoffs [1, 5, 10] → [10]"),
        (arm(), {"name": "other"}, "dataset 'memory' → 'other'"),
        ({}, None, "backend 'bm25' → –"),
    ],
)
def test_what_eval_toml_says_otherwise_now_is_named(
    report: Report, table: dict[str, Any], definition: dict[str, Any] | None, words: str
) -> None:
    """S4: numbers of another configuration are divergent, each option before → now, and a waiver may cover them."""
    [finding] = against_config(Run.of(report), table, definition)
    assert finding.code == "provenance-diverges"
    assert words in finding.message
    assert finding.fingerprint == provenance.fingerprint_of(report)


@pytest.mark.parametrize(
    ("table", "definition"),
    [
        (arm(), None),
        (arm(), {}),
        (arm(repetitions=9, lane="owner"), {"name": "memory"}),
        (
            arm(limit=10, cutoffs=[1, 5, 10], split="test", expand=False, options={}, filter_from=[]),
            {"limit": 99, "cutoffs": [9]},
        ),
        (arm(select={"category": ["pair", "direct", "indirect", "paraphrase"]}), None),
    ],
)
def test_what_says_the_same_is_no_divergence(
    report: Report, table: dict[str, Any], definition: dict[str, Any] | None
) -> None:
    """S4: the control: defaults written out, and what changes no number."""
    assert against_config(Run.of(report), table, definition) == []


def test_the_order_of_filter_keys_means_nothing(desk: Desk) -> None:
    report, _ = desk.read("kind")
    table = {"backend": "bm25", "options": {"k1": 1.2}, "filter_from": ["kind", "kind"]}
    assert against_config(Run.of(report), table) == []
    assert against_config(Run.of(report), {**table, "options": {"k1": 1.20000001}})


def test_the_defaults_are_those_of_a_set() -> None:
    fields = Definition.model_fields
    assert DEFAULTS["limit"] == fields["limit"].default
    assert DEFAULTS["cutoffs"] == list(fields["cutoffs"].default)
    assert len(DEFAULTS) == 2


def test_an_arm_is_held_against_eval_toml_and_its_set(desk: Desk, report: Report) -> None:
    """S4."""
    assert configuration(desk.config).against(report) == []
    definition = desk.root / "memory" / "dataset.toml"
    text = definition.read_text()
    definition.write_text("limit = 20\n" + text.replace("limit = 10\n", ""))
    assert "limit 10 → 20" in configuration(desk.config).against(report)[0].message
    desk.config.write_text(desk.config.read_text().replace('arms."plain"', 'arms."plainer"'))
    assert "has no arm 'plain'" in configuration(desk.config).against(report)[0].message


def test_code_that_an_option_names_must_be_the_code_that_answered(space: Space) -> None:
    """S4: an adapter that was changed since is another producer, though eval.toml says what it said."""
    space.set({"d1": "a"}, {"q1": "a"}, [("q1", "d1", 1)])
    adapter = space.root / "adapter.py"
    adapter.write_text(
        "import json, sys\nfor line in sys.stdin:\n    print(json.dumps({'ids': ['d1']}), flush=True)\n"
    )
    space.arm('options.command = ["{python}", "-S", "-E", "adapter.py"]', backend="jsonl")
    assert space.core("measure", "-q").code == 0
    path = space.reports / "arm.json"
    report = parse_report(path.read_bytes(), path)
    assert configuration(space.config).against(report) == []
    adapter.write_text(adapter.read_text() + "# better\n")
    [finding] = configuration(space.config).against(report)
    assert (finding.code, 'file "adapter.py"' in finding.message) == ("provenance-diverges", True)
    adapter.unlink()
    assert "→ –" in configuration(space.config).against(report)[0].message


@pytest.mark.parametrize("text", ["", "arms = 3", "x = [", '[arms."plain"', "a" * 10 + " = " + "[" * 5000])
def test_an_eval_toml_that_is_none_is_misuse(desk: Desk, text: str) -> None:
    desk.config.write_text(text)
    with pytest.raises(Misuse):
        configuration(desk.config)
    desk.config.unlink()
    with pytest.raises(Misuse):
        configuration(desk.config)


@pytest.mark.parametrize("value", [3, [], {"dataset": 3}, {"dataset": "\0"}, {"options": 4, "select": 3}])
def test_an_arm_that_is_none_diverges(report: Report, value: Any, tmp_path: Path) -> None:
    assert Configured(tmp_path / "eval.toml", {"plain": value}).against(report)


# --- measuring writes it, all or none ---


def test_it_goes_with_its_report(desk: Desk) -> None:
    """S4: what an earlier run left is gone before the next begins, and the sidecar with it."""
    reports = desk.root / ".eval" / "reports"
    assert sorted(path.name for path in reports.iterdir()) == [
        "kind.intoto.jsonl",
        "kind.json",
        "plain.intoto.jsonl",
        "plain.json",
    ]
    desk.config.write_text(desk.config.read_text().replace('backend = "bm25"\n\n', 'backend = "absent"\n\n'))
    assert desk.core("measure", "-q", "plain").code == 2
    assert sorted(path.name for path in reports.iterdir()) == ["kind.intoto.jsonl", "kind.json"]


def test_without_a_sidecar_there_is_no_report(things: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: a disk that is full at the very end leaves neither."""

    def full(path: Path) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(provenance, "atomic", full)
        things.measure(told(), text="")
    assert things.left() == ["runs/arm.partial"]
    assert things.measure().health.ok
    assert "reports/arm.intoto.jsonl" in things.left()


def test_every_outcome_has_a_sidecar_that_fits(sound: Report, tmp_path: Path) -> None:
    """Of a report with errored and unscorable rows as well."""
    path = tmp_path / "arm.json"
    write_report(path, sound)
    provenance.write(path, sound)
    raw = path.read_bytes()
    assert raw == dump(sound)
    assert provenance.check(parse_report(raw, path), raw, provenance.sidecar(path)) == []


def test_a_report_that_is_not_there_has_none(sound: Report, tmp_path: Path) -> None:
    with pytest.raises(EvalError) as caught:
        provenance.write(tmp_path / "arm.json", sound)
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []
