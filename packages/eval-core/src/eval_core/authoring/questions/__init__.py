"""Questions that people or agents asked, reviewed and appended to a set."""

from __future__ import annotations
