"""Records a tiny CLIP as transformers writes it, with embeddings, similarities, loss and gradients of a batch, for
test/models/presets/publishedClip.test.ts.

    bash bench/peers/setup.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_clip.py

writes test/fixtures/published/families/clip, as record_families.py does those of language models.
"""
import torch
import transformers

from record_families import randomize, write

END = 27
TOWER = dict(num_hidden_layers=2, num_attention_heads=2)
# One text has padding behind its end, one has words behind it, which none before them sees.
IDS = [[25, 3, 14, 15, 9, END], [25, 7, END, 0, 0, 0], [25, 8, END, 2, END, 1]]
MASK = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]

if __name__ == "__main__":
    torch.manual_seed(1)
    config = transformers.CLIPConfig(
        text_config=dict(TOWER, vocab_size=29, hidden_size=12, intermediate_size=20, max_position_embeddings=8, bos_token_id=25,
                         eos_token_id=END, pad_token_id=0),
        vision_config=dict(TOWER, hidden_size=16, intermediate_size=24, image_size=12, patch_size=4, hidden_act="gelu"),
        projection_dim=10, logit_scale_init_value=1.5)
    config._attn_implementation = "eager"
    model = transformers.CLIPModel(config).eval()
    randomize(model)
    with torch.no_grad():
        model.logit_scale.copy_(torch.tensor(1.2))
    ids, mask, images = torch.tensor(IDS), torch.tensor(MASK), torch.randn(len(IDS), 3, 12, 12)
    out = model(input_ids=ids, attention_mask=mask, pixel_values=images, return_loss=True)
    write("clip", model, out.loss, {
        "ids": ids.to(torch.float32), "mask": mask.to(torch.float32), "images": images,
        "image_embeddings": out.image_embeds, "text_embeddings": out.text_embeds, "logits": out.logits_per_image})
