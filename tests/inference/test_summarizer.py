"""BERTSUM: what it reads, what it computes, what it chooses, and that it learns to compare sentences."""

import json

import pytest
import torch
from scripting import load_script
from torch.nn import functional as F

from hf_attn.data.summaries import names_of, shared_name_documents
from hf_attn.data.text import train_text_tokenizer
from hf_attn.inference.summarizer import (
    AttnBertForExtractiveSummarization,
    Summarizer,
    SummaryCollator,
    encode_document,
)
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM
from hf_attn.models.positions import sinusoidal

DOCUMENTS = [
    ["The old man reads.", "A woman sings and dances.", "The house is red.", "He reads."],
    ["It rains.", "The red house is old."],
]
VARIANTS = {"post-norm": {}, "pre-norm": {"norm_first": True, "position_type": "rotary"}}


@pytest.fixture(scope="module")
def tokenizer():
    return train_text_tokenizer([sentence for document in DOCUMENTS for sentence in document], 300, masked=True)


def make_model(tokenizer, **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = AttnBertConfig(vocab_size=len(tokenizer), initializer_range=0.3, **sizes, **options)
    return AttnBertForExtractiveSummarization(config).eval()


def test_each_sentence_begins_and_ends_and_segments_take_turns(tokenizer):
    encoded = encode_document(DOCUMENTS[0], tokenizer)
    alone = [tokenizer(sentence)["input_ids"] for sentence in DOCUMENTS[0]]
    assert encoded["input_ids"] == sum(alone, [])
    assert [encoded["input_ids"][place] for place in encoded["sentence_positions"]] == [tokenizer.bos_token_id] * 4
    assert encoded["token_type_ids"] == sum(([number % 2] * len(ids) for number, ids in enumerate(alone)), [])
    two = len(alone[0]) + len(alone[1])
    for most, sentences in ((two, 2), (two + len(alone[2]) - 1, 2), (two - 1, 1)):
        cut = encode_document(DOCUMENTS[0], tokenizer, most)
        assert len(cut["sentence_positions"]) == sentences and len(cut["input_ids"]) <= most
    for sentences, most in (([], 512), (DOCUMENTS[0], 3)):
        with pytest.raises(ValueError, match="must be one at least"):
            encode_document(sentences, tokenizer, most)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_those_of_a_document_alone(tokenizer, variant):
    model, collate = make_model(tokenizer, **VARIANTS[variant]), SummaryCollator(tokenizer)
    rows = [encode_document(document, tokenizer) for document in DOCUMENTS]
    with torch.no_grad():
        together = model(**collate(rows)).logits
        for row, scores in zip(rows, together):
            alone = model(**collate([row])).logits[0]
            assert torch.allclose(scores[: len(alone)], alone, atol=1e-5)
    assert alone.std() > 1e-3


def test_sentences_are_read_at_their_first_token_and_attend_to_each_other(tokenizer):
    model = make_model(tokenizer)
    batch = SummaryCollator(tokenizer)([encode_document(DOCUMENTS[0], tokenizer) | {"labels": [1, 0, 0, 1]}])
    with torch.no_grad():
        outputs = model(**batch, output_attentions=True)
        encoder = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
        states = model.model(**encoder).last_hidden_state[0]
        states = torch.stack([states[place] for place in batch["sentence_positions"][0]])[None]
        states = states + sinusoidal(torch.arange(4), 16)
        for layer, weights in zip(model.sentence_layers, outputs.attentions):
            states, expected = layer(states, output_attentions=True)
            assert torch.allclose(weights, expected, atol=1e-6) and tuple(weights.shape) == (1, 2, 4, 4)
        logits = model.classifier(states)[..., 0]
    assert torch.allclose(outputs.logits, logits, atol=1e-5)
    expected = F.binary_cross_entropy_with_logits(logits, torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
    assert outputs.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_model_of_one_segment_is_refused(tokenizer):
    with pytest.raises(ValueError, match="type_vocab_size=1"):
        make_model(tokenizer, type_vocab_size=1)


def test_the_best_sentences_are_chosen_in_the_order_of_the_document(tokenizer, tmp_path):
    model = make_model(tokenizer)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    document = [*DOCUMENTS[0], "A woman sings and laughs."]
    loaded = Summarizer(str(tmp_path))
    for count in (1, 2, 5):
        summary = loaded(document, count, block_trigrams=False)
        best = sorted(range(5), key=lambda number: -summary.scores[number])[:count]
        assert summary.numbers == sorted(best)
        assert summary.sentences == [document[number] for number in sorted(best)]
        assert summary.text == " ".join(summary.sentences)
    blocked = loaded(document, 5)
    better, worse = sorted((1, 4), key=lambda number: -blocked.scores[number])  # "a woman sings" stands in both
    assert better in blocked.numbers and worse not in blocked.numbers and len(blocked.numbers) == 4
    assert Summarizer(model, tokenizer)(document).scores == pytest.approx(blocked.scores)
    with pytest.raises(ValueError, match="tokenizer is missing"):
        Summarizer(model)


def test_three_sentences_of_a_document_share_a_name_and_no_others_do():
    documents = shared_name_documents("validation", 50, sentences=6, seed=3)
    known = frozenset(name for row in documents for text in row["sentences"] for name in names_of(text))
    for row in documents:
        places = {}
        for number, text in enumerate(row["sentences"]):
            for name in names_of(text, known):
                places.setdefault(name, []).append(number)
        shared = [numbers for numbers in places.values() if len(numbers) > 1]
        assert len(row["sentences"]) == 6 and len(shared) == 1 and len(shared[0]) == 3
        assert row["summary"] == " ".join(row["sentences"][number] for number in shared[0])
    with pytest.raises(ValueError, match="sentences=3"):
        shared_name_documents(sentences=3)


def test_the_script_learns_measures_and_summarises(tmp_path, capsys):
    """Which sentences are marked is learned from a word; that of a document is said by the summary alone."""
    script = load_script("scripts/summarize.py")
    verbs = ["reads", "sings", "sleeps", "waits", "runs", "stays", "jumps", "falls"]
    documents = []
    for number in range(24):
        sentences = [f"{'Surely' if (number + place) % 4 == 0 else 'Maybe'} he {verbs[place]}." for place in range(8)]
        documents.append({"sentences": sentences, "summary": " ".join(s for s in sentences if s.startswith("Surely"))})
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    output = tmp_path / "out"
    words = ["--output_dir", str(output), "--use_cpu", "--bf16", "false", "--disable_tqdm", "true"]
    learn = ["--train_file", str(file), "--test_file", str(file), "--vocab_size", "300", "--count", "2"]
    learn += ["--num_train_epochs", "30", "--per_device_train_batch_size", "8", "--save_strategy", "no"]
    results = script.main([*words, *learn, "--learning_rate", "3e-3"])
    assert results["oracle"]["rouge1"] == pytest.approx(1.0) and results["lead"]["rouge1"] < 0.8
    assert results["model"]["rouge1"] > 0.95
    (tmp_path / "text.txt").write_text("\n".join(documents[0]["sentences"]), encoding="utf-8")
    capsys.readouterr()
    found = script.main([*words, "--model_name_or_path", str(output), "--document", str(tmp_path / "text.txt"),
                         "--count", "2"])  # fmt: skip
    assert capsys.readouterr().out.split("\n")[:-1] == found["sentences"]
    assert all(sentence.startswith("Surely") for sentence in found["sentences"])
    with pytest.raises(ValueError, match="go together"):
        script.main([*words, "--train_file", str(file)])


WRONG_DOCUMENTS = [
    "no JSON",
    "[]",
    '{"sentences": ["a"]}',
    '{"sentences": "a b", "summary": "a"}',
    '{"sentences": [], "summary": "a"}',
    '{"sentences": [1], "summary": "a"}',
    '{"sentences": ["a", ""], "summary": "a"}',
    '{"sentences": ["a"], "summary": 1}',
    '{"sentences": ["a \\ud800"], "summary": "a"}',
]


@pytest.mark.parametrize("line", WRONG_DOCUMENTS)
def test_a_line_that_is_no_document_is_named(line, tmp_path):
    right = tmp_path / "right.jsonl"
    right.write_text('{"sentences": ["a"], "summary": "a"}\n', encoding="utf-8")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(f"{right.read_text()}\n{line}\n", encoding="utf-8")
    script = load_script("scripts/summarize.py")
    for train, test in ((wrong, right), (right, wrong)):
        with pytest.raises(ValueError, match="wrong.jsonl, line 3: must have 'sentences'"):
            script.main(["--train_file", str(train), "--test_file", str(test), "--output_dir", str(tmp_path / "out")])
    wrong.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="wrong.jsonl holds no documents"):
        script.main(["--train_file", str(right), "--test_file", str(wrong), "--output_dir", str(tmp_path / "out")])


def test_a_model_that_never_learned_to_summarise_is_refused(tokenizer, tmp_path):
    """Else its layers would be drawn by chance, and the summary be nonsense."""
    model = make_model(tokenizer)
    for other in (model.model, AttnBertForMaskedLM(model.config)):
        other.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="holds no trained summariser: classifier.bias is missing"):
            Summarizer(tmp_path)


@pytest.mark.parametrize("count", [0, -1])
def test_a_summary_has_one_sentence_at_least(tokenizer, count):
    with pytest.raises(ValueError, match="count="):
        Summarizer(make_model(tokenizer), tokenizer)(["a", "b"], count)
    with pytest.raises(ValueError, match="count="):
        load_script("scripts/summarize.py").main(["--count", str(count), "--output_dir", "out"])
