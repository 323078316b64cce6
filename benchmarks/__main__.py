"""`python -m benchmarks [NAME …]`: run them and print their Markdown tables."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import adapter, gate, longmemeval, measuring, metrics, processes, reports, tier

Table = list[tuple[str, ...]]

#: Each gives a table, or several by their titles.
BENCHMARKS: dict[str, Callable[[], Table | dict[str, Table]]] = {
    "processes": processes.run,
    "measuring": measuring.run,
    "reports": reports.run,
    "adapter": adapter.run,
    "gate": gate.run,
    "metrics": metrics.run,
    "longmemeval": longmemeval.run,
    "tier": tier.run,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}  (known: {', '.join(BENCHMARKS)})", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        found = BENCHMARKS[name]()
        print(f"\n### {name}")
        for title, (header, *rows) in (found if isinstance(found, dict) else {"": found}).items():
            print(f"\n{title}\n" if title else "")
            for row in (header, ("---",) * len(header), *rows):
                print("| " + " | ".join(row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
