"""Put a completion and its prompt together into one program.

Models answer with a body, with the whole function, or with prose around a fence;
joining prompt and completion blindly breaks all but the first. A completion that
defines the function itself comes after the prompt's stub and replaces it, so that
the prompt's imports and helpers stay.
"""

import ast
import re
import textwrap
import warnings

from corl.answers.code import read_code

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_CODE_START = re.compile(r"^(?:async def|def|class|import|from|@)\b|^@", re.MULTILINE)
_MAX_CUTS = 60
_MAX_TRIED_CHARS = 1_000_000
_MAX_CHARS = 200_000


def assemble(prompt: str, completion: str, entry_point: str) -> str:
    """Return the program to judge; it need not compile if the completion does not.

    Text after the function that is no Python is cut at a line that starts in the
    first column; a lost indentation of a body's first line is put back.
    """
    text = completion
    if not completion.lstrip("\n")[:1].isspace() or _FENCE.search(completion):
        text = read_code(completion, entry_point=entry_point) or completion
    if not text[:1].isspace() or _defines(textwrap.dedent(text), entry_point):
        whole = _whole(textwrap.dedent(text), entry_point)
        if whole is not None:
            head = stub(prompt)
            together = f"{head}\n{whole}" if head else whole
            return together if compiles(together) else whole
    return _with_body(prompt, text)


def stub(prompt: str) -> str:
    """Return the prompt as a module of its own: its last function has no body yet.

    "" when the prompt is no start of a Python module.
    """
    for text in (f"{prompt}\n    pass\n", prompt):
        if compiles(text):
            return text
    return ""


def compiles(source: str) -> bool:
    """Say whether a text is a Python module, without warnings and for any text."""
    if len(source) > _MAX_CHARS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "candidate.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _whole(text: str, entry_point: str) -> str | None:
    """Return the part of a text that is a module defining the function, or None."""
    if not _names(text, entry_point):
        return None
    if _defines(text, entry_point):
        return text
    starts = [match.start() for match in _CODE_START.finditer(text)]
    for start in starts[:5]:
        kept = _longest(text[start:])
        if kept is not None and _defines(kept, entry_point):
            return kept
    return text


def _with_body(prompt: str, body: str) -> str:
    lost = f"    {body.lstrip()}" if body[:1] not in (" ", "\t", "\n") else None
    variants = [body, lost, textwrap.indent(textwrap.dedent(body), "    ")]
    for variant in variants:
        if variant is not None and (kept := _longest(prompt + variant, len(prompt))) is not None:
            return kept
    return prompt + body


def _longest(source: str, least: int = 0) -> str | None:
    """Cut lines off the end until the source compiles; only at lines of the first column."""
    if compiles(source):
        return source
    cuts = [match.start() for match in re.finditer(r"^\S", source, re.MULTILINE)]
    usable = [cut for cut in cuts if cut > least and source[least:cut].strip()]
    half = max(1, min(_MAX_CUTS, _MAX_TRIED_CHARS // len(source)) // 2)
    for cut in (*usable[-half:][::-1], *usable[:half][::-1]):
        if compiles(source[:cut]):
            return source[:cut]
    return None


def _names(text: str, entry_point: str) -> bool:
    name = re.escape(entry_point)
    return re.search(rf"^[ \t]*(?:async )?def {name}\b|^{name}\s*[:=]", text, re.M) is not None


def _defines(text: str, entry_point: str) -> bool:
    if not compiles(text):
        return False
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == entry_point:
                return True
        elif isinstance(node, ast.Assign):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if entry_point in targets:
                return True
    return False
