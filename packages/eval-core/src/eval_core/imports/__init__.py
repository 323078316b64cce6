"""Files of other tools, read for what they judge. `importer` says what a package brings to read a further format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_core import lazily

if TYPE_CHECKING:
    from eval_core.imports.build import import_set
    from eval_core.imports.importer import GROUP, Importer, Question, Reading, load
    from eval_core.imports.manifest import Manifest, ManifestQuery, dataset_of, parse_manifest, read_manifest
    from eval_core.imports.models import Imported

__all__ = [
    "GROUP",
    "Imported",
    "Importer",
    "Manifest",
    "ManifestQuery",
    "Question",
    "Reading",
    "dataset_of",
    "import_set",
    "load",
    "parse_manifest",
    "read_manifest",
]

__getattr__ = lazily(
    __name__,
    build="import_set",
    importer="GROUP Importer Question Reading load",
    manifest="Manifest ManifestQuery dataset_of parse_manifest read_manifest",
    models="Imported",
)
