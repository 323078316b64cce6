"""What a person or a program sees of placements: a table, an explanation, Markdown, JSON, a badge."""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from eval_core.console import as_json, clip, count, paint, safe, table
from eval_tier.models import Finding, Placement

SCHEMA = "audit-v1"
_PLACEMENT, _FINDING = ([field.name for field in fields(model)] for model in (Placement, Finding))

_WORDS = {
    "proven": "proven",
    "refuted": "refuted",
    "unknown": "unknown",
    "not-applicable": "n/a",
    "error": "error",
}
_COLOURS = {"proven": "green", "refuted": "red", "unknown": "yellow", "error": "red"}


def tier_of(placement: Placement) -> list[str]:
    """The tier in words, a line for the mechanism and one for the effect where they differ."""
    if placement.state == "not-applicable":
        return ["n/a"]
    if placement.state != "placed":
        return ["?"]
    if placement.mechanism != placement.effect:
        return [f"{placement.mechanism}  mechanism", f"{placement.effect}  effect"]
    word = "final" if placement.final else "proven" if placement.effect else ""
    return [f"{placement.effect}  {word}".rstrip()]


def missing(placement: Placement) -> str:
    """What is not gated, or not known, shortly."""
    if placement.state == "not-applicable":
        return f"{placement.reason} (declared)"
    if placement.state != "placed":
        return placement.reason
    if placement.below:
        return f"declared tier {placement.declared}; {_blocker(placement)}"
    if placement.final:
        return "; ".join(placement.ungated)
    return _blocker(placement) or "; ".join(placement.ungated)


def _blocker(placement: Placement) -> str:
    block = placement.blocking()
    if not block:
        return ""
    worst = min(block, key=lambda f: ("refuted", "error", "unknown").index(f.outcome))
    return worst.what


def next_step(placement: Placement) -> str:
    """The one thing to do."""
    if placement.state == "not-applicable":
        return "–"
    if placement.mend:
        return placement.mend
    if placement.final and not placement.below:
        return "– (declared final)"
    if placement.state == "undetermined":
        return "declare its commands, or not_applicable, in policy/fleet.toml (docs/audit.md)"
    block = placement.blocking()
    if not block:
        return "–"
    worst = min(block, key=lambda f: ("refuted", "error", "unknown").index(f.outcome))
    return worst.mend or f"eval-tier why {placement.name}"


def as_table(placements: Sequence[Placement], now: datetime, bar: str, words: Mapping[str, str] = {}) -> str:
    """The fleet as an aligned table, one repository a row, and a line on all of them; `words`: what names each."""
    width = 60 if sys.stdout.isatty() else 160
    rows = [("repository", "commit", "tier", "not gated", "next step")]
    for placement in placements:
        tiers = tier_of(placement)
        commit = (placement.commit or "")[:7]
        row = (
            clip(placement.name, 30),
            commit,
            tiers[0],
            clip(missing(placement), width),
            clip(next_step(placement), width),
        )
        rows.append(row)
        rows += [("", "", more, "", "") for more in tiers[1:]]
    return "\n".join([table(rows), *faults(placements), _foot(placements, now, bar, words)])


def faults(placements: Sequence[Placement]) -> list[str]:
    """What of the repositories could not be read, and what broke."""
    lines = []
    for placement in placements:
        for fault in placement.faults[:5]:
            lines.append(f"{paint('error', 'red')}  {clip(placement.name, 30)}: {clip(fault, 200)}")
        if len(placement.faults) > 5:
            lines.append(
                f"       {clip(placement.name, 30)}: {len(placement.faults) - 5} more; --format json has all"
            )
        lines += [
            f"{paint('error', 'red')}  {clip(placement.name, 30)}: {finding.rule}: {clip(finding.what, 200)}"
            for finding in placement.findings
            if finding.outcome == "error"
        ]
    return lines


def _foot(placements: Sequence[Placement], now: datetime, bar: str, words: Mapping[str, str]) -> str:
    parts = [f"read {now:%Y-%m-%d}", count(len(placements), "repository", "repositories")]
    if bar:
        parts.append(bar)
    seen = sorted(p.observed for p in placements if p.observed is not None)
    if seen:
        parts.append(
            f"settings observed {seen[0]:%Y-%m-%d}"
            + ("" if seen[0].date() == seen[-1].date() else f" to {seen[-1]:%Y-%m-%d}")
        )
    own = [p.name for p in placements if any(f.basis == "self-attested" for f in p.findings)]
    if own:
        parts.append(f"settings of {safe(own[0])}{' and others' if own[1:] else ''} are self-attested")
    first = next((p for p in placements if p.state == "placed" and not p.final and p.blocking()), None)
    if first is not None:
        parts.append(f"why: eval-tier why {safe(words.get(first.name, first.name))}")
    return " · ".join(parts)


def explained(placement: Placement) -> str:
    """Why a repository sits where it does, and what lifts it: the findings of the next tier, and one step."""
    name = safe(placement.name)
    if placement.state != "placed":
        head = {
            "not-applicable": "has no evaluation, by declaration",
            "unread": "could not be read",
        }.get(placement.state, "cannot be placed")
        return f"{name} {head}: {safe(placement.reason)}\nNext: {next_step(placement)}"
    block = placement.blocking()
    at = f"tier {placement.effect}"
    if placement.mechanism != placement.effect:
        at += f" in effect, {placement.mechanism} by mechanism"
    if not block:
        head = f"{name} is at {at}; every rule holds."
    else:
        facts = len({finding.mend or finding.what for finding in block})
        away = "one fact" if facts == 1 else f"{facts} facts"
        head = f"{name} is at {at}; tier {block[0].tier} is {away} away."
    rows = []
    for finding in placement.findings:
        if (block and finding.tier != block[0].tier) or finding.outcome == "not-applicable":
            continue
        rows.append((_word(finding), finding.rule, clip(finding.what, 110), where(finding)))
    lines = [head, table(rows)]
    steps = list(dict.fromkeys(finding.mend for finding in block if finding.mend))
    for place, step in enumerate(steps):
        lines.append(f"{'Next:' if not place else '     '} {safe(step)}")
    return "\n".join(lines)


def _word(finding: Finding) -> str:
    word = _WORDS[finding.outcome]
    if finding.outcome == "proven" and finding.basis in ("declared", "self-attested"):
        word = finding.basis
    return paint(word, _COLOURS.get(finding.outcome, "white"))


def where(finding: Finding) -> str:
    """The chain of places of a finding, and when settings were observed."""
    chain = " → ".join(clip(str(place), 60) for place in dict.fromkeys(finding.places))
    if finding.observed is not None:
        chain = f"{chain}  (observed {finding.observed:%Y-%m-%d})".strip()
    return chain


def by_rule(placements: Sequence[Placement], rule: str) -> str:
    """One rule over all repositories."""
    rows = []
    for placement in placements:
        for finding in placement.findings:
            if finding.rule == rule:
                rows.append(
                    (clip(placement.name, 30), _word(finding), clip(finding.what, 110), where(finding))
                )
        if placement.state != "placed":
            rows.append((clip(placement.name, 30), "?", clip(placement.reason, 110), ""))
    return table(rows)


def as_markdown(placements: Sequence[Placement]) -> str:
    """The fleet as a Markdown table, without commit or date, so that an unchanged fleet gives an unchanged page."""
    lines = ["| repository | tier | not gated | next step |", "|---|---|---|---|"]
    for placement in placements:
        cells = (placement.name, ", ".join(tier_of(placement)), missing(placement), next_step(placement))
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    out = " ".join(safe(text).split())
    for character in "\\`*_[]<>|#!&":
        out = out.replace(character, f"\\{character}" if character not in "<>&" else f"&#{ord(character)};")
    return out


#: Ends the document that `begin` begins.
END = "\n ]\n}"


def begin(now: datetime) -> str:
    """The beginning of the audit as JSON, schema `audit-v1`; `one` of each repository follows, with commas between."""
    return f'{{\n "schema": "{SCHEMA}",\n "read": "{_time(now)}",\n "repositories": ['


def one(placement: Placement, rule: str | None = None) -> str:
    """One repository of the document, with the findings of one rule where it is named."""
    held = as_dict(placement)
    if rule is not None:
        held["findings"] = [finding for finding in held["findings"] if finding["rule"] == rule]
    return as_json(held)


def as_dict(placement: Placement) -> dict[str, Any]:
    """One placement as JSON has it."""
    held = {key: getattr(placement, key) for key in _PLACEMENT} | {"observed": _time(placement.observed)}
    held["findings"] = [
        {key: getattr(finding, key) for key in _FINDING}
        | {"places": [str(place) for place in finding.places], "observed": _time(finding.observed)}
        for finding in placement.findings
    ]
    held["below"] = placement.below
    held["next"] = next_step(placement)
    return held


def badge(placement: Placement) -> str:
    """A picture of the tier (SVG) for a page, from no service: two fields, with the date of the settings if known."""
    label, message = "retrieval gate", ", ".join(" ".join(tier.split()) for tier in tier_of(placement))
    message = f"tier {message}" if placement.state == "placed" else message
    if placement.state == "placed" and placement.observed is not None:
        message = f"{message} ({placement.observed:%Y-%m-%d})"
    colour = _BADGE[placement.effect] if placement.state == "placed" else _BADGE[0]
    left, right = (len(text) * 7 + 12 for text in (label, message))  # of a sans of 11 pixels, generously
    fields = ((0, left, "#555", label), (left, right, colour, message))
    boxes = "".join(f'<rect x="{x}" width="{w}" height="20" fill="{fill}"/>' for x, w, fill, _ in fields)
    texts = "".join(f'<text x="{x + w / 2:g}" y="14">{html.escape(text)}</text>' for x, w, _, text in fields)
    title = html.escape(f"{label}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>{boxes}"
        f'<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">{texts}</g></svg>'
    )


#: The colours of tiers 0 to 3: grey, brown, green, dark green, each dark enough for white letters.
_BADGE = ("#666", "#8a6d00", "#2f7d32", "#1b5e20")


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.strftime("%Y-%m-%dT%H:%M:%SZ")
