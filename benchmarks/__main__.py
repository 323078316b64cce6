"""`python -m benchmarks [NAME …]`: run them and print one Markdown table each."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import adapter, measuring, processes, reports

BENCHMARKS: dict[str, Callable[[], list[tuple[str, ...]]]] = {
    "processes": processes.run,
    "measuring": measuring.run,
    "reports": reports.run,
    "adapter": adapter.run,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {unknown[0]!r}  (known: {', '.join(BENCHMARKS)})", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        header, *rows = BENCHMARKS[name]()
        print(f"\n### {name}\n")
        for row in (header, ("---",) * len(header), *rows):
            print("| " + " | ".join(row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
