"""Options of the verbs that read a workspace: eval.toml, and what lies beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_CONFIG = Path("eval.toml")


def config_option(text: str = "The arms' file; policy/ and .eval lie beside it.") -> Callable[[F], F]:
    """`--config`: its folder is the workspace. One that is named must be there."""

    def there(context: click.Context, option: click.Parameter, value: Path) -> Path:
        given = context.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE
        if given and not value.exists():
            from eval_core.config import missing

            raise missing(value)
        return value

    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=_CONFIG,
        show_default=True,
        is_eager=True,
        callback=there,
        help=text,
    )


def beside(*names: str, place: str, text: str = "", **rest: Any) -> Callable[[F], F]:
    """An option for a path that lies beside eval.toml unless it is named; see `config_option`."""

    def placed(context: click.Context, option: click.Parameter, value: Path | None) -> Path:
        config: Path = context.params.get("config", _CONFIG)
        return config.parent / place if value is None else value

    default = f"[default: {place}, beside eval.toml]" if place else "[default: the folder of eval.toml]"
    kind = rest.pop("type", click.Path(path_type=Path))
    return click.option(*names, type=kind, callback=placed, help=f"{text}  {default}".strip(), **rest)
