"""A backend that fails outside of searching, and a run that ends before its time: what is left, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from core_support import RIGHT, Space, Told, told

from eval_core.errors import CouldNot, Misuse
from eval_core.reports.report import read_report


class Breaking(Told):
    """A backend that fails somewhere else than in searching."""

    def __init__(self, where: str, error: BaseException) -> None:
        super().__init__(RIGHT)
        self.where, self.error = where, error

    def __call__(self, **options: Any) -> Told:
        if self.where == "make":
            raise self.error
        return self

    def describe(self) -> Any:
        if self.where == "describe":
            raise self.error
        return {"x": b"bytes"} if self.where == "described" else {"pair": (1, 2)}

    def index(self, corpus: Any) -> None:
        if self.where == "index":
            raise self.error

    def close(self) -> None:
        if self.where == "close":
            raise self.error


@pytest.mark.parametrize(
    ("where", "told_"),
    [
        ("make", "backend 'told': cannot be made: ZeroDivisionError: oh"),
        ("index", "backend 'told': cannot index: ZeroDivisionError: oh"),
        ("describe", "backend 'told': describe() gives no table of JSON values: ZeroDivisionError: oh"),
        ("described", "backend 'told': describe() gives no table of JSON values: TypeError"),
    ],
)
def test_a_backend_that_fails_before_it_is_asked_cannot_be_measured(
    things: Space, where: str, told_: str
) -> None:
    """And what an earlier run left under the arm's name is gone, so that nothing stale is graded."""
    things.measure(told(), text="")
    assert (things.reports / "arm.json").exists()
    with pytest.raises(CouldNot) as caught:
        things.measure(Breaking(where, ZeroDivisionError("oh")))
    assert str(caught.value).startswith(told_)
    left = [name for name in things.left() if not name.startswith("history/")]
    assert left in ([], ["runs/arm.partial"])


@pytest.mark.parametrize(
    "error", [CouldNot("backend-failed", "service absent"), Misuse("option-invalid", "bad option")]
)
def test_an_index_error_that_explains_itself_is_passed_on(things: Space, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        things.measure(Breaking("index", error), text="")


def test_a_backend_that_fails_at_closing_has_been_measured(things: Space) -> None:
    report = things.measure(Breaking("close", ZeroDivisionError("oh")), text="")
    assert report.health.ok
    assert "the backend failed when it was closed: ZeroDivisionError: oh" in report.statements


def test_a_stale_report_is_gone_also_where_measuring_is_interrupted(things: Space) -> None:
    things.measure(told(), text="")
    with pytest.raises(KeyboardInterrupt):
        things.measure(told(q1=KeyboardInterrupt()))
    assert [name for name in things.left() if not name.startswith("history/")] == ["runs/arm.partial"]


@pytest.mark.parametrize("step", ["write_run", "write_lines", "write_report"])
def test_all_of_a_run_is_written_or_none(things: Space, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Interrupted while it is written, the partial run still holds every answer."""

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"eval_core.measuring.loop.{step}", stop)
        with pytest.raises(KeyboardInterrupt):
            things.measure(told(), text="")
    assert things.left() == ["runs/arm.partial"]
    backend = told()
    report = things.measure(backend, resume=True)
    assert (report.n, report.resumed, backend.asked) == (6, True, [])


def test_every_run_is_kept_under_its_own_id(things: Space) -> None:
    first, second = things.measure(told(), text=""), things.measure(told())
    assert first.run_id != second.run_id
    assert first.digests.rankings == second.digests.rankings
    assert first.digests.quality == second.digests.quality
    kept = {path.stem: read_report(path) for path in (things.history / "arm").glob("*.json")}
    assert kept == {first.run_id: first, second.run_id: second}


def test_where_nothing_can_be_written_it_is_told(things: Space) -> None:
    things.root.joinpath(".eval").write_text("a file")
    with pytest.raises(CouldNot) as caught:
        things.measure(told(), text="")
    assert caught.value.code == "cannot-write"
