"""Promotion: a better arm takes the default's place, when every condition of its rule is proven."""

from __future__ import annotations
