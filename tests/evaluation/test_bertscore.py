# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BERTScore against loops over single vectors, the authors' program, and numbers worked out by hand."""

import math

import pytest
import torch
from contract import cases
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaTokenizer

from hf_attn.evaluation import bert_scores, load_metric
from hf_attn.evaluation.bertscore import inverse_document_frequencies, match_vectors

WORDS = "[PAD] [UNK] [CLS] [SEP] the cat sat on a mat dog runs fast slow red".split()
HYPOTHESES = ["the cat sat on a mat", "dog runs fast", "red", "the the the", "a slow red dog"]
REFERENCES = ["the cat sat on the mat", "the slow dog runs", "a dog runs slow", "the", "a red cat sat"]


def word_tokenizer(template="[CLS] $A [SEP]", **options):
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [(word, WORDS.index(word)) for word in ("[CLS]", "[SEP]") if word in template]
    backend.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names, **options)


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, initializer_range=0.5, **sizes)
    return {"model": BertModel(config).eval(), "tokenizer": word_tokenizer(model_max_length=16)}


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other))
    return dot / math.sqrt(sum(a * a for a in one)) / math.sqrt(sum(b * b for b in other))


def by_definition(hypothesis, reference, hypothesis_weights, reference_weights):
    """Equations of section 3, over lists of single vectors."""
    precision = recall = 0.0
    for vector, weight in zip(hypothesis, hypothesis_weights):
        precision += weight * max(cosine(vector, other) for other in reference) / sum(hypothesis_weights)
    for vector, weight in zip(reference, reference_weights):
        recall += weight * max(cosine(vector, other) for other in hypothesis) / sum(reference_weights)
    return precision, recall, 2 * precision * recall / (precision + recall)


def test_each_token_meets_the_closest_one_of_the_other_text():
    generator = torch.Generator().manual_seed(0)
    for lengths in ((1, 1), (4, 7), (6, 2)):
        vectors = [torch.randn(length, 5, generator=generator) for length in lengths]
        weights = [torch.rand(length, generator=generator) for length in lengths]
        expected = by_definition(*(tensor.tolist() for tensor in (*vectors, *weights)))
        assert match_vectors(*vectors, *weights) == pytest.approx(expected, abs=1e-5)


def encode(encoder, tokenizer, text, layer):
    """The vectors of one text alone, and its ids."""
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        outputs = encoder(input_ids=torch.tensor([ids]), output_hidden_states=True, return_dict=True)
    states = outputs.last_hidden_state if layer is None else outputs.hidden_states[layer]
    return states[0].tolist(), ids


@pytest.mark.parametrize("layer", [None, 0, 2, -2])
@pytest.mark.parametrize("idf", [False, True])
def test_vectors_are_those_of_each_text_alone_and_special_tokens_weigh_nothing(bert, layer, idf):
    scores = bert_scores(HYPOTHESES, REFERENCES, layer=layer, idf=idf, batch_size=3, sentence_scores=True, **bert)
    documents = [set(text.split()) for text in REFERENCES]
    expected = []
    for pair in zip(HYPOTHESES, REFERENCES):
        vectors, ids = zip(*(encode(bert["model"], bert["tokenizer"], text, layer) for text in pair))
        weights = []
        for words in ([WORDS[i] for i in its] for its in ids):
            having = [sum(word in document for document in documents) for word in words]
            idfs = [math.log(6 / (count + 1)) if idf else 1.0 for count in having]
            weights.append([0.0 if word in ("[CLS]", "[SEP]") else one for word, one in zip(words, idfs)])
        expected.append(by_definition(*vectors, *weights))
    for name, column in zip(("precision", "recall", "f1"), zip(*expected)):
        assert scores["sentence_scores"][name] == pytest.approx(column, abs=1e-5)
        assert scores[name] == pytest.approx(sum(column) / len(column), abs=1e-5)


@pytest.mark.parametrize("idf", [False, True])
def test_it_is_what_the_program_of_the_authors_computes(bert, idf, tmp_path):
    import bert_score

    for part in bert.values():
        part.save_pretrained(tmp_path / "bert")
    baselines = tmp_path / "baselines.csv"
    baselines.write_text("LAYER,P,R,F\n" + "".join(f"{layer},0.1,0.2,0.15\n" for layer in range(4)))
    options = {"num_layers": 2, "idf": idf, "nthreads": 0, "device": "cpu", "lang": "en", "batch_size": 2}
    for baseline, rescaling in (
        (None, {}),
        ((0.1, 0.2, 0.15), {"rescale_with_baseline": True, "baseline_path": str(baselines)}),
    ):
        expected = bert_score.score(HYPOTHESES, REFERENCES, model_type=str(tmp_path / "bert"), **options, **rescaling)
        scores = bert_scores(
            HYPOTHESES, REFERENCES, model=tmp_path / "bert", layer=2, idf=idf, baseline=baseline, sentence_scores=True
        )
        for column, other in zip(scores["sentence_scores"].values(), expected, strict=True):
            assert column == pytest.approx(other.tolist(), abs=1e-5)


def test_inverse_document_frequencies_by_hand():
    # three references; 5 is in all of them, 6 in two, 7 twice in one
    expected = {5: math.log(4 / 4), 6: math.log(4 / 3), 7: math.log(4 / 2), None: math.log(4 / 1)}
    assert inverse_document_frequencies([[5, 6], [5, 6], [7, 5, 7]]) == pytest.approx(expected)


@pytest.mark.parametrize("idf", [False, True])
def test_identical_texts_score_one(bert, idf):
    for texts in (REFERENCES, REFERENCES[:1]):  # of a single reference every idf is log(2 / 2)
        scores = bert_scores(texts, texts, idf=idf, **bert)
        assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx([1, 1, 1], abs=1e-5)


def test_exchanging_the_texts_exchanges_precision_and_recall(bert):
    one, other = (
        bert_scores(*texts, sentence_scores=True, **bert)["sentence_scores"]
        for texts in ((HYPOTHESES, REFERENCES), (REFERENCES, HYPOTHESES))
    )
    assert one["precision"] == pytest.approx(other["recall"]) != pytest.approx(other["precision"])
    assert one["f1"] == pytest.approx(other["f1"])


def test_neither_batches_nor_the_order_of_sentences_matter(bert):
    once = bert_scores(HYPOTHESES, REFERENCES, sentence_scores=True, **bert)["sentence_scores"]["f1"]
    again = bert_scores(HYPOTHESES[::-1], REFERENCES[::-1], batch_size=1, sentence_scores=True, **bert)
    assert again["sentence_scores"]["f1"][::-1] == pytest.approx(once, abs=1e-5)


def test_of_several_references_the_one_with_the_best_f1_counts(bert):
    several = bert_scores(["the cat sat"], [REFERENCES], sentence_scores=True, **bert)["sentence_scores"]
    single = [bert_scores(["the cat sat"], [reference], **bert) for reference in REFERENCES]
    best = max(single, key=lambda scores: scores["f1"])
    for name, column in several.items():
        assert column == pytest.approx([best[name]], abs=1e-5)
    assert len({round(scores["f1"], 3) for scores in single}) > 2


@pytest.mark.parametrize("template", ["[CLS] $A [SEP]", "$A"])
def test_an_empty_text_scores_zero(bert, template):
    texts = (["", "cat", " ", "cat"], ["cat", "", "", "cat"])
    options = {**bert, "tokenizer": word_tokenizer(template), "sentence_scores": True}
    assert bert_scores(*texts, **options)["sentence_scores"]["f1"] == pytest.approx([0, 0, 0, 1], abs=1e-5)
    scores = bert_scores(*texts, baseline=0.5, **options)["sentence_scores"]
    for column in scores.values():
        assert column == pytest.approx([-1, -1, -1, 1], abs=1e-5)  # (0 - 0.5) / (1 - 0.5)


def test_a_text_is_cut_to_what_the_model_can_read(bert):
    long = " ".join(["red dog"] * 20)
    assert bert_scores([long], [" ".join(["red dog"] * 7)], **bert)["f1"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("case", [case for case in cases(text=True) if case.values[0].auto_name == "AutoModel"])
def test_it_works_over_the_encoders_of_this_package(case, tmp_path):
    model = case.model().train()
    tokenizer = word_tokenizer("$A [SEP]")
    scores = bert_scores(HYPOTHESES, REFERENCES, model=model, tokenizer=tokenizer, sentence_scores=True)
    assert model.training
    encoder = model.eval().get_encoder() if model.config.is_encoder_decoder else model.eval()
    for i, pair in enumerate(zip(HYPOTHESES, REFERENCES)):
        vectors, ids = zip(*(encode(encoder, tokenizer, text, None) for text in pair))
        weights = [[1.0] * (len(its) - 1) + [0.0] for its in ids]
        assert scores["sentence_scores"]["f1"][i] == pytest.approx(by_definition(*vectors, *weights)[2], abs=1e-4)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert bert_scores(HYPOTHESES, REFERENCES, model=str(tmp_path))["f1"] == pytest.approx(scores["f1"], abs=1e-5)


def test_the_first_word_is_read_as_any_other_by_a_tokenizer_that_tells_them_apart(bert):
    """For a tokenizer of bytes "r" and " r" are different pieces; the authors' program puts a space before the text."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "r", "Ġ", "d", "Ġr", "Ġd"]
    tokenizer = RobertaTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[("Ġ", "r"), ("Ġ", "d")])
    options = {"model": bert["model"], "tokenizer": tokenizer, "layer": 0}
    scores = bert_scores(["r"], ["d r"], **options)
    with torch.no_grad():
        both = [
            bert["model"](torch.tensor([ids]), output_hidden_states=True).hidden_states[0][0].tolist()
            for ids in ([0, 8, 2], [0, 9, 8, 2])
        ]
    assert scores["f1"] == pytest.approx(by_definition(*both, [0, 1, 0], [0, 1, 1, 0])[2], abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 4}, r"layer is 4; this encoder has 0 \(the embeddings\) to 3"),
        ({"layer": -5}, "layer is -5"),
        ({"layer": "last"}, "layer is 'last'"),
        ({"tokenizer": None}, "a loaded model needs its tokenizer"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"baseline": 1.0}, "baseline is 1.0; allowed is a number below 1"),
        ({"baseline": [0.1, 0.2]}, "or three: precision, recall, F1"),
    ],
)
def test_what_is_not_allowed_is_named(bert, options, message):
    with pytest.raises(ValueError, match=message):
        bert_scores(["cat"], ["dog"], **{**bert, **options})


def test_the_metric_gives_the_same(bert):
    texts = {"predictions": HYPOTHESES, "references": [[reference, "dog"] for reference in REFERENCES]}
    assert load_metric("bertscore").compute(**texts, **bert) == bert_scores(*texts.values(), **bert)
