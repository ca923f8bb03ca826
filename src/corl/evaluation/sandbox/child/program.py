"""Run a whole program as `__main__`, reading its standard input."""

import builtins
import os
import sys
import traceback
from typing import Any

OUT_OF_MEMORY = 88
"""Exit code for an uncaught MemoryError."""


def main(payload: dict[str, Any]) -> None:
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    builtins.__dict__.update(exit=sys.exit, quit=sys.exit)  # `site`, which -S skips, adds these
    try:
        exec(compile(payload["source"], "main.py", "exec"), module.__dict__)
        sys.stdout.flush()
    except MemoryError:
        traceback.print_exc()
        os._exit(OUT_OF_MEMORY)
