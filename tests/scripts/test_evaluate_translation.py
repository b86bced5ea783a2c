"""scripts/evaluate_translation.py against sacrebleu and sums written out."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch
from transformers import HfArgumentParser, MarianConfig, MarianMTModel

from hf_attn.data import phrasebook, split_words, train_tokenizer
from hf_attn.inference import Translator

SCRIPT = Path(__file__).parents[2] / "scripts" / "evaluate_translation.py"
ROWS = [
    ("The cat sleeps.", "Le chat dort."),
    ("The cat sleeps.", "Le chat est en train de dormir."),
    ("I see the red house.", "Je vois la maison rouge."),
    ("Yes!", "Oui !"),
]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("evaluate_translation_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model with two decoder layers of two heads, taught four pairs for a moment."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer([side for row in ROWS for side in row], 320)
    config = MarianConfig(
        vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        forced_eos_token_id=None, dropout=0.0, attn_implementation="eager",
    )  # fmt: skip
    model = MarianMTModel(config)
    inputs = tokenizer([source for source, _ in ROWS], padding=True, return_tensors="pt")
    labels = tokenizer([target for _, target in ROWS], padding=True, return_tensors="pt").input_ids
    labels = labels.masked_fill(labels == 0, -100)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


def run(script, *arguments):
    (parsed,) = HfArgumentParser(script.EvaluationArguments).parse_args_into_dataclasses(list(map(str, arguments)))
    return script.main(parsed)


def test_a_file_with_several_references(script, folder, tmp_path):
    test_file = tmp_path / "pairs.tsv"
    test_file.write_text("".join(f"{source}\t{target}\n" for source, target in ROWS), encoding="utf-8")
    arguments = ["--model_name_or_path", folder, "--test_file", test_file, "--source_lang", "en", "--target_lang", "fr"]
    results = run(script, *arguments, "--output_dir", tmp_path / "out", "--num_beams", 2)
    written = json.loads((tmp_path / "out" / "evaluation.json").read_text(encoding="utf-8"))
    assert written == results

    translations = Translator(folder)(["The cat sleeps.", "I see the red house.", "Yes!"], num_beams=2)
    texts = [translation.text for translation in translations]
    assert (tmp_path / "out" / "generated_predictions.txt").read_text(encoding="utf-8").splitlines() == texts
    streams = [["Le chat dort.", "Je vois la maison rouge.", "Oui !"], ["Le chat est en train de dormir.", None, None]]
    assert results["bleu"] == pytest.approx(sacrebleu.corpus_bleu(texts, streams).score)
    assert results["bleu"] > 0
    assert results["chrf"] == pytest.approx(sacrebleu.corpus_chrf(texts, streams).score)
    assert results["sentences"] == 3
    assert results["truncated"] == sum(translation.target_tokens[-1] != "</s>" for translation in translations)
    assert results["empty"] == sum(text == "" for text in texts)

    model, tokenizer = Translator(folder).model, Translator(folder).tokenizer
    total, count = 0.0, 0
    for source, target in ROWS:  # every reference, each alone
        labels = tokenizer(target, return_tensors="pt").input_ids
        total += float(model(**tokenizer(source, return_tensors="pt"), labels=labels).loss.detach()) * labels.shape[1]
        count += labels.shape[1]
    assert results["tokens"] == count
    assert results["perplexity"] == pytest.approx(math.exp(total / count), rel=1e-4)
    one_by_one = run(script, *arguments, "--output_dir", tmp_path / "out", "--batch_size", 1)
    assert one_by_one["perplexity"] == pytest.approx(results["perplexity"], rel=1e-4)


def test_alignment_on_the_phrasebook(script, folder, tmp_path):
    results = run(script, "--model_name_or_path", folder, "--phrasebook", "en-fr", "--max_samples", 5, "--alignment",
                  "--output_dir", tmp_path)["alignment"]  # fmt: skip
    places = [f"layer {layer}, {head}" for layer in (1, 2) for head in ("mean of heads", "head 1", "head 2")]
    assert sorted(results["error_rates"]) == sorted(places)
    best = results["chosen_on_validation"]
    assert results["validation_error_rates"][best] == min(results["validation_error_rates"].values())
    assert results["chosen"]["alignment_error_rate"] == results["error_rates"][best]
    assert results["last_layer_all_heads"]["alignment_error_rate"] == results["error_rates"]["layer 2, mean of heads"]

    found, sure_count, hits, diagonal_found, diagonal_hits = 0, 0, 0, 0, 0
    translator = Translator(folder)
    for row in phrasebook("en-fr", "test", 5):
        source, target = row["translation"]["en"], row["translation"]["fr"]
        sure = {tuple(link) for link in row["sure"]}
        possible = sure | {tuple(link) for link in row["possible"]}
        sure_count += len(sure)
        source_len, target_len = len(split_words(source)), len(split_words(target))
        weights = translator.score(source, target).alignment(layer=0, heads=1).weights.tolist()
        assert len(weights) == target_len + 1 and len(weights[0]) == source_len + 1
        for word in range(target_len):
            link = (weights[word].index(max(weights[word])), word)
            if link[0] < source_len:
                found += 1
                hits += (link in sure) + (link in possible)
            link = (int((word + 0.5) / target_len * source_len), word)
            diagonal_found += 1
            diagonal_hits += (link in sure) + (link in possible)
    assert results["error_rates"]["layer 1, head 2"] == pytest.approx(1 - hits / (found + sure_count))
    expected = 1 - diagonal_hits / (diagonal_found + sure_count)
    assert results["diagonal"]["alignment_error_rate"] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of test_file and phrasebook"),
        (["--test_file", "a.tsv", "--phrasebook", "en-ko"], "exactly one"),
        (["--test_file", "a.tsv"], "needs source_lang and target_lang"),
        (["--phrasebook", "en-ko", "--max_samples", "0"], "max_samples=0 must be at least 1"),
        (["--test_file", "a.tsv", "--source_lang", "en", "--target_lang", "fr", "--alignment"], "gold word links"),
    ],
)
def test_arguments_that_do_not_fit(script, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(script, "--model_name_or_path", "x", "--output_dir", tmp_path, *arguments)
