"""Source files that run inside the sandbox; the parent sends them as text.

They import the standard library only (and each other), because the sandboxed
interpreter sees no installed package.
"""
