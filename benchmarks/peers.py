"""`python -m benchmarks.peers NAME whole|inner RUN QRELS`: one contender, used as its own documentation shows.

`whole` reads the files, scores, and prints the mean of each measure. `inner` reads the files, then times the call
that scores what was read, and prints the times beside the means. Each is given what suits it: its own reader, the
judgements prepared beforehand where it lets them be, and no work that the numbers do not need. A run whose name
ends in `.jsonl` has no reader anywhere else: it is read with `json` into the dictionary that each of them takes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What is computed, under our names and in this order.
MEASURES = ("recall@5", "recall@10", "mrr", "ndcg@10", "map")
#: Our name among the contenders.
OURS = "eval-core"
#: Calls of the inner measurement, and the seconds after which no other is begun.
CALLS = 7
ENOUGH = 20.0

Means = dict[str, float]
Call = Callable[[], Means]


def pytrec(run: Path, qrels: Path, whole: bool) -> Call:
    """pytrec_eval: its parsers, one evaluator, numpy's mean as its own aggregation takes it."""
    import pytrec_eval

    with qrels.open() as lines:
        judged = pytrec_eval.parse_qrel(lines)
    ranked = _from_json(run)
    if ranked is None:
        with run.open() as lines:
            ranked = pytrec_eval.parse_run(lines)
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"recall.5,10", "recip_rank", "ndcg_cut.10", "map"})
    theirs = dict(zip(MEASURES, ("recall_5", "recall_10", "recip_rank", "ndcg_cut_10", "map"), strict=True))

    def call() -> Means:
        rows = evaluator.evaluate(ranked).values()
        return {
            ours: pytrec_eval.compute_aggregated_measure(name, [row[name] for row in rows])
            for ours, name in theirs.items()
        }

    return call


def ir_measures(run: Path, qrels: Path, whole: bool) -> Call:
    """ir_measures: streamed from its readers in the whole process, else dictionaries and one evaluator."""
    import ir_measures as irm

    wanted = [irm.R @ 5, irm.R @ 10, irm.RR, irm.nDCG @ 10, irm.AP]

    def named(values: dict[Any, float]) -> Means:
        return {ours: values[measure] for ours, measure in zip(MEASURES, wanted, strict=True)}

    ranked: Any = _from_json(run)
    if whole:
        ranked = irm.read_trec_run(str(run)) if ranked is None else ranked
        return lambda: named(irm.calc_aggregate(wanted, irm.read_trec_qrels(str(qrels)), ranked))
    if ranked is None:
        ranked = irm.util.RunConverter(irm.read_trec_run(str(run))).as_dict_of_dict()
    judged = irm.util.QrelsConverter(irm.read_trec_qrels(str(qrels))).as_dict_of_dict()
    evaluator = irm.evaluator(wanted, judged)
    return lambda: named(evaluator.calc_aggregate(ranked))


def ranx(run: Path, qrels: Path, whole: bool) -> Call:
    """ranx with its own Qrels and Run."""
    import ranx as package

    judged = package.Qrels.from_file(str(qrels), kind="trec")
    read = _from_json(run)
    ranked = package.Run.from_file(str(run), kind="trec") if read is None else package.Run.from_dict(read)
    return lambda: _floats(
        package.evaluate(judged, ranked, list(MEASURES), save_results_in_run=False),
    )


def ranx_dicts(run: Path, qrels: Path, whole: bool) -> Call:
    """ranx with plain dictionaries, which it accepts and pairs by position: here both are in one order."""
    from ranx import evaluate
    from ranx.utils import qrels_file_to_dict, run_file_to_dict

    judged = qrels_file_to_dict(str(qrels))
    read = _from_json(run)
    ranked = run_file_to_dict(str(run)) if read is None else read
    return lambda: _floats(evaluate(judged, ranked, list(MEASURES)))


def ours(run: Path, qrels: Path, whole: bool) -> Call:
    """Our call, on the same dictionaries that pytrec_eval takes. The whole process is the script, not this."""
    from eval_core.scoring import evaluate
    from eval_core.scoring.metrics import parse
    from eval_core.scoring.readers import read_qrels

    measures = tuple(map(parse, MEASURES))
    judged = read_qrels(qrels)
    ranked: dict[str, dict[str, float]] = {}
    with run.open() as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            ranked.setdefault(query, {})[document] = float(score)

    def call() -> Means:
        scores = evaluate(ranked, judged, measures)
        return {str(measure): scores.mean(measure) for measure in measures}

    return call


CONTENDERS: dict[str, Callable[[Path, Path, bool], Call]] = {
    OURS: ours,
    "pytrec_eval": pytrec,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "ranx-dicts": ranx_dicts,
}


def _from_json(run: Path) -> dict[str, dict[str, float]] | None:
    """The rankings of a JSON-lines file, with scores that fall by rank; None for a file of another format."""
    if run.suffix != ".jsonl":
        return None
    ranked = {}
    with run.open("rb") as lines:
        for line in lines:
            row = json.loads(line)
            ids = row["ids"]
            ranked[row["id"]] = dict(zip(ids, map(float, range(len(ids), 0, -1)), strict=True))
    return ranked


def _floats(values: dict[str, Any]) -> Means:
    return {name: float(value) for name, value in values.items()}


def main(name: str, part: str, run: str, qrels: str) -> int:
    """Print one JSON object: `means`, and for `inner` the medians `wall` and `cpu` of a call in seconds."""
    call = CONTENDERS[name](Path(run), Path(qrels), part == "whole")
    if part == "whole":
        print(json.dumps({"means": call()}))
        return 0
    # Once before, for what is compiled or filled at the first call.
    means = call()
    walls: list[float] = []
    cpus: list[float] = []
    while len(walls) < CALLS and sum(walls) < ENOUGH:
        wall, cpu = time.perf_counter(), time.process_time()
        means = call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    print(json.dumps({"means": means, "wall": statistics.median(walls), "cpu": statistics.median(cpus)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
