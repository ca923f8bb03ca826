"""The program that makes another program's outputs visible.

It runs inside the sandbox, on its own: nothing here is imported there. Records
go to the real standard output, each on a line that begins with a token made
from the program and the calls; the candidate prints into a sink. Values are
rendered so that equal ones look equal: sets and dictionaries without order,
floats by their shortest text, addresses left out.
"""

DRIVER = r"""
def _main(program, calls, token, max_output):
    import hashlib, io, json, re, sys, types

    out, dumps, exec_, eval_ = sys.stdout, json.dumps, exec, eval
    sha256, address = hashlib.sha256, re.compile(r" at 0x[0-9a-fA-F]+")

    def render(value, depth=0):
        kind = type(value)
        if depth > 40:
            raise ValueError("too deep")
        if kind is int and value.bit_length() > 4096:
            return "int:" + format(value, "x")
        if kind in (int, bool, str, bytes, float, complex, type(None)):
            return repr(value)
        if isinstance(value, (set, frozenset)):
            return "{" + ", ".join(sorted(render(item, depth + 1) for item in value)) + "}set"
        if isinstance(value, dict):
            pairs = [(render(k, depth + 1), render(v, depth + 1)) for k, v in value.items()]
            return "{" + ", ".join(sorted(k + ": " + v for k, v in pairs)) + "}"
        if isinstance(value, tuple):
            return "(" + ", ".join(render(item, depth + 1) for item in value) + ",)"
        if isinstance(value, list):
            return "[" + ", ".join(render(item, depth + 1) for item in value) + "]"
        return kind.__name__ + ":" + address.sub("", repr(value))

    class Sink(io.TextIOBase):
        encoding = "utf-8"
        buffer = io.BytesIO()

        def writable(self):
            return True

        def write(self, text):
            return len(text)

    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    sys.stdout = Sink()
    try:
        exec_(compile(program, "<candidate>", "exec", 0, True), module.__dict__)
    except BaseException:
        return
    for index, call in enumerate(calls):
        try:
            text = render(eval_(compile(call, "<call>", "eval", 0, True), module.__dict__))
        except BaseException:
            continue
        if len(text) > max_output:
            whole = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            text = text[: max_output - 65] + "#" + whole
        out.write("\n" + token + dumps([index, text]) + "\n")
        out.flush()
"""
