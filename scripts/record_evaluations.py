"""Records lm-evaluation-harness' metrics of a published fixture, for test/trained/languageTasks/evaluateTask.test.ts.

    bash bench/peers/lmEval.sh
    ~/.cache/luthier/peers/venv/bin/python scripts/record_evaluations.py

writes test/fixtures/published/evaluations.json: the examples, the metrics, and the versions.
"""
import json
import random
import shutil
import tempfile
from pathlib import Path

import lm_eval
import transformers
from lm_eval.models.huggingface import HFLM

FIXTURES = Path(__file__).resolve().parent.parent / "test/fixtures/published"
SETTINGS = dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<|endoftext|>", eos_token="<|endoftext|>")

random.seed(50)
WORDS = "one two three four five six seven eight nine ten sum of and is the a".split()


def words(least: int, most: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(random.randint(least, most)))


choices = [dict(context=words(1, 4), choices=[words(1, 3) for _ in range(3)], answer=random.randrange(3)) for _ in range(24)]
# Contexts that are too long for the model, end with a space, or are absent.
choices[0]["context"] = words(20, 20)
choices[1]["context"] += " "
choices[2]["context"] = ""
choices[3]["choices"][1] = "\u00e9t\u00e9"
texts = [dict(text=words(1, 60)) for _ in range(8)] + [dict(text="two\n\n  lines"), dict(text="na\u00efve \U0001f600")]


def task(folder: Path, name: str, examples: list, settings: dict) -> dict:
    file = folder / f"{name}.json"
    file.write_text("\n".join(json.dumps(each) for each in examples))
    data = dict(dataset_path="json", dataset_kwargs=dict(data_files=dict(test=str(file))), test_split="test")
    return dict(task=name, **data, **settings)


with tempfile.TemporaryDirectory() as made:
    folder = Path(made) / "model"
    shutil.copytree(FIXTURES / "gpt2", folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(SETTINGS))
    model = HFLM(pretrained=str(folder), device="cpu", dtype="float32", batch_size=4)
    tasks = [
        task(Path(made), "choices", choices, dict(
            output_type="multiple_choice", doc_to_text="{{context}}", doc_to_choice="{{choices}}", doc_to_target="{{answer}}",
            metric_list=[dict(metric="acc"), dict(metric="acc_norm")])),
        task(Path(made), "texts", texts, dict(
            output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}",
            metric_list=[dict(metric=name) for name in ["word_perplexity", "byte_perplexity", "bits_per_byte"]])),
    ]
    found = lm_eval.simple_evaluate(model=model, tasks=tasks, bootstrap_iters=0, log_samples=True)

metrics = {
    name: {key.split(",")[0]: value for key, value in values.items() if isinstance(value, float) and "stderr" not in key}
    for name, values in found["results"].items()
}
likelihoods = [[float(score[0]) for score in sample["filtered_resps"]] for sample in found["samples"]["choices"]]
record = dict(
    versions={"lm-eval": lm_eval.__version__, "transformers": transformers.__version__},
    settings=SETTINGS, choices=choices, texts=texts, metrics=metrics, likelihoods=likelihoods,
)
(FIXTURES / "evaluations.json").write_text(json.dumps(record, indent=1) + "\n")
