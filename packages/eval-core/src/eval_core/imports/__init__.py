"""Files of other tools, read for what they judge."""

from __future__ import annotations

from eval_core.imports.manifest import Manifest, ManifestQuery, parse_manifest, read_manifest

__all__ = ["Manifest", "ManifestQuery", "parse_manifest", "read_manifest"]
