"""Drafts of judged sets out of what people have written already: doc comments, names, headings, links."""

from __future__ import annotations
