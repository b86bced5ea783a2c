"""scripts/evaluate_translation.py against sacrebleu and sums written out."""

import json
import math

import pytest
import sacrebleu
import torch
from scripting import load_script
from transformers import HfArgumentParser, MarianConfig, MarianMTModel

from hf_attn.data import phrasebook, split_words, train_tokenizer
from hf_attn.evaluation import count_failures
from hf_attn.inference import Translator
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration

ROWS = [
    ("The cat sleeps.", "Le chat dort."),
    ("The cat sleeps.", "Le chat est en train de dormir."),
    ("I see the red house.", "Je vois la maison rouge."),
    ("Yes!", "Oui !"),
]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    return load_script("scripts/evaluate_translation.py")


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
    assert results["failures"] == count_failures(translation.failures("en", "fr") for translation in translations)
    sheet = (tmp_path / "out" / "failures.html").read_text(encoding="utf-8")
    assert sheet.count("<tr data-kinds=") == 3 and "Le chat est en train de dormir." in sheet

    model, tokenizer = Translator(folder).model, Translator(folder).tokenizer
    total, count = 0.0, 0
    for source, target in ROWS:  # every reference, each alone
        labels = tokenizer(target, return_tensors="pt").input_ids
        total += float(model(**tokenizer(source, return_tensors="pt"), labels=labels).loss.detach()) * labels.shape[1]
        count += labels.shape[1]
    assert results["tokens"] == count
    assert results["perplexity"] == pytest.approx(math.exp(total / count), rel=1e-4)

    baseline = tmp_path / "baseline.txt"
    baseline.write_text("Le chat dort.\nLa maison rouge.\nNon !\n", encoding="utf-8")
    arguments += ["--baseline_predictions", baseline]
    one_by_one = run(script, *arguments, "--output_dir", tmp_path / "out", "--batch_size", 1)
    assert one_by_one["perplexity"] == pytest.approx(results["perplexity"], rel=1e-4)
    above = one_by_one["above_baseline"]
    other = sacrebleu.corpus_bleu(baseline.read_text(encoding="utf-8").splitlines(), streams).score
    greedy = (tmp_path / "out" / "generated_predictions.txt").read_text(encoding="utf-8").splitlines()
    assert above["bleu"]["difference"] == pytest.approx(sacrebleu.corpus_bleu(greedy, streams).score - other)
    # n-grams of the baseline: 10 of 10; of "Je vois la maison rouge." and "La maison rouge." 6 of 18; "!" 1 of 3
    expected = one_by_one["sentence_gleu"] - 100 * (1 + 6 / 18 + 1 / 3) / 3
    assert above["sentence_gleu"]["difference"] == pytest.approx(expected)
    assert above["sentence_gleu"]["low"] <= expected <= above["sentence_gleu"]["high"]
    baseline.write_text("Le chat dort.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has 1 lines for 3 sources"):
        run(script, *arguments, "--output_dir", tmp_path / "out")


@pytest.fixture
def short_phrasebook(script, monkeypatch):
    """The script's phrasebook, with a training split of 30 sentences."""
    whole = script.phrasebook
    monkeypatch.setattr(
        script, "phrasebook", lambda pair, split, size=None: whole(pair, split, 30 if split == "train" else size)
    )


def error_rate(links_of_pair, rows):
    """1 - (|A and S| + |A and P|) / (|A| + |S|), counted link by link."""
    found = sure_count = hits = 0
    for links, row in zip(links_of_pair, rows, strict=True):
        sure = {tuple(link) for link in row["sure"]}
        possible = sure | {tuple(link) for link in row["possible"]}
        sure_count += len(sure)
        for link in links:
            found += 1
            hits += (link in sure) + (link in possible)
    return 1 - hits / (found + sure_count)


def test_alignment_on_the_phrasebook(script, folder, tmp_path, short_phrasebook):
    results = run(script, "--model_name_or_path", folder, "--phrasebook", "en-fr", "--max_samples", 5, "--alignment",
                  "--output_dir", tmp_path)["alignment"]  # fmt: skip
    translator = Translator(folder)
    heads = {"mean of heads": [0, 1], "head 1": [0], "head 2": [1]}
    rates = {}
    for split in ("validation", "test"):
        rows = list(phrasebook("en-fr", split, 5))
        for method, shift in (("weights", 0), ("shifted", 1)):
            for layer in (0, 1):
                for name, chosen in heads.items():
                    links_of_pair = []
                    for row in rows:
                        forced = translator.score(row["translation"]["en"], row["translation"]["fr"])
                        pieces = forced.cross_attentions[layer, chosen].mean(dim=0)
                        words, links = forced.words(), []
                        for number, target in enumerate(words.target_pieces[:-1]):
                            row_of_word = sum(pieces[piece + shift] for piece in target)
                            by_word = [float(sum(row_of_word[piece] for piece in w)) for w in words.source_pieces]
                            best = by_word.index(max(by_word))
                            if best < len(by_word) - 1:
                                links.append((best, number))
                        links_of_pair.append(links)
                    rates[split, method, f"layer {layer + 1}, {name}"] = error_rate(links_of_pair, rows)
    measured = results["by_layer_and_head"]
    assert set(measured) == {"weights", "shifted"}  # Marian does not tell the norms of its values
    for (split, method, place), rate in rates.items():
        if split == "test":
            assert measured[method][place] == pytest.approx(rate)
    split, method, place = min((key for key in rates if key[0] == "validation"), key=rates.__getitem__)
    layer, _, head = place.partition(", ")
    chosen = {"method": method, "layer": int(layer[-1]) - 1, "heads": heads[head] if head != "mean of heads" else None}
    assert results["chosen"] == chosen

    table = {(row["aligner"], row["place"]): row for row in results["table"]}
    assert (
        table["recommended by the model", ""]["alignment_error_rate"] == measured["weights"]["layer 2, mean of heads"]
    )
    assert table[method, f"{place} (best on validation)"]["alignment_error_rate"] == measured[method][place]
    rows, lines = list(phrasebook("en-fr", "test", 5)), []
    for row in rows:
        source_len, target_len = (len(split_words(row["translation"][lang])) for lang in ("en", "fr"))
        lines.append([(round(t * (source_len - 1) / (target_len - 1)), t) for t in range(target_len)])
    assert table["diagonal", ""]["alignment_error_rate"] == pytest.approx(error_rate(lines, rows))
    assert table["IBM Model 1", ""]["links"] == sum(len(line) for line in lines)
    written = (tmp_path / "alignment.md").read_text(encoding="utf-8").splitlines()
    assert written[0] == "| aligner | place | alignment error rate | precision | recall | links | sure |"
    assert len(written) == 2 + len(results["table"])


def test_alignment_by_anchors_and_the_recommendation(script, tmp_path):
    torch.manual_seed(0)
    train = tmp_path / "train.tsv"
    train.write_text("".join(f"{source}\t{target}\n" for source, target in ROWS), encoding="utf-8")
    tokenizer = train_tokenizer([side for row in ROWS for side in row], 320)
    config = AttnTransformerConfig(
        vocab_size=len(tokenizer), hidden_size=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_intermediate_size=16, decoder_intermediate_size=16, initializer_range=0.5,
    )  # fmt: skip
    model = tmp_path / "model"
    AttnTransformerForConditionalGeneration(config).save_pretrained(model)
    tokenizer.save_pretrained(model)
    pairs = [
        {"src": source[:-1].split() + ["."], "tgt": target[:-1].split() + ["."], "spans": [[0, 1, 0, 1], [2, 2, 2, 2]]}
        for source, target in ROWS[:3] * 4
    ]
    anchors = tmp_path / "anchors.jsonl"
    anchors.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    out = tmp_path / "out"
    results = run(script, "--model_name_or_path", model, "--anchors_file", anchors, "--train_file", train,
                  "--source_lang", "en", "--target_lang", "fr", "--output_dir", out, "--recommend")  # fmt: skip
    assert "bleu" not in results and not (out / "generated_predictions.txt").exists()
    alignment = results["alignment"]
    assert alignment["metric"] == "anchor_accuracy"
    assert {row["anchored_tokens"] for row in alignment["table"]} == {3 * 9}  # every fifth of 12 chose

    right = count = 0
    translator = Translator(str(model))
    for number, pair in enumerate(pairs):
        if number % 5:
            forced = translator.score(" ".join(pair["src"][:-1]) + ".", " ".join(pair["tgt"][:-1]) + ".")
            words = forced.words()
            weights = forced.cross_attentions[1, 0] * forced.value_norms[1, 0]
            for first, last, target, target_last in pair["spans"]:
                for word in range(target, target_last + 1):
                    rows = [weights[piece] / weights[piece].sum() for piece in words.target_pieces[word]]
                    by_word = [float(sum(sum(r[p] for p in w) for r in rows)) for w in words.source_pieces[:-1]]
                    right += first <= by_word.index(max(by_word)) <= last
                    count += 1
    assert alignment["by_layer_and_head"]["value_norm"]["layer 2, head 1"] == pytest.approx(right / count)

    chosen = alignment["chosen"]
    loaded = Translator(str(model))
    said = {name: getattr(loaded.model.config, f"alignment_{name}") for name in ("method", "layer", "heads")}
    assert said == chosen
    again = loaded.score(*ROWS[0]).alignment()
    explicit = loaded.score(*ROWS[0]).alignment(
        chosen["layer"], [0, 1] if chosen["heads"] is None else chosen["heads"], method=chosen["method"]
    )
    assert again.description == explicit.description
    assert torch.equal(again.weights, explicit.weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of test_file, phrasebook and anchors_file"),
        (["--test_file", "a.tsv", "--phrasebook", "en-ko"], "exactly one"),
        (["--test_file", "a.tsv"], "need source_lang and target_lang"),
        (["--phrasebook", "en-ko", "--max_samples", "0"], "max_samples=0 must be at least 1"),
        (["--test_file", "a.tsv", "--source_lang", "en", "--target_lang", "fr", "--alignment"], "gold word links"),
        (
            ["--anchors_file", "a", "--source_lang", "en", "--target_lang", "fr"],
            "anchors_file and train_file go together",
        ),
        (["--phrasebook", "en-ko", "--recommend"], "recommend needs a measured alignment"),
        (["--phrasebook", "en-ko", "--recommend", "--alignment"], "recommend needs a folder to write to"),
    ],
)
def test_arguments_that_do_not_fit(script, arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(script, "--model_name_or_path", "x", "--output_dir", tmp_path, *arguments)
