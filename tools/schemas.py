"""Writes the JSON Schemas of every file that the tools read or write, from the models; `--check` only compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from eval_core.authoring import Inspection
from eval_core.authoring.derive.result import Drafted
from eval_core.authoring.questions.result import Added
from eval_core.compare import models as compare_models
from eval_core.config import EvalFile
from eval_core.contract import models as contract_models
from eval_core.explain import Explanation
from eval_core.imports import Imported
from eval_core.measuring import Measurement
from eval_core.policy import Budgets, Floors, Line
from eval_core.policy.figures import Figures
from eval_core.publish import Publication
from eval_core.reconstruct import Lock
from eval_core.reports import Report
from eval_core.reports.provenance.models import Statement
from eval_core.reports.waivers import Waivers
from eval_core.scoring.models import Score, ScoreTable
from eval_core.sets import Definition, Limits, Saturation
from eval_gate.demo import Demo
from eval_gate.floors import Proposal
from eval_gate.guard import GuardVerdict
from eval_gate.power import Power, Unchanged
from eval_gate.promotion import Promotion, PromotionRecord, Rules
from eval_gate.selftest import SelfTest
from eval_gate.verdict import Verdict
from eval_tier.evidence.settings import Snapshot
from eval_tier.fleet import Fleet
from longmemeval_convert.models import Conversion

FOLDER = Path(__file__).resolve().parent.parent / "schemas"

MODELS: dict[str, type[BaseModel]] = {
    "dataset": Definition,
    "eval": EvalFile,
    "lock-v1": Lock,
    "drafted-v1": Drafted,
    "added-v1": Added,
    "imported-v1": Imported,
    "limits-v1": Limits,
    "saturation-v1": Saturation,
    "inspection-v1": Inspection,
    "measurement-v1": Measurement,
    "report-v1": Report,
    "figures-v1": Figures,
    "provenance-v1": Statement,
    "publish-v1": Publication,
    "waivers-v1": Waivers,
    "score-v1": Score,
    "scores-v1": ScoreTable,
    "comparison-v1": compare_models.Comparison,
    "retrieval-comparison-v1": contract_models.Comparison,
    "explanation-v1": Explanation,
    "evidence-v1": Line,
    "floors-v2": Floors,
    "budgets-v2": Budgets,
    "floor-proposal-v2": Proposal,
    "verdict-v2": Verdict,
    "guard-v1": GuardVerdict,
    "power-v1": Power,
    "aa-v1": Unchanged,
    "self-test-v2": SelfTest,
    "demo-v1": Demo,
    "promotion-v1": Promotion,
    "promotion-record-v1": PromotionRecord,
    "promotion-rules-v1": Rules,
    "conversion-v1": Conversion,
    "fleet-v1": Fleet,
    "snapshot-v1": Snapshot,
}


def generate(model: type[BaseModel]) -> str:
    """The schema's file: JSON Schema 2020-12, keys as pydantic orders them; with derived fields as printed."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(
            by_alias=True, mode="serialization" if model in (Verdict, Promotion) else "validation"
        ),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` say which differ; 1 where any does."""
    wanted = {FOLDER / f"{name}.schema.json": generate(model) for name, model in MODELS.items()}
    strangers = sorted(set(FOLDER.glob("*.schema.json")) - set(wanted))
    if "--check" not in arguments:
        FOLDER.mkdir(exist_ok=True)
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        for path in strangers:
            path.unlink()
        print(f"{len(wanted)} schemas written")
        return 0
    stale = [
        path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in [*stale, *strangers]:
        print(
            f"schemas/{path.name} is not what the models give; run  nox -s schemas -- --write",
            file=sys.stderr,
        )
    if not stale and not strangers:
        print(f"{len(wanted)} schemas are what the models give")
    return 1 if stale or strangers else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
