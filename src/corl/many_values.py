"""Options of the `corl` command that take several values: `--seeds 0 1 2`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption


class ManyValues(TyperCommand):
    """A verb whose list options take all values up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {
            name
            for parameter in self.params
            if isinstance(parameter, TyperOption) and parameter.multiple
            for name in parameter.opts
        }
        return super().parse_args(ctx, _repeated(args, names))


def _repeated(args: list[str], names: set[str]) -> list[str]:
    """Write `--seeds 0 1` as `--seeds 0 --seeds 1`."""
    spread: list[str] = []
    option: str | None = None
    is_first = False
    for arg in args:
        if arg.startswith("--") or (option is None and arg.startswith("-")):
            option = arg if arg in names else None
            is_first = option is not None
            spread.append(arg)
        elif option is None or is_first:
            is_first = False
            spread.append(arg)
        else:
            spread += [option, arg]
    return spread
