#!/usr/bin/env python3
"""Writes gpt2_tiny.safetensors, a GPT-2 of random weights as Hugging Face writes it, and gpt2_tiny.json, some ids with
the logits that it gives. Needs transformers beside what scripts/peers/python installs:

  scripts/peers/python -m pip install transformers==5.24.0
  scripts/peers/python test/regression/make_gpt2_reference.py
"""

import pathlib

import references
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
IDS = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]


def main():
    torch.manual_seed(1)
    # More positions than a model of ours that takes them has, and masks that are no weights.
    config = transformers.GPT2Config(vocab_size=11, n_positions=9, n_embd=8, n_layer=2, n_head=2, initializer_range=0.3)
    model = transformers.GPT2LMHeadModel(config).eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weight, 0, 0.3)
    with torch.no_grad():
        logits = model(torch.tensor(IDS)).logits
    model.save_pretrained(HERE, safe_serialization=True)
    (HERE / "model.safetensors").rename(HERE / "gpt2_tiny.safetensors")
    for made in ("config.json", "generation_config.json"):
        (HERE / made).unlink(missing_ok=True)
    reference = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}", "ids": IDS,
                 "logits": logits.flatten().tolist()}
    (HERE / "gpt2_tiny.json").write_text(references.text(reference) + "\n")


if __name__ == "__main__":
    main()
