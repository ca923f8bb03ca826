"""Write prompt files of easy-VQA: questions about 64 x 64 pictures of coloured shapes.

    pip install easy-vqa==1.0
    python scripts/easy_vqa_prompts.py checkpoints/easy_vqa --rows 200

The package carries 5,000 pictures and 48,248 questions (MIT). Rows are {"id", "prompt", "image",
"answer"}; pictures stay where the package lies and are named by their paths.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="directory to write train.jsonl and test.jsonl into")
    parser.add_argument("--rows", type=int, default=None, help="rows of each; left out: all")
    options = parser.parse_args()
    for split in ("train", "test"):
        path = write_split(options.out, split, rows=options.rows)
        print(f"{path}: {len(path.read_text(encoding='utf-8').splitlines())} rows")


def write_split(out: Path, split: str, *, rows: int | None) -> Path:
    """Write one split, or its first rows; returns the file."""
    data = _packaged() / "data" / split
    questions = json.loads((data / "questions.json").read_text(encoding="utf-8"))[:rows]
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{split}.jsonl"
    lines = [
        json.dumps(
            {
                "id": f"{split}-{index}",
                "prompt": question,
                "image": str(data / "images" / f"{picture}.png"),
                "answer": answer,
            }
        )
        for index, (question, answer, picture) in enumerate(questions)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _packaged() -> Path:
    spec = find_spec("easy_vqa")
    if spec is None or spec.origin is None:
        raise SystemExit("easy-vqa is not installed: pip install easy-vqa==1.0")
    return Path(spec.origin).parent


if __name__ == "__main__":
    main()
