"""Reports: their models and checks, the two keys, provenance and waivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.reports import provenance, waivers
    from eval_core.reports.entries import Entry
    from eval_core.reports.keys import (
        SYSTEM_PARTS,
        TASK_PARTS,
        Key,
        differences,
        nested_differences,
        same_documents,
        task_differences,
        task_digests,
    )
    from eval_core.reports.models import Environment, Health, Judged, Latency, ReportRow, cutoffs_of
    from eval_core.reports.report import (
        Report,
        parse_report,
        read_report,
        report_bytes,
        summarise,
        write_report,
    )

__all__ = [
    "SYSTEM_PARTS",
    "TASK_PARTS",
    "Entry",
    "Environment",
    "Health",
    "Judged",
    "Key",
    "Latency",
    "Report",
    "ReportRow",
    "cutoffs_of",
    "differences",
    "nested_differences",
    "parse_report",
    "provenance",
    "read_report",
    "report_bytes",
    "same_documents",
    "summarise",
    "task_differences",
    "task_digests",
    "waivers",
    "write_report",
]

__getattr__ = lazily(
    __name__,
    entries="Entry",
    keys="SYSTEM_PARTS TASK_PARTS Key differences nested_differences same_documents task_differences task_digests",
    models="Environment Health Judged Latency ReportRow cutoffs_of",
    provenance="",
    report="Report parse_report read_report report_bytes summarise write_report",
    waivers="",
)
