"""`python -I -S timed.py OUTPUT COMMAND …`: run a command and print what it took, as JSON.

A process of its own and as small as can be: what the system calls a child's peak memory is never less than the
peak of the process that started it.
"""

from __future__ import annotations

import json
import os
import sys
import time

#: ru_maxrss counts kilobytes, on macOS bytes.
UNIT = 1 if sys.platform == "darwin" else 1024


def main(output: str, command: list[str]) -> int:
    """Run `command` with its standard output in the file `output`; return its exit code."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    began = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - began
    cost = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * UNIT}
    print(json.dumps(cost))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
