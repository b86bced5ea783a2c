# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Write the model card of a translation model: the README.md of its folder, with the metadata that the Hub reads.

The metadata is YAML between two lines of dashes: languages, licence, tags, and a model index of the measured scores.
Model cards: Mitchell et al. 2019, arXiv 1810.03993.
"""

from collections.abc import Mapping
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

LANGUAGES = {"en": "English", "fr": "French", "it": "Italian", "ko": "Korean"}
SCORES = {  # what a card calls a score, and its decimals
    "bleu": ("BLEU", 1),
    "chrf": ("chrF", 1),
    "perplexity": ("perplexity of a piece", 2),
    "alignment_error_rate": ("alignment error rate on the phrasebook", 3),
}
INDEXED = ("bleu", "chrf", "perplexity")  # the Hub's names of metrics
CARD = """---
{metadata}
---

# {name}

Translates {source} into {target}. {description} {parameters:,} parameters, stored in float16.

## Use

```python
import hf_attn

translation = hf_attn.Translator("{name}")("{example}", num_beams={num_beams})
print(translation.text)
print(translation.{look})
```

`{name}` is the path of this folder. The installed package `hf_attn` has the code of the model; none comes with the
weights.

## Scores

| | |
|---|---:|
{scores}

Measured from the files of this folder, computed in float32, on {sentences:,} sources of {test} with {num_beams} beams.
Perplexity depends on the tokenizer: compare it only with models that have the same. `results.json` has all digits.

{signatures}

## Training

Recipe `{recipe}` of hf_attn, {updates:,} updates, on {training}

## Licence and attribution

{attribution}

## Limits

{limits}
"""


def model_card(
    name: str, *, description: str, data: Mapping[str, Any], results: Mapping[str, Any], has_attention: bool
) -> str:
    """Write the card of a model.

    Args:
        name: the model's name, which begins with its languages, such as "en-fr-bahdanau".
        description: a sentence that says what it is.
        data: what it was trained and measured on: `name`, `type` (an identifier), `license` (the Hub's identifier),
            an `example` to translate, and sentences on `training`, `test`, `attribution` and `limits`.
        results: `recipe`, `updates`, `parameters`, and `measured`: the scores, `sentences`, `num_beams`, signatures.
        has_attention: whether it has attention to look at.

    Returns:
        The text of README.md.
    """
    source, target = name.split("-")[:2]
    measured = results["measured"]
    shown = {score: round(measured[score], SCORES[score][1]) for score in SCORES if score in measured}
    metadata = ModelCardData(
        language=[source, target],
        license=data["license"],
        library_name="hf_attn",
        pipeline_tag="translation",
        tags=["hf_attn", "translation", "attention", "seq2seq"],
        metrics=list(INDEXED),
        model_name=name,
        eval_results=[
            EvalResult(
                task_type="translation",
                task_name=f"Translation {source}-{target}",
                dataset_type=data["type"],
                dataset_name=data["name"],
                dataset_config=f"{source}-{target}",
                dataset_split="test",
                metric_type=score,
                metric_name=SCORES[score][0],
                metric_value=shown[score],
            )
            for score in INDEXED
        ],
    )
    return CARD.format(
        metadata=metadata.to_yaml(),
        name=name,
        source=LANGUAGES[source],
        target=LANGUAGES[target],
        look="alignment().weights" if has_attention else "score",
        scores="\n".join(f"| {SCORES[score][0]} | {value:.{SCORES[score][1]}f} |" for score, value in shown.items()),
        signatures="\n".join(f"- {score}: `{measured[f'{score}_signature']}`" for score in ("bleu", "chrf")),
        description=description,
        **{key: results[key] for key in ("recipe", "updates", "parameters")},
        **{key: measured[key] for key in ("sentences", "num_beams")},
        **{key: data[key].strip() for key in ("example", "training", "test", "attribution", "limits")},
    )
