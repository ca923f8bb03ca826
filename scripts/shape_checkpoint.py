"""Write a checkpoint without weights: a config's tensors by name and shape, over a sparse file.

It lets `corl check` judge a recipe for models that are not on this machine: it reads configs and
the headers of weight files alone. The file's zeros take no disk.

    python scripts/shape_checkpoint.py recipes/paper/models/Qwen2.5-3B --tokenizer DIR --out OUT
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch

from corl.policy.load import bare_model

_READERS = ("token", "special", "chat_template", "vocab", "merges", "preprocessor", "processor")


def write_shapes(snapshot: Path, readers: Path, out: Path) -> int:
    """Write OUT from a snapshot's config.json and the tokenizer's files; returns the parameters.

    readers: directory with tokenizer files, and with processor files for vision-language models.
    """
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(snapshot / "config.json", out / "config.json")
    for file in readers.iterdir():
        if file.name.startswith(_READERS):
            shutil.copyfile(file, out / file.name)
    tensors = dict(bare_model(out, trust_remote_code=False).named_parameters())
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + 2 * tensor.numel()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with (out / "model.safetensors").open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.truncate(8 + len(text) + end)
    return sum(tensor.numel() for tensor in tensors.values())


def main() -> None:
    """Write one and tell its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("snapshot", type=Path, help="directory with a config.json")
    parser.add_argument("--tokenizer", type=Path, required=True, help="directory with a tokenizer")
    parser.add_argument("--out", type=Path, required=True)
    typed = parser.parse_args()
    with torch.no_grad():
        count = write_shapes(typed.snapshot, typed.tokenizer, typed.out)
    print(f"{typed.out}: {count:,} parameters, no weights")


if __name__ == "__main__":
    main()
