# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Write the model card of a model: the README.md of its folder, with the metadata that the Hub reads.

The metadata is YAML between two lines of dashes: languages, licence, tags, and a model index of the measured scores.
Model cards: Mitchell et al. 2019, arXiv 1810.03993. `model_card` is for translators, `task_card` for all others;
`publish.py` gathers what a card of a training run says.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

LANGUAGES = {
    **{"ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish"},
    **{"fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "it": "Italian"},
    **{"ja": "Japanese", "ko": "Korean", "la": "Latin", "nl": "Dutch", "no": "Norwegian", "pl": "Polish"},
    **{"pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian"},
    **{"vi": "Vietnamese", "zh": "Chinese"},
}
SCORES = {  # what a card calls a score, and its decimals
    "bleu": ("BLEU", 1),
    "chrf": ("chrF", 1),
    "perplexity": ("perplexity of a piece", 2),
    "alignment_error_rate": ("alignment error rate on the phrasebook", 3),
}
INDEXED = ("bleu", "chrf", "perplexity")  # the Hub's names of metrics
TRANSFORMERS = ">=5.24,<6"  # the range of versions that pyproject.toml asks for
CARD = """---
{metadata}
---

# {title}

{description} {parameters:,} parameters, stored in {dtype}.

## Use

{use}

## Scores

{scores}

## Training

{training}

## Licence and attribution

{attribution}

## Limits

{limits}
"""


def model_card(
    name: str,
    *,
    languages: tuple[str, str],
    description: str,
    data: Mapping[str, Any],
    results: Mapping[str, Any],
    has_attention: bool,
    use: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Write the card of a model. Sentences are Markdown; `plain` and `paragraph` make it of what a user typed.

    Args:
        name: the model's name.
        languages: codes of source and target.
        description: a sentence that says what it is.
        data: what it was trained and measured on: `name`, `type` (an identifier), `license` (the Hub's identifier, of
            the weights), an `example` to translate, and sentences on `training`, `test`, `attribution` and `limits`.
        results: `recipe` (or None), `updates`, `parameters`, `dtype`, `measured`: the scores of the test set,
            `sentences`, `num_beams`, signatures and a `note`, as far as there are any; `how`, if not measured from the
            stored files; for a training run also `validation`, as `measured`, and `settings`, by name.
        has_attention: whether it has attention to look at.
        use: how to open it; if not given, with the installed package alone.
        metadata: fields of the metadata that are not those of a folder without code.

    Returns:
        The text of README.md.
    """
    measured = {split: results[key] for split, key in (("test", "measured"), ("validation", "validation"))
                if any(score in results.get(key, {}) for score in SCORES)}  # fmt: skip
    source, target = (LANGUAGES.get(code, plain(code)) for code in languages)
    fields: dict[str, Any] = {
        "language": [code for code in map(_iso_639, languages) if code] or None,
        "license": data["license"],
        "library_name": "hf_attn",
        "pipeline_tag": "translation",
        "tags": ["hf_attn", "translation", "attention", "seq2seq"],
        "metrics": [score for score in INDEXED if any(score in numbers for numbers in measured.values())] or None,
        "model_name": name,
        "eval_results": _eval_results("-".join(languages), data, measured) or None,
    }
    updates = f"{results['updates']:,} updates"
    training = f"Recipe `{results['recipe']}` of hf_attn, {updates}, on" if results["recipe"] else f"{updates}, on"
    return CARD.format(
        metadata=ModelCardData(**(fields | dict(metadata or {}))).to_yaml().strip(),
        title=plain(name),
        use=use or use_installed(name, data["example"].strip(), results["measured"].get("num_beams"), has_attention),
        description=f"Translates {source} into {target}. {description}",
        scores=_scores(measured, results, data["test"].strip()),
        training=f"{training} {data['training'].strip()}{_settings(results.get('settings', {}))}",
        **{key: results[key] for key in ("parameters", "dtype")},
        **{key: data[key].strip() for key in ("attribution", "limits")},
    )


def task_card(
    name: str,
    *,
    description: str,
    use: str,
    data: Mapping[str, Any],
    results: Mapping[str, Any],
    scores: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> str:
    """Write the card of a model that does something else than translate. All sentences are Markdown.

    Args:
        name: the model's name.
        description: a sentence that says what it is.
        use: how to open it.
        data: what it was trained and measured on: `license` (the Hub's identifier, of the weights), and sentences on
            `training`, `test`, `attribution` and `limits`.
        results: `updates`, `parameters`, `dtype` and `measured`, the scores.
        scores: what the card calls each score of `measured`.
        metadata: `language`, `pipeline_tag` and `tags`, as the Hub knows them.

    Returns:
        The text of README.md.
    """
    rows = [f"| {title} | {results['measured'][score]:.4g} |" for score, title in scores.items()]
    fields = {"library_name": "hf_attn", "license": data["license"], "model_name": name} | dict(metadata)
    return CARD.format(
        metadata=ModelCardData(**fields).to_yaml().strip(),
        title=plain(name),
        description=description.strip(),
        use=use.strip(),
        scores="\n".join(["| | |", "|---|---:|", *rows])
        + f"\n\nMeasured from the files of this folder, computed in float32, on {data['test'].strip()}. `results.json` "
        "has the numbers unrounded.",
        training=f"{results['updates']:,} updates on {data['training'].strip()}",
        **{key: results[key] for key in ("parameters", "dtype")},
        **{key: data[key].strip() for key in ("attribution", "limits")},
    )


def use_installed(name: str, example: str, num_beams: int | None, has_attention: bool) -> str:
    """Say how the installed package opens a folder without code."""
    return (
        translator_code(name, example, num_beams, has_attention)
        + f"\n\n`{name}` is the path of this folder. The installed package `hf_attn` has the code of the model; none "
        "comes with the\nweights."
    )


def translator_code(address: str, example: str, num_beams: int | None, has_attention: bool) -> str:
    """Give the lines that translate with `hf_attn.Translator`."""
    beams = f", num_beams={num_beams}" if num_beams else ""
    return (
        "```python\nimport hf_attn\n\n"
        f"translation = hf_attn.Translator({literal(address)})({literal(example)}{beams})\n"
        f"print(translation.text)\nprint(translation.{'alignment().weights' if has_attention else 'score'})\n```"
    )


def auto_class_code(address: str, example: str, num_beams: int | None, *, code: bool, separate: bool) -> str:
    """Give the lines that translate with transformers alone.

    Args:
        address: folder or Hub id.
        example: a sentence to translate.
        num_beams: width of the beam search; None leaves it to the generation configuration.
        code: whether the folder brings the code of the model.
        separate: whether the target language has a tokenizer of its own.
    """
    trust = ", trust_remote_code=True" if code else ""
    beams = f", num_beams={num_beams}" if num_beams else ""
    lines = [
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        f"name = {literal(address)}",
        f"model = AutoModelForSeq2SeqLM.from_pretrained(name{trust})",
        f"tokenizer = AutoTokenizer.from_pretrained(name{trust})",
        f"inputs = tokenizer([{literal(example)}], return_tensors=\"pt\")",
        f"output = model.generate(**inputs{beams})",
    ]  # fmt: skip
    if separate:
        lines.insert(5, f'target_tokenizer = AutoTokenizer.from_pretrained(name, subfolder="target_tokenizer"{trust})')
    decoder = "target_tokenizer" if separate else "tokenizer"
    lines.append(f"print({decoder}.batch_decode(output, skip_special_tokens=True)[0])")
    return "```python\n" + "\n".join(lines) + "\n```"


def literal(text: str) -> str:
    """Write a text as Python does, on one line and between double quotes."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def plain(text: str) -> str:
    """Write a text so that Markdown shows it as it is, on one line, also in a table."""
    return re.sub(r"([\\`*\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", " ".join(text.split()))


def paragraph(text: str) -> str:
    """Make one paragraph of Markdown: links and emphasis stay, what would begin a heading, list or block does not."""
    text = " ".join(text.split()).replace("<", "&lt;")
    return re.sub(r"^(?=[#>|=+*`~-])|^(\d+)(?=[.)])", r"\1\\", text)


def _iso_639(code: str) -> str | None:
    """Give the code of a language as the Hub knows it, without country and script."""
    language = re.split(r"[-_]", code.lower())[0]
    return language if re.fullmatch(r"[a-z]{2,3}", language) else None


def _eval_results(pair: str, data: Mapping[str, Any], measured: Mapping[str, Mapping[str, Any]]) -> list[EvalResult]:
    """Give the entries of the model index: of each split the scores that the Hub has names for, with all digits."""
    return [
        EvalResult(
            task_type="translation",
            task_name=f"Translation {pair}",
            dataset_type=data["type"],
            dataset_name=data["name"],
            dataset_config=pair,
            dataset_split=split,
            metric_type=score,
            metric_name=SCORES[score][0],
            metric_value=numbers[score],
            metric_args={"signature": numbers[f"{score}_signature"]} if f"{score}_signature" in numbers else None,
        )
        for split, numbers in measured.items()
        for score in INDEXED
        if score in numbers
    ]


def _scores(measured: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any], test: str) -> str:
    """Write the table of the scores, how they were measured, and the signatures."""
    if not measured:
        return "None was measured."
    heads = list(measured) if len(measured) > 1 or "test" not in measured else [""]
    rows = [f"| {' | '.join(['', *heads])} |".replace("  ", " "), "|---" + "|---:" * len(measured) + "|"]
    for score, (title, decimals) in SCORES.items():
        values = [f"{numbers[score]:.{decimals}f}" if score in numbers else "" for numbers in measured.values()]
        if any(values):
            rows.append(f"| {title} | {' | '.join(values)} |")
    sets = {"test": test, "validation": "the validation set"}
    sizes = " and ".join(f"{numbers['sentences']:,} sources of {sets[split]}" for split, numbers in measured.items())
    beams = next((numbers["num_beams"] for numbers in measured.values() if numbers.get("num_beams")), None)
    how = results.get("how", "from the files of this folder, computed in float32")
    text = f"Measured {how}, on {sizes}"
    text += "" if beams is None else f" with {beams} beams." if beams > 1 else " by greedy search."
    text += "." if beams is None else ""
    if any("perplexity" in numbers for numbers in measured.values()):
        text += "\nPerplexity depends on the tokenizer: compare it only with models that have the same."
    signatures = [
        f"- {score}: `{numbers[f'{score}_signature']}`"
        for numbers in measured.values()
        for score in ("bleu", "chrf")
        if f"{score}_signature" in numbers
    ]
    notes = [plain(numbers["note"]) for numbers in measured.values() if numbers.get("note")]
    parts = ["\n".join(rows), f"{text} `results.json` has the numbers unrounded.", "\n".join(signatures), *notes]
    return "\n\n".join(part for part in parts if part)


def _settings(settings: Mapping[str, Any]) -> str:
    """Write the settings of a run as a table, if there are any."""
    rows = [f"| `{name}` | {plain(str(value))} |" for name, value in settings.items()]
    return "\n\n" + "\n".join(["| | |", "|---|---|", *rows]) if rows else ""
