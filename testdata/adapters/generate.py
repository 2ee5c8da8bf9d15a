"""Tiny LoRA adapters for the tiny checkpoints, with what PEFT computes for them.

    python generate.py

Writes a PEFT folder per row of ``ADAPTERS``, with ``golden.json`` (token ids) and ``golden.safetensors`` (logits of all
rows) in it.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
MODELS = HERE.parent / "models"
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

ADAPTERS = {
    "llama-tiny-all": ("llama-tiny", torch.float32, LoraConfig(r=4, lora_alpha=8, target_modules=ALL)),
    # Other ranks and alphas in places, another scaling, some layers only; on biases.
    "llama-tiny-bias-some": ("llama-tiny-bias", torch.bfloat16, LoraConfig(
        r=3, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], layers_to_transform=[1],
        rank_pattern={"v_proj": 5}, alpha_pattern={"model.layers.1.mlp.down_proj": 2})),
    "llama-tiny-attention": ("llama-tiny", torch.float16, LoraConfig(r=2, lora_alpha=2, target_modules=["q_proj", "o_proj"])),
    # Blocks without a gate: between the product and the activation; parallel blocks, with other names.
    "phi-tiny-mlp": ("phi-tiny", torch.bfloat16, LoraConfig(r=2, lora_alpha=4, target_modules=["dense", "fc1", "fc2"])),
}  # fmt: skip
PROMPT_LENGTHS = (1, 7, 40)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    for seed, (name, (base, dtype, config)) in enumerate(ADAPTERS.items()):
        random = torch.Generator().manual_seed(seed)
        folder = HERE / name
        model = AutoModelForCausalLM.from_pretrained(MODELS / base, dtype=torch.float32, attn_implementation="eager")
        plain = AutoModelForCausalLM.from_pretrained(MODELS / base, dtype=torch.float32, attn_implementation="eager")
        model = get_peft_model(model, config).eval()
        for parameter_name, parameter in model.named_parameters():
            if "lora_" in parameter_name:
                drawn = 0.5 * torch.randn(parameter.shape, generator=random) / parameter.shape[-1] ** 0.5
                parameter.data = drawn.to(dtype).float()
        model.save_pretrained(folder)
        (folder / "README.md").unlink()
        path = folder / "adapter_config.json"
        written = json.loads(path.read_text()) | {"base_model_name_or_path": base}
        path.write_text(json.dumps(written, indent=1) + "\n")
        halves = {n: p.to(dtype).contiguous() for n, p in load(folder).items()}
        save_file(halves, folder / "adapter_model.safetensors", metadata={"format": "pt"})
        prompts, tensors = [], {}
        for i, length in enumerate(PROMPT_LENGTHS):
            ids = torch.randint(0, 297, (length,), generator=random).tolist()
            logits = model(torch.tensor([ids])).logits[0]
            moved = (logits - plain(torch.tensor([ids])).logits[0]).abs().max().item()
            assert moved > 0.2, f"{name}: the adapter hardly shows: {moved}"
            tensors[f"prompts.{i}.logits"] = logits.contiguous()
            prompts.append({"ids": ids})
        (folder / "golden.json").write_text(json.dumps({"base": base, "prompts": prompts}) + "\n")
        save_file(tensors, folder / "golden.safetensors")
        print(name, "moves a logit by", round(moved, 2))


def load(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


if __name__ == "__main__":
    main()
