"""Benchmarks of our own speed, beside a yardstick measured in the same run: `python -m benchmarks [NAME …]`.

A machine's absolute times are noise to everybody else, so each row is a ratio to something that anyone can time, or a
cost a query. Nothing here is asserted in a test.
"""

from __future__ import annotations
