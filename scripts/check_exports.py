"""Loads folders that Luthier exported by transformers and PEFT, for test/trained/published/exports.long.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/check_exports.py PAIR …

Each PAIR is ORIGINAL=EXPORT: two folders of one model, or BASE+ADAPTER=EXPORT: an adapter on its base, and the model with both in
its weights. Every tensor of a folder has to be loaded, and every parameter of the model to be there. Both models get the same
inputs; a line for each pair has the largest difference of any output, in parts of the largest magnitude, or the reason why there is
none. Exit status 1 where a reason is.
"""
import json
import sys
from pathlib import Path

import torch
import transformers
from peft import PeftModel

TOKENS = 7


def loaded(folder: str) -> torch.nn.Module:
    """The model of the class that config.json names, in float32."""
    (name,) = json.loads((Path(folder) / "config.json").read_text())["architectures"]
    model, info = getattr(transformers, name).from_pretrained(
        folder, output_loading_info=True, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        local_files_only=True)
    wrong = {kind: sorted(map(str, keys)) for kind, keys in info.items() if keys}
    if wrong:
        raise ValueError(f"{folder}: {wrong}")
    return model.eval()


def adapted(base: str, folder: str) -> torch.nn.Module:
    """A model with an adapter, all of whose tensors have a place."""
    model = PeftModel.from_pretrained(loaded(base), folder)
    result = model.load_adapter(folder, adapter_name="again")
    missing = [key for key in result.missing_keys if "lora_" in key]
    if missing or result.unexpected_keys:
        raise ValueError(f"{folder}: missing {missing}, unexpected {result.unexpected_keys}")
    return model.eval()


def inputs(config: transformers.PretrainedConfig) -> dict[str, torch.Tensor]:
    """A batch of every kind that a model of this type takes."""
    generator = torch.Generator().manual_seed(1)
    text = config.get_text_config() if config.model_type != "clip" else config.text_config

    def ids() -> torch.Tensor:
        # CLIP takes the last state at its token of the end.
        drawn = torch.randint(2, text.vocab_size, (2, TOKENS), generator=generator)
        return torch.cat([drawn, torch.full((2, 1), text.eos_token_id)], 1) if config.model_type == "clip" else drawn

    def images(sizes: transformers.PretrainedConfig) -> torch.Tensor:
        return torch.randn(2, sizes.num_channels, sizes.image_size, sizes.image_size, generator=generator)

    match config.model_type:
        case "vit":
            return {"pixel_values": images(config)}
        case "clip":
            return {"input_ids": ids(), "pixel_values": images(config.vision_config)}
        case "whisper":
            frames = 2 * config.max_source_positions
            sound = torch.randn(2, config.num_mel_bins, frames, generator=generator)
            return {"input_features": sound, "decoder_input_ids": ids()}
        case "t5":
            return {"input_ids": ids(), "decoder_input_ids": ids()}
        case _:
            return {"input_ids": ids()}


def outputs(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    with torch.no_grad():
        found = model(**inputs(model.config))
    return {name: values for name, values in found.items() if torch.is_tensor(values)}


def difference(pair: str) -> float:
    original, export = pair.split("=")
    expected = outputs(adapted(*original.split("+")) if "+" in original else loaded(original))
    found = outputs(loaded(export))
    if expected.keys() != found.keys() or not expected:
        raise ValueError(f"outputs are {sorted(found)}, expected {sorted(expected)}")
    return max(((found[name] - values).abs().max() / values.abs().max()).item() for name, values in expected.items())


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    failed = False
    for pair in sys.argv[1:]:
        try:
            print(json.dumps({"pair": pair, "difference": difference(pair)}), flush=True)
        except Exception as error:  # A pair that fails tells nothing of the others.
            print(json.dumps({"pair": pair, "error": f"{type(error).__name__}: {error}"}), flush=True)
            failed = True
    sys.exit(failed)
