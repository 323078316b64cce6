"""What becomes of an adapter that ends, and of secrets in its environment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from eval_backends.jsonl import JsonLines
from eval_core.backend import BackendError, Request
from eval_core.console import redacted
from eval_core.errors import CouldNot

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes"),
    pytest.mark.usefixtures("nothing_left"),
]

Adapter = Callable[..., JsonLines]
LEAVES = "import subprocess; subprocess.Popen(['sleep', '60']); sys.stdout.flush(); os._exit(3)"


def test_round2_s11_a_crash_is_told_at_once_though_a_child_holds_the_output(adapter: Adapter) -> None:
    """S11: the adapter itself has ended, so nothing is waited for; what it left behind ends with it."""
    backend = adapter(LEAVES, timeout=30)
    start = time.monotonic()
    for _ in range(2):
        with pytest.raises(
            BackendError, match="exited with code 3 before it replied, and left a process behind"
        ):
            backend.search(Request("bad", 1))
    assert time.monotonic() - start < 15  # of sixty


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("VENDOR_API_KEY", True), ("GITHUB_TOKEN", True), ("DB_PASSWORD", True), ("client_secret", True),
     ("AWS_PAT", True), ("DB_PWD", True), ("PWD", False), ("OLDPWD", False),
     ("KEYBOARD", False), ("AUTHOR", False), ("LANG", False)],
)  # fmt: skip
def test_round2_s11_no_secret_of_the_environment_is_quoted(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch, name: str, hidden: bool
) -> None:
    """S11: what an adapter says is quoted without the values of variables whose names say that they are secret."""
    monkeypatch.setenv(name, "s3cr3t-value")
    assert redacted("it says s3cr3t-value!") == (f"it says [{name}]!" if hidden else "it says s3cr3t-value!")
    with pytest.raises(CouldNot) as caught:
        adapter(
            head=f"sys.stderr.write('login with ' + os.environ[{name!r}]); sys.stderr.flush(); os._exit(1)"
        )
    assert ("s3cr3t-value" in str(caught.value)) != hidden and "login with" in str(caught.value)
    monkeypatch.setenv(name, "short")
    assert redacted("a short text") == "a short text"
