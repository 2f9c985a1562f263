"""Records a tiny Whisper as transformers writes it, with logits, greedy tokens, loss and gradients for one sound, and features of
another, for test/models/presets/publishedWhisper.test.ts and test/inputs/audio/logMel.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_whisper.py

writes test/fixtures/published/families/whisper, as record_families.py does those of language models.
"""
import itertools
import json

import torch
import transformers

from record_families import GREEDY, randomize, write

PROMPT = [40, 41, 42]
FRAMES, MELS = 26, 6


def randomized(config: transformers.WhisperConfig, seed: int) -> transformers.WhisperForConditionalGeneration:
    """Random weights, but for the sinusoids of the encoder, which published models have as they are."""
    torch.manual_seed(seed)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    positions = model.model.encoder.embed_positions.weight
    sinusoids = positions.detach().clone()
    randomize(model)
    with torch.no_grad():
        positions.copy_(sinusoids)
    return model


def greedy(model: torch.nn.Module, features: torch.Tensor) -> list[int] | None:
    """The prompt and the tokens behind it; None where rounding might choose another one than the best."""
    ids = list(PROMPT)
    for _ in range(GREEDY):
        logits = model(input_features=features, decoder_input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = logits.topk(2).values
        if best[0] - best[1] < 1e-3 * logits.abs().max():
            return None
        ids.append(int(logits.argmax()))
    return ids


if __name__ == "__main__":
    config = transformers.WhisperConfig(
        vocab_size=48, num_mel_bins=MELS, d_model=16, encoder_layers=2, encoder_attention_heads=4, decoder_layers=2,
        decoder_attention_heads=2, decoder_ffn_dim=24, encoder_ffn_dim=20, max_source_positions=FRAMES // 2,
        max_target_positions=80, pad_token_id=None, bos_token_id=None, eos_token_id=None, decoder_start_token_id=PROMPT[0])
    config._attn_implementation = "eager"
    for seed in itertools.count(1):
        model = randomized(config, seed)
        features = torch.randn(1, MELS, FRAMES)
        with torch.no_grad():
            ids = greedy(model, features)
        if ids is not None:
            break
    given = torch.tensor([ids])
    out = model(input_features=features, decoder_input_ids=given[:, :-1], labels=given[:, 1:], use_cache=False)
    # A tone that grows, in noise, of 0.1 s.
    at = torch.arange(1600) / 16_000
    sound = at * 8 * torch.sin(2 * torch.pi * 440 * at) + 0.01 * torch.randn(1600)
    extractor = transformers.WhisperFeatureExtractor()
    heard = extractor(sound.numpy(), sampling_rate=16_000, padding="do_not_pad", return_tensors="pt").input_features[0]
    write("whisper", model, out.loss, {
        "features": features[0].T, "logits": out.logits[0], "sound": sound, "logMel": heard.T}, ids=json.dumps(ids))
