"""Runs a click command under the exit-code contract that all scripts share."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any, NoReturn

import click

from eval_core.cli import output
from eval_core.errors import EvalError, Faults


def run(command: click.Command, prog: str) -> NoReturn:
    """Run `command` as the script `prog` and exit.

    0 done; 1 no; 2 wrong usage; 3 could not, interrupted, or a fault of this program. SIGTERM is taken like Ctrl-C,
    so that processes are stopped and nothing is left half-written.
    """
    # What a model accepts must not depend on what else is installed; looking for plugins costs a tenth of a start, too.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with contextlib.suppress(ValueError, AttributeError):
        signal.signal(signal.SIGTERM, _interrupt)
    output.install()
    sys.exit(_run(command, prog))


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _run(command: click.Command, prog: str) -> int:
    completing = f"_{prog.replace('-', '_').upper()}_COMPLETE"
    # A shell completes a line with no argument of ours; with a verb, the variable must not stand in its place.
    if len(sys.argv) == 1 and (instruction := os.environ.get(completing)):
        from click.shell_completion import shell_complete

        return shell_complete(command, {}, prog, completing, instruction)
    try:
        # Not command.main(): it turns a closed pipe into exit 1, which in our contract would read as a breach.
        with command.make_context(prog, sys.argv[1:]) as context:
            result = command.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        # Where the work had a name and a way to go on, the command said so as it unwound.
        _say(f"{prog}: interrupted")
        return 3
    except EvalError as error:
        from eval_core.faults import unmerged

        error = unmerged(error) or error
        if isinstance(error, Faults) and error.capped and {"--format=json", "json"} & set(sys.argv):
            from eval_core.console import as_json

            click.echo(as_json(error.as_table()))
        _say(str(error) if isinstance(error, Faults) else f"{prog}: {error}")
        return error.exit_code
    except OSError as error:
        if error.filename is not None:
            return _disk(prog, error)
        output.drop()
        _say(f"{prog}: the output cannot be written: {error.strerror or error}")
        return 3
    except Exception as error:  # noqa: BLE001  # the last one: whatever went wrong is exit 3 and never a breach
        return _fault(prog, error)
    return result if isinstance(result, int) else 0


def _disk(prog: str, error: OSError) -> int:
    """A file that could not be written, with room or without."""
    from eval_core.files import FULL, unwritable

    if error.errno not in FULL:
        return _fault(prog, error)
    _say(f"{prog}: {unwritable(error.filename2 or error.filename, error)}")
    return 3


def _fault(prog: str, error: BaseException) -> int:
    """A fault of the program itself."""
    if os.environ.get("EVAL_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
        return 3
    _say(
        f"{prog}: internal error, {type(error).__name__}: {error}\n"
        "  This is a fault of the program, not of your input. EVAL_TRACEBACK=1 shows where."
    )
    return 3


def _say(text: str) -> None:
    """Tell on standard error; where that cannot be written, the exit code still says it."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


class Verbs(click.Group):
    """A group whose verbs are imported only when they are called, and that suggests the nearest verb.

    `table` maps a verb to `module:attribute` and the line that the group's help shows.
    """

    def __init__(self, *args: Any, table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        kwargs.setdefault("subcommand_metavar", "VERB [ARG]...")
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        from importlib import import_module

        module, attribute = self.table[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.table:
            from eval_core.errors import did_you_mean

            ctx.fail(
                f"there is no verb {args[0]!r}{did_you_mean(args[0], self.table)}  (verbs: {', '.join(self.table)})"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The lines come from the table: help needs no verb's module.
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in self.table.items()])
