"""Search: vectors are those of each text alone, hits those of a plain comparison, ranks those of scikit-learn."""

import json

import numpy as np
import pytest
import torch
from scripting import load_script
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score
from transformers import BertConfig, BertModel

from hf_attn.data.text import hold_out, train_text_tokenizer
from hf_attn.evaluation.retrieval import ranks, retrieval_scores
from hf_attn.inference.retrieval import Hit, Retriever
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertModel
from hf_attn.training.contrastive import halves

TEXTS = ["the old man reads a book", "a woman sings", "the red house is old", "who reads", "sing", "the end of it all"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_text_tokenizer(TEXTS, 300, masked=True)


def make_model(tokenizer, kind):
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 24, "initializer_range": 0.3}
    if kind == "ours":
        return AttnBertModel(AttnBertConfig(**sizes)).eval()
    return BertModel(BertConfig(**sizes)).eval()


@pytest.mark.parametrize("kind", ["ours", "transformers"])
@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_a_vector_is_that_of_the_text_alone(tokenizer, kind, pooling):
    model = make_model(tokenizer, kind)
    vectors = Retriever(model, tokenizer, pooling=pooling).embed(TEXTS, batch_size=4)
    with torch.no_grad():
        for text, vector in zip(TEXTS, vectors):
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            pooled = {"mean": states.mean(0), "max": states.max(0).values, "cls": states[0]}[pooling]
            assert torch.allclose(vector, pooled / pooled.norm(), atol=1e-5)
    assert vectors.dtype == torch.float32 and torch.pdist(vectors).min() > 1e-3


def test_the_vector_is_the_sentence_embedding_of_the_model(tokenizer):
    model = make_model(tokenizer, "ours")
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with torch.no_grad():
        expected = torch.nn.functional.normalize(model.sentence_embedding(**batch), dim=-1)
    assert torch.allclose(Retriever(model, tokenizer).embed(TEXTS), expected, atol=1e-5)


def test_hits_are_the_nearest_texts_in_order(tokenizer, tmp_path):
    model = make_model(tokenizer, "ours")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    retriever = Retriever(str(tmp_path), device="cpu")
    retriever.index(TEXTS[1:])
    query, others = retriever.embed(["old book"])[0], retriever.embed(TEXTS[1:])
    cosines = [sum(a * b for a, b in zip(query.tolist(), other.tolist())) for other in others]
    order = sorted(range(5), key=lambda number: -cosines[number])
    hits = retriever.search("old book", k=3)
    assert [hit.number for hit in hits] == order[:3] and [hit.text for hit in hits] == [TEXTS[1:][n] for n in order[:3]]
    assert [hit.score for hit in hits] == pytest.approx([cosines[number] for number in order[:3]], abs=1e-5)
    many = retriever.search(["old book", TEXTS[4]], k=99)
    assert [hit.text for hit in many[0][:3]] == [hit.text for hit in hits] and len(many[1]) == 5
    assert many[1][0] == Hit(3, TEXTS[4], pytest.approx(1.0, abs=1e-5))


def test_what_cannot_be_searched_is_refused(tokenizer):
    model = make_model(tokenizer, "ours")
    retriever = Retriever(model, tokenizer)
    with pytest.raises(ValueError, match="call index"):
        retriever.search("a")
    with pytest.raises(ValueError, match="list of strings"):
        retriever.index("one text")
    with pytest.raises(ValueError, match="list of strings"):
        retriever.embed([])
    with pytest.raises(ValueError, match="list of strings"):
        retriever.embed(["a", "half of a pair: \ud83d"])
    retriever.index(TEXTS)
    with pytest.raises(ValueError, match="k=0"):
        retriever.search("a", k=0)
    with pytest.raises(ValueError, match="tokenizer is missing"):
        Retriever(model)
    with pytest.raises(ValueError, match="pooling='sum'"):
        Retriever(model, tokenizer, pooling="sum")


def test_recall_and_reciprocal_ranks_are_scikit_learns():
    random = np.random.default_rng(0)
    scores, right = random.normal(size=(50, 30)), random.integers(0, 30, 50)
    results = retrieval_scores(scores, right, at=(1, 5))
    relevant = np.arange(30)[None] == right[:, None]
    assert results["mrr"] == pytest.approx(label_ranking_average_precision_score(relevant, scores))
    for k in (1, 5):
        assert results[f"recall_at_{k}"] == pytest.approx(top_k_accuracy_score(right, scores, k=k, labels=range(30)))
    assert results["recall_at_5_low"] < results["recall_at_5"] < results["recall_at_5_high"]
    assert ranks([[1.0, 1.0, 0.0]], [0]).tolist() == [2]  # a tie is no merit
    with pytest.raises(ValueError, match="for 1 right texts"):
        ranks(scores, [0])


def test_the_script_learns_measures_and_searches(tokenizer, tmp_path, capsys):
    script = load_script("scripts/retrieve.py")
    make_model(tokenizer, "ours").save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    lines = [f"{text} {other}" for text in TEXTS for other in TEXTS]
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = ["--text_file", str(tmp_path / "lines.txt"), "--output_dir", str(tmp_path / "out"), "--use_cpu"]
    words += ["--bf16", "false", "--disable_tqdm", "true", "--query", lines[7]]
    learn = ["--pairs", "halves", "--held_out", "0.3", "--max_steps", "6", "--per_device_train_batch_size", "8"]
    results = script.main(["--model_name_or_path", str(tmp_path / "model"), *learn, *words])
    assert json.loads((tmp_path / "out" / "retrieval_results.json").read_text())["after"] == results["after"]
    assert results["before"]["lines"] == 11 and results["before"]["tfidf"] == results["after"]["tfidf"]
    assert results["before"]["model"] != results["after"]["model"]
    queries, texts = zip(*(halves(line) for line in hold_out(lines, 0.3, 42)[1]))
    retriever = Retriever(str(tmp_path / "out"), device="cpu")
    scores = retriever.embed(queries) @ retriever.embed(texts).T
    assert results["after"]["model"] == retrieval_scores(scores, range(11))
    capsys.readouterr()
    found = script.main(["--model_name_or_path", str(tmp_path / "out"), *words, "--top_k", "3"])["found"]
    assert found[0][0].text == lines[7] and len(found[0]) == 3
    printed = capsys.readouterr().out
    assert all(f"{hit.score:.3f}  {hit.text}" in printed for hit in found[0])
    with pytest.raises(ValueError, match="give pairs to learn"):
        script.main(["--model_name_or_path", "a", "--output_dir", "b"])
