"""A sheet of drafts, a row each, to be reworded or dropped in any spreadsheet: out of `derive`, into `query add`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval_core.authoring.derive.drafts import Draft
from eval_core.errors import Misuse
from eval_core.files import write_text

#: The columns, in their order. `origin` and `first line` are for the reader.
COLUMNS = ("keep", "question", "relevant", "origin", "first line", "category", "exclude")

#: What a cell of `keep` may say, in any case.
KEEP: Mapping[str, bool] = {
    **dict.fromkeys(("yes", "y", "x", "1", "true"), True),
    **dict.fromkeys(("no", "n", "0", "false", ""), False),
}

#: A cell that begins with such a sign is a formula to a spreadsheet; one more apostrophe before it makes it a text, and
#: is taken off when it is read.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")

#: Characters of a document's first line that are shown.
_FIRST = 120


def claim_sheet(path: Path) -> None:
    """Refuse to write a sheet over something.

    Raises:
        Misuse: there is something already, or the name does not end with `.csv`.
    """
    if path.suffix.lower() != ".csv":
        what = "a sheet is CSV; name the file .csv"
        raise Misuse("file-unknown", what, file=path)
    if path.exists():
        mend = "Name another file, or remove what is there yourself."
        raise Misuse("out-exists", "is there already, and a sheet replaces nothing", file=path, mend=mend)


def write_sheet(path: Path, drafts: Sequence[Draft], texts: Mapping[str, str]) -> None:
    """Write the drafts as CSV: with a byte order mark, by which spreadsheets tell UTF-8, and no cell that is a formula.

    Args:
        path: the file to be; see `claim_sheet`.
        drafts: in their order; all are kept at first.
        texts: of the documents that are relevant, by id.

    Raises:
        CouldNot: it cannot be written.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for draft in drafts:
        cells = (
            "yes",
            draft.text,
            " ".join(draft.documents),
            "\n".join(map(str, draft.origins)),
            first_line(texts.get(draft.documents[0], "")),
            draft.category,
            " ".join(draft.exclude),
        )
        writer.writerow([f"'{cell}" if _FORMULA.match(cell) else cell for cell in cells])
    write_text(path, "\ufeff" + out.getvalue())


def first_line(text: str) -> str:
    """The first line of a text that is not blank."""
    from eval_core.console import clip

    return clip(next((line.strip() for line in text.split("\n") if line.strip()), ""), _FIRST)


def plain_cell(cell: str) -> str:
    """A cell as it was before it was written."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
