"""`python -m eval_backends` is the script `eval-backends`: an arm can name it whatever the PATH."""

from __future__ import annotations

from eval_backends.cli import main

if __name__ == "__main__":
    main()
