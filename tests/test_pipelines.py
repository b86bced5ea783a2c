# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""transformers' pipelines on saved folders: every task that a head of ours can do, with a tokenizer that was trained.

What a pipeline answers is compared with the model called by hand: ids in, softmax of its logits out.
"""

import itertools

import numpy as np
import pytest
import torch
import transformers
from contract import cases
from PIL import Image
from test_contract_causal import plain_greedy
from transformers import ViTImageProcessor

from hf_attn.data import train_text_tokenizer
from hf_attn.registry import family_module

TEXTS = ["the cat sees the old dog.", "a red bird sings in the tree, and the dog runs.", "the old house is red."]
PROMPTS = ["the cat", "a red bird sings in the", "the"]
LABELS = ("O", "animal", "colour")
NAMES = {"id2label": dict(enumerate(LABELS)), "label2id": {name: number for number, name in enumerate(LABELS)}}
CAUSAL = train_text_tokenizer(
    TEXTS, 100, kind="word"
)  # a model that knows nothing would write bytes that spell nothing
MASKED = train_text_tokenizer(TEXTS * 3, 330, masked=True)


def doing(auto_name, text=True, variants=True):
    """The classes of a task."""
    found = [p for p in cases(seq2seq=False, text=text, variants=variants) if p.values[0].auto_name == auto_name]
    assert found
    return pytest.mark.parametrize("case", found)


def opened(task, case, folder, seed=0, **options):
    """A pipeline that was opened by its path."""
    masked = "AutoModelForMaskedLM" in family_module(case.family).AUTO_CLASSES
    if case.reads_text:
        tokenizer = MASKED if masked else CAUSAL
        tokenizer.save_pretrained(folder)
        options["vocab_size"] = len(tokenizer)
    else:
        size = {"height": case.config().image_size, "width": case.config().image_size}
        ViTImageProcessor(size=size).save_pretrained(folder)
    model = case.model(seed, sharpness=1.0 if hasattr(case.config(), "type_vocab_size") else 3.0, **options)
    if case.generates:
        model.generation_config.eos_token_id = None
    model.save_pretrained(folder, include_code=False)
    pipe = transformers.pipeline(task, model=str(folder), device="cpu")
    assert type(pipe.model) is case.model_class and not pipe.model.training
    return pipe


@torch.no_grad()
def by_hand(pipe, *texts):
    """What the model returns for a text, or a pair, alone."""
    return pipe.model(**pipe.tokenizer(*texts, return_tensors="pt"))


def assert_scores(found, expected):
    """The answers of a pipeline: (name or id, probability) in this order."""
    names = [one.get("label", one.get("token")) for one in found]
    assert names == [name for name, _ in expected]
    assert [one["score"] for one in found] == pytest.approx([score for _, score in expected], abs=1e-5)


def ranked(logits):
    """(label, probability) of each label, the most probable first."""
    pairs = zip(LABELS, logits.softmax(-1).tolist(), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


@doing("AutoModelForCausalLM")
def test_texts_are_gone_on_with(case, tmp_path):
    pipe = opened("text-generation", case, tmp_path, tie_word_embeddings=False)
    model, tokenizer, options = pipe.model, pipe.tokenizer, {"max_new_tokens": 6}
    expected = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        whole = plain_greedy(model, ids, 6)
        expected.append(tokenizer.decode(whole[len(ids) :], skip_special_tokens=True))
        assert tokenizer.decode(whole, skip_special_tokens=True) == " " + prompt + expected[-1]
    assert len(set(expected)) > 1
    for prompt, text in zip(PROMPTS, expected, strict=True):
        assert pipe(prompt, do_sample=False, **options) == [{"generated_text": prompt + text}]
    alone = pipe(PROMPTS, do_sample=False, return_full_text=False, **options)
    assert [one["generated_text"] for (one,) in alone] == expected
    together = pipe(PROMPTS, do_sample=False, return_full_text=False, batch_size=3, **options)  # padded on the left
    assert together == alone

    options |= {"do_sample": True, "temperature": 1.5, "num_return_sequences": 4, "top_k": 0}
    torch.manual_seed(3)
    samples = [one["generated_text"] for one in pipe(PROMPTS[1], **options)]
    torch.manual_seed(3)
    ids = tokenizer(PROMPTS[1], return_tensors="pt")
    rows = model.generate(**ids, **options)[:, ids["input_ids"].shape[1] :]
    assert samples == [PROMPTS[1] + tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    assert len(set(samples)) > 1


@doing("AutoModelForMaskedLM")
def test_masks_are_filled(case, tmp_path):
    pipe = opened("fill-mask", case, tmp_path)
    tokenizer, mask = pipe.tokenizer, pipe.tokenizer.mask_token_id

    def fills(text, count=5, targets=None):
        """For each mask the (id, probability) of the best fills, and the text with each."""
        ids = tokenizer(text)["input_ids"]
        probabilities = by_hand(pipe, text).logits[0].softmax(-1)
        found = []
        for place in (place for place, token in enumerate(ids) if token == mask):
            best = sorted(targets or range(len(tokenizer)), key=lambda token: -probabilities[place, token])[:count]
            texts = [
                tokenizer.decode([*ids[:place], token, *ids[place + 1 :]], skip_special_tokens=True) for token in best
            ]
            found.append(([(token, probabilities[place, token].item()) for token in best], texts))
        return found

    text = f"The {tokenizer.mask_token} sees the old dog."
    ((expected, texts),) = fills(text, 3)
    filled = pipe(text, top_k=3)
    assert_scores(filled, expected)
    assert [one["sequence"] for one in filled] == texts
    assert [one["token_str"] for one in filled] == [tokenizer.decode([token]) for token, _ in expected]
    targets = tokenizer.convert_tokens_to_ids(["▁dog", "▁cat", "▁red"])
    assert tokenizer.unk_token_id not in targets
    ((expected, _),) = fills(text, targets=targets)
    assert_scores(pipe(text, targets=["▁dog", "▁cat", "▁red"]), expected)

    several = "the <mask> sees a <mask>, and the <mask>."
    results = pipe([text, several], batch_size=2)  # the first is padded
    assert_scores(results[0], fills(text)[0][0])
    for filled, (expected, _) in zip(results[1], fills(several), strict=True):
        assert_scores(filled, expected)
    with pytest.raises(transformers.pipelines.PipelineException, match="No mask_token"):
        pipe("the cat")


@doing("AutoModelForSequenceClassification")
def test_texts_are_classified(case, tmp_path):
    pipe = opened("text-classification", case, tmp_path, **NAMES)
    results = pipe(TEXTS, top_k=None, batch_size=3)
    for text, together in zip(TEXTS, results, strict=True):
        expected = ranked(by_hand(pipe, text).logits[0])
        assert_scores(together, expected)
        assert_scores(pipe(text), expected[:1])
    pair = {"text": TEXTS[0], "text_pair": TEXTS[2]}
    assert_scores(pipe(pair, top_k=None), ranked(by_hand(pipe, TEXTS[0], TEXTS[2]).logits[0]))
    assert_scores(pipe(pair | {"text": TEXTS[1]}, top_k=2), ranked(by_hand(pipe, TEXTS[1], TEXTS[2]).logits[0])[:2])


def groups(items):
    """Neighbours of one label become one: (label, mean probability, start, end); "O" is left out."""
    found = []
    for label, group in itertools.groupby(items, key=lambda item: item[0]):
        _, scores, starts, ends = zip(*group, strict=True)
        if label != "O":
            found.append((label, pytest.approx(np.mean(scores), abs=1e-5), starts[0], ends[-1]))
    return found


@doing("AutoModelForTokenClassification")
def test_tokens_are_classified_one_by_one_and_by_words(case, tmp_path):
    seen = set()
    for seed, text in enumerate([*TEXTS, "The OLD dogs reddish birds"]):
        pipe = opened("token-classification", case, tmp_path, seed, **NAMES)
        probabilities = by_hand(pipe, text).logits[0].softmax(-1)[1:-1]
        encoding = pipe.tokenizer(text, return_offsets_mapping=True)
        pieces = [  # (label, probability, start, end); the space before a word belongs to its first piece
            (LABELS[row.argmax()], row.max().item(), start, end)
            for row, (start, end) in zip(probabilities, encoding["offset_mapping"][1:-1], strict=True)
        ]
        assert "".join(text[start:end] for *_, start, end in pieces) == text
        found = pipe(text)
        assert [(one["entity"], one["start"], one["end"]) for one in found] == [
            (label, start, end) for label, _, start, end in pieces if label != "O"
        ]

        words = []  # what stands between spaces, with the label of its first piece
        for piece in pieces:
            begins = piece[2] == 0 or text[piece[2]] == " "
            words = [*words, piece] if begins else [*words[:-1], (*words[-1][:3], piece[3])]
        for strategy, items in (("simple", pieces), ("first", words)):
            found = pipe(text, aggregation_strategy=strategy)
            assert [(one["entity_group"], one["score"], one["start"], one["end"]) for one in found] == groups(items)
            seen |= {one["entity_group"] for one in found}
    assert seen == {"animal", "colour"}


@doing("AutoModel", variants=False)
def test_features_of_a_text_are_the_states_of_the_model(case, tmp_path):
    pipe = opened("feature-extraction", case, tmp_path)
    for text in TEXTS:
        found = torch.tensor(pipe(text))
        torch.testing.assert_close(found, by_hand(pipe, text).last_hidden_state)
        assert found.shape[1] == len(pipe.tokenizer(text)["input_ids"])


def pictures(case):
    """Random pictures of the size that the model reads, and their values from -1 to 1."""
    size = case.config().image_size
    pixels = np.random.default_rng(0).integers(0, 256, (3, size, size, 3), dtype=np.uint8)
    values = torch.tensor(pixels).permute(0, 3, 1, 2).float() / 255 * 2 - 1
    return [Image.fromarray(one) for one in pixels], values


@doing("AutoModelForImageClassification", text=False)
def test_pictures_are_classified(case, tmp_path):
    pipe = opened("image-classification", case, tmp_path / "model", num_channels=3, **NAMES)
    images, values = pictures(case)
    images[0].save(tmp_path / "picture.png")
    with torch.no_grad():
        logits = pipe.model(pixel_values=values).logits
    for found, row in zip(pipe(images, batch_size=2), logits, strict=True):
        assert_scores(found, ranked(row))
    assert_scores(pipe(str(tmp_path / "picture.png"), top_k=2), ranked(logits[0])[:2])
    assert len({ranked(row)[0] for row in logits}) > 1


@doing("AutoModel", text=False)
def test_features_of_a_picture_are_the_states_of_the_model(case, tmp_path):
    pipe = opened("image-feature-extraction", case, tmp_path, num_channels=3)
    images, values = pictures(case)
    with torch.no_grad():
        outputs = pipe.model(pixel_values=values)
    for number, image in enumerate(images):
        torch.testing.assert_close(torch.tensor(pipe(image)[0]), outputs.last_hidden_state[number])
        if outputs.get("pooler_output") is not None:
            torch.testing.assert_close(torch.tensor(pipe(image, pool=True)[0]), outputs.pooler_output[number])
