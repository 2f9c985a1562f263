"""Records tiny models of published families other than language models as transformers writes them, with their outputs, loss and
gradients, for test/models/presets/publishedEncoders.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_encoders.py [MODEL …]

writes test/fixtures/published/families, a folder a model: config.json and model.safetensors; gradients.safetensors with the names
of the weights; record.safetensors with the outputs, and in its metadata the batch, the loss, greedy tokens and versions.
"""
import itertools
import json
import shutil
import sys

import safetensors
import torch
import transformers
from record_families import ROOT, randomize
from safetensors.torch import save_file

GREEDY = 64
VOCAB = 40

BERT = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=12, type_vocab_size=3, layer_norm_eps=1e-6)
T5 = dict(vocab_size=VOCAB, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_decoder_layers=3, num_heads=4,
          relative_attention_num_buckets=8, relative_attention_max_distance=20, pad_token_id=0, eos_token_id=1,
          decoder_start_token_id=0)
VIT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4,
           num_channels=3, layer_norm_eps=1e-6)

# Of each model the family, the class and the settings.
MODELS = {
    "bert": ("bert", "BertForMaskedLM", BERT),
    "bertClassifier": ("bert", "BertForSequenceClassification", dict(BERT, num_labels=3, hidden_act="gelu_new")),
    "bertEncoder": ("bert", "BertModel", BERT),
    "t5": ("t5", "T5ForConditionalGeneration", dict(T5, feed_forward_proj="relu")),
    "t5Gated": ("t5", "T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "vit": ("vit", "ViTForImageClassification", dict(VIT, num_labels=6)),
}


def rows(generator: torch.Generator, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Random ids, and a mask that is 1 for as many of each row as its length says."""
    ids = torch.randint(2, VOCAB, (len(lengths), max(lengths)), generator=generator)
    mask = torch.tensor([[int(at < length) for at in range(max(lengths))] for length in lengths])
    return ids * mask, mask


def masked_lm(model, generator):
    """Two texts of two and three types, of which every third token is to be found."""
    ids, mask = rows(generator, [9, 6])
    types = torch.arange(9).expand(2, 9) // 4 * mask
    hidden = ((torch.arange(9) % 3 == 1).long() * mask).bool()
    given = torch.where(hidden, torch.tensor(3), ids)
    out = model(given, attention_mask=mask, token_type_ids=types, labels=torch.where(hidden, ids, -100))
    batch = dict(labels=ids, maskedIds=given, maskedPos=hidden.float(), paddings=1.0 - mask, segmentIds=mask,
                 segmentPos=torch.arange(9).expand(2, 9), tokenTypes=types)
    return out.loss, dict(logits=out.logits * mask[..., None]), batch


def classifier(model, generator):
    ids, mask = rows(generator, [9, 5, 7])
    labels = torch.tensor([2, 0, 1])
    out = model(ids, attention_mask=mask, labels=labels)
    return out.loss, dict(logits=out.logits), {"text.ids": ids, "text.paddings": 1.0 - mask, "labels": labels}


def encoder(model, generator):
    """Means of the tokens, of unit length; no loss."""
    ids, mask = rows(generator, [9, 4, 1])
    states = model(ids, attention_mask=mask).last_hidden_state * mask[..., None]
    means = states.sum(1) / mask.sum(1, keepdim=True)
    batch = {"text.ids": ids, "text.paddings": 1.0 - mask}
    return None, dict(embeddings=torch.nn.functional.normalize(means, dim=-1)), batch


def encoder_decoder(model, generator):
    # Long enough for distances in the last bucket.
    source, mask = rows(generator, [27, 11])
    labels, weights = rows(generator, [25, 13])
    out = model(source, attention_mask=mask, labels=torch.where(weights.bool(), labels, -100))
    shifted = torch.nn.functional.pad(labels, (1, -1))
    batch = {"src.ids": source, "src.paddings": 1.0 - mask, "tgt.ids": shifted, "tgt.paddings": 1.0 - weights,
             "tgt.labels": labels, "tgt.weights": weights.float()}
    return out.loss, dict(logits=out.logits * weights[..., None]), batch


def image_classifier(model, generator):
    side = VIT["image_size"]
    images = torch.randn(2, 3, side, side, generator=generator)
    labels = torch.tensor([5, 1])
    out = model(images, labels=labels)
    return out.loss, dict(logits=out.logits), dict(inputs=images.permute(0, 2, 3, 1), labels=labels)


RUNS = {
    "BertForMaskedLM": masked_lm,
    "BertForSequenceClassification": classifier,
    "BertModel": encoder,
    "T5ForConditionalGeneration": encoder_decoder,
    "ViTForImageClassification": image_classifier,
}


def greedy(model, source: torch.Tensor) -> list[int] | None:
    """Tokens of the target behind the first; None where rounding might choose another one than the best."""
    ids = [0]
    for _ in range(GREEDY):
        logits = model(source, decoder_input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = logits.topk(2).values
        if best[0] - best[1] < 1e-3 * logits.abs().max():
            return None
        ids.append(int(logits.argmax()))
    return ids[1:]


def drawn(name: str):
    """A model with the first weights by which greedy tokens, where it has them, are beyond doubt, and the tokens."""
    family, kind, settings = MODELS[name]
    config = transformers.AutoConfig.for_model(family, **settings)
    config._attn_implementation = "eager"
    model = getattr(transformers, kind)(config).eval()
    if name == "t5Gated":
        # transformers ties it whatever the settings say; the published models of version 1.1 have it apart.
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    for seed in itertools.count(1):
        torch.manual_seed(seed)
        randomize(model)
        if family != "t5":
            return model, None
        with torch.no_grad():
            tokens = greedy(model, torch.arange(2, 14)[None])
        if tokens is not None:
            return model, tokens


def listed(values: torch.Tensor) -> dict:
    dtype = "float32" if values.is_floating_point() else "int32"
    return dict(shape=list(values.shape), dtype=dtype, data=values.reshape(-1).tolist())


def save(model, folder) -> None:
    """Both tables where a model has two, although transformers ties them."""
    tables = model.state_dict()
    model.save_pretrained(folder)
    if "lm_head.weight" not in tables or torch.equal(tables["lm_head.weight"], tables["shared.weight"]):
        return
    file = folder / "model.safetensors"
    stored = safetensors.torch.load_file(file)
    save_file({**stored, "lm_head.weight": tables["lm_head.weight"].contiguous()}, file, metadata={"format": "pt"})


def record(name: str) -> None:
    model, tokens = drawn(name)
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    save(model, folder)
    loss, outputs, batch = RUNS[MODELS[name][1]](model, torch.Generator().manual_seed(7))
    versions = {module.__name__: module.__version__ for module in (torch, transformers, safetensors)}
    texts = dict(batch=json.dumps({path: listed(values) for path, values in batch.items()}), tokens=json.dumps(tokens))
    if loss is not None:
        loss.backward()
        texts["loss"] = repr(loss.item())
    save_file({key: values.detach().contiguous() for key, values in outputs.items()}, folder / "record.safetensors",
              metadata={**versions, **texts})
    (folder / "generation_config.json").unlink(missing_ok=True)
    if loss is None:
        return
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    # As weights, so that the writer gives them the names that it gives to those.
    save(model, folder / "gradients")
    (folder / "gradients/model.safetensors").rename(folder / "gradients.safetensors")
    shutil.rmtree(folder / "gradients")


if __name__ == "__main__":
    for model_name in sys.argv[1:] or MODELS:
        record(model_name)
