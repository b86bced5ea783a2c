"""Translator against transformers' own `generate`, against explicit steps, and against what users type."""

import math
import re
import socket
import threading
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, MarianModel

import hf_attn  # noqa: F401  registers the families
from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator, score, translate
from hf_attn.inference.decoding import GumbelNoise
from hf_attn.inference.sides import output_side

from .conftest import PAIRS, SOURCES, new_marian, new_rnn, new_transformer, trained


def generate_one(model, tokenizer, text, **options):
    """What transformers gives for one sentence alone, and its pieces without the start piece."""
    inputs = tokenizer(text, return_tensors="pt")
    output = model.generate(
        **inputs, **({"max_new_tokens": 40, "num_beams": 1, "do_sample": False} | options),
        output_scores=True, output_attentions=True, return_dict_in_generate=True,
    )  # fmt: skip
    sequences = [row[1:] for row in output.sequences.tolist()]
    return output, [ids[: ids.index(2) + 1] if 2 in ids else ids for ids in sequences]


def step_by_step_log_probs(model, tokenizer, source, target_ids):
    """The chain rule written out: one forward pass for each piece, of one sentence alone."""
    inputs, prefix, log_probs = tokenizer(source, return_tensors="pt"), [1], []
    for piece in target_ids:
        with torch.no_grad():
            logits = model(**inputs, decoder_input_ids=torch.tensor([prefix])).logits[0, -1].double()
        log_probs.append(float(logits[piece]) - math.log(sum(math.exp(value) for value in logits.tolist())))
        prefix.append(piece)
    return log_probs


def test_greedy_is_generate(model, tokenizer):
    results = Translator(model, tokenizer)(SOURCES, batch_size=3, max_new_tokens=40)
    assert len({result.text for result in results}) >= 5
    for source, result in zip(SOURCES, results, strict=True):
        _, (ids,) = generate_one(model, tokenizer, source)
        assert result.source == source
        assert result.text == tokenizer.decode(ids, skip_special_tokens=True)
        assert tokenizer.convert_tokens_to_ids(result.target_tokens) == ids
        assert result.source_tokens[-1] == "</s>"
        assert result.truncated == (result.target_tokens[-1] != "</s>")
        expected = step_by_step_log_probs(model, tokenizer, source, ids)
        assert result.token_log_probs == pytest.approx(expected, abs=1e-4)
        assert result.score == pytest.approx(sum(expected) / len(ids), abs=1e-4)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_beam_search_is_generate_and_its_score_is_ours(model, tokenizer, length_penalty):
    options = {"num_beams": 3, "num_return_sequences": 3, "length_penalty": length_penalty}
    results = Translator(model, tokenizer)(SOURCES[:3], **options, max_new_tokens=24)
    for source, candidates in zip(SOURCES, results, strict=False):
        output, all_ids = generate_one(model, tokenizer, source, **options, early_stopping=False, max_new_tokens=24)
        assert [tokenizer.convert_tokens_to_ids(c.target_tokens) for c in candidates] == all_ids
        finished = [i for i, ids in enumerate(all_ids) if ids[-1] == 2 and len(ids) < 24]
        assert finished or length_penalty > 1  # which rewards what does not end
        for i in finished:
            assert candidates[i].score == pytest.approx(float(output.sequences_scores[i]), abs=1e-4)
        assert len({c.text for c in candidates}) > 1


def test_weights_are_those_of_the_steps_that_chose_the_pieces(model, tokenizer):
    results = Translator(model, tokenizer)(SOURCES[:3])
    for source, result in zip(SOURCES, results, strict=False):
        output, (ids,) = generate_one(model, tokenizer, source)
        source_len = len(result.source_tokens)
        if output.cross_attentions[0] is None:
            assert result.cross_attentions is None
            with pytest.raises(ValueError, match="no cross-attention"):
                result.alignment()
            continue
        for step in range(len(ids)):
            for layer, weights in enumerate(output.cross_attentions[step]):
                expected = weights[0, :, -1, :source_len]
                assert torch.allclose(result.cross_attentions[layer, :, step], expected, atol=1e-4)
        assert result.cross_attentions.shape[2:] == (len(ids), source_len)
        assert result.cross_attentions.dtype == torch.float32
        alignment = result.alignment()
        assert torch.allclose(alignment.weights.sum(1), torch.ones(len(alignment.target_words)), atol=1e-5)


def test_self_attention_has_its_kind_or_is_none(model, tokenizer):
    result = Translator(model, tokenizer)("The cat sleeps.")
    if result.encoder_attentions is None:
        assert result.decoder_attentions is None
        return
    source_len, target_len = len(result.source_tokens), len(result.target_tokens)
    assert result.encoder_attentions.shape == (2, 2, source_len, source_len)
    assert result.decoder_attentions.shape == (2, 4, target_len, target_len)
    assert torch.equal(result.decoder_attentions.triu(1), torch.zeros_like(result.decoder_attentions))


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "seed": 5}])
def test_a_result_does_not_depend_on_its_neighbours(model, tokenizer, options):
    translator = Translator(model, tokenizer)
    sources = SOURCES[1::2]
    alone = [translator(source, **options) for source in sources]
    for together in (translator(sources, **options), translator(sources[::-1], batch_size=3, **options)[::-1]):
        for one, other in zip(alone, together, strict=True):
            assert one.text == other.text
            assert one.target_tokens == other.target_tokens
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
            for name in ("cross_attentions", "encoder_attentions", "decoder_attentions", "value_norms"):
                weights, others = getattr(one, name), getattr(other, name)
                assert (weights is None) == (others is None)
                assert weights is None or torch.allclose(weights, others, atol=1e-4)


def test_value_norms_and_the_recommended_alignment_come_along(tokenizer):
    results = {}
    for implementation in ("sdpa", "eager"):
        model = new_transformer(attn_implementation=implementation, alignment_method="value_norm", alignment_layer=0)
        results[implementation] = Translator(model, tokenizer)(SOURCES[:3], num_beams=2, num_return_sequences=2)
    for pair in zip(*results.values(), strict=True):
        for one, other in zip(*pair, strict=True):
            assert one.value_norms.shape == (2, 4, len(one.source_tokens))
            states = model.get_encoder()(**tokenizer(one.source, return_tensors="pt")).last_hidden_state
            for layer, norms in enumerate(model.get_decoder().value_norms(states)):
                torch.testing.assert_close(one.value_norms[layer], norms[0].detach(), rtol=1e-3, atol=1e-4)
            assert (
                one.alignment().description
                == "cross-attention weights times value norms, layer 1 of 2, mean of 4 heads"
            )
            torch.testing.assert_close(one.alignment().weights, other.alignment().weights, rtol=1e-3, atol=1e-4)
    assert trained("marian").config.model_type == "marian"
    assert Translator(trained("marian"), tokenizer)(SOURCES[0]).value_norms is None
    assert Translator(trained("no-attention"), tokenizer)(SOURCES[0]).value_norms is None
    assert Translator(trained("bahdanau"), tokenizer)(SOURCES[0], return_attention=False).value_norms is None
    for options in (
        {"attention_type": "bahdanau"},
        {"attention_type": "luong", "alignment_method": "shifted_value_norm"},
    ):
        result = Translator(new_rnn(**options), tokenizer)(SOURCES[0])
        assert result.value_norms.shape == (1, 1, len(result.source_tokens))
        assert result.alignment_method == options.get("alignment_method", "weights")
        assert torch.allclose(result.alignment().weights.sum(dim=1), torch.ones(len(result.words().target_words)))


def test_forced_decoding_is_the_same_pass(model, tokenizer):
    translator = Translator(model, tokenizer)
    sources, targets = zip(*PAIRS[:4], strict=True)
    for source, target, result in zip(sources, targets, translator.score(sources, targets, batch_size=3), strict=True):
        ids = tokenizer(target).input_ids
        assert (result.source, result.text) == (source, target)
        assert result.token_log_probs == pytest.approx(step_by_step_log_probs(model, tokenizer, source, ids), abs=1e-4)
    forced = score(translator, *PAIRS[1], length_penalty=0.0)
    assert forced.score == pytest.approx(sum(forced.token_log_probs))
    assert score((model, tokenizer), *PAIRS[0], return_attention=False).cross_attentions is None
    assert translator.score("", "").target_tokens == ["</s>"]
    assert translator.score([], []) == []


def test_score_wants_one_target_for_each_source(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(TypeError, match="both be a string"):
        translator.score("a", ["c"])


def test_empty_in_empty_out(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    assert translator([]) == []
    assert translate(translator, []) == []
    for text in ("", "  ", "\t\u3000"):
        result = translator(text)
        assert (result.source, result.text, result.target_tokens) == (text, "", [])
    assert translate(translator, ["", "Yes!", " "]) == ["", "Sì!", ""]
    assert translate(translator, "", num_beams=2, num_return_sequences=2) == ["", ""]


def test_line_breaks_are_kept(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    one, two = translate(translator, ["Yes!", "The cat sleeps."])
    result = translator("Yes!\r\n\n  \nThe cat sleeps.\n")
    assert result.text == f"{one}\r\n\n\n{two}\n"
    assert [segment.source for segment in result.segments] == ["Yes!", "", "  ", "The cat sleeps.", ""]
    assert result.target_tokens == result.segments[0].target_tokens + result.segments[3].target_tokens
    assert result.segments[3].alignment().target_words == ["Le", "chat", "dort", ".", "</s>"]
    assert translator("Yes!\u2028Yes!").segments == []
    first, second = translator("Yes!\nYes!", num_beams=2, num_return_sequences=2)
    assert first.text == f"{one}\n{one}"
    assert [segment.text for segment in second.segments] == second.text.split("\n")


def test_a_sentence_and_a_list_of_words_are_different_things(marian, tokenizer):
    assert isinstance(translate((marian, tokenizer), "The cat"), str)
    assert len(translate((marian, tokenizer), ["The", "cat"])) == 2
    assert len(translate((marian, tokenizer), (text for text in ("The", "cat")))) == 2


@pytest.mark.parametrize("texts", [None, 3, [5, 17, 2], [["a", "b"]], b"a", {"a": "b"}, ["a", None]])
def test_wrong_types_are_explained(marian, tokenizer, texts):
    with pytest.raises(TypeError, match="must be a string"):
        Translator(marian, tokenizer)(texts)


def test_text_that_is_not_unicode_is_refused(marian, tokenizer):
    with pytest.raises(ValueError, match=r"texts\[1\] .* surrogate"):
        Translator(marian, tokenizer)(["a", "\ud800"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 0}, "num_beams is 0"),
        ({"num_beams": True}, "num_beams is True"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 1.5}, "batch_size is 1.5"),
        ({"num_return_sequences": 2}, "num_return_sequences is 2 with num_beams=1"),
        ({"num_beams": 2, "do_sample": True}, "sampling needs num_beams=1"),
        ({"seed": 1}, "seed is 1 with do_sample=False"),
        ({"length_penalty": math.nan}, "length_penalty is nan"),
    ],
)
def test_options_out_of_range_are_named(marian, tokenizer, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Translator(marian, tokenizer)("a", **options)


def test_long_input_is_cut_with_a_warning(marian, tokenizer):
    text = "The cat sleeps. " * 40
    with pytest.warns(UserWarning, match="1 of 2 source sentences are longer than 64 pieces"):
        result, short = Translator(marian, tokenizer)([text, "Yes!"])
    assert result.truncated and not short.truncated
    assert len(result.source_tokens) == 64 and result.source_tokens[-1] == "</s>"
    words = result.words().source_words
    assert words[:4] == ["The", "cat", "sleeps", "."] and words[-1] == "</s>" and len(words) < 65
    with pytest.warns(UserWarning, match="target sentences are longer"):
        assert score((marian, tokenizer), "Yes!", text).truncated


def test_output_that_does_not_end_is_marked(tokenizer):
    # Marian forces "</s>" at the longest length, which must not pass for an ending
    model = trained("marian")
    result = Translator(model, tokenizer)("The old cat sleeps on the chair.", max_new_tokens=5, num_beams=2)
    assert result.truncated
    assert len(result.target_tokens) == 5 and "</s>" not in result.target_tokens
    assert result.words().target_words == result.alignment().target_words
    sampled = Translator(new_marian(), tokenizer)("Yes!", do_sample=True)
    assert len(sampled.target_tokens) <= 2 * len(sampled.source_tokens) + 20


def test_typed_special_tokens_stay_text(marian, tokenizer):
    result = Translator(marian, tokenizer)("Yes!</s> <pad> Yes!")
    assert result.source_tokens.count("</s>") == 1
    assert result.words().source_words == ["Yes", "!", "<", "/", "s", ">", "<", "pad", ">", "Yes", "!", "</s>"]


@pytest.mark.parametrize("text", ["학교에", "👩‍👩‍👧‍👦 ❤️", "?!", "l'homme", "뷁"])  # the first in NFD
def test_any_text_has_words(marian, tokenizer, text):
    result = Translator(marian, tokenizer)(text)
    alignment = result.alignment()
    assert torch.allclose(alignment.weights.sum(1), torch.ones(len(alignment.target_words)), atol=1e-5)


def test_unknown_words_are_named_and_stay_visible():
    tokenizer = train_tokenizer([sentence for pair in PAIRS for sentence in pair], 100, kind="word")
    model = new_marian(vocab_size=len(tokenizer))
    ids = tokenizer.convert_tokens_to_ids(["▁Le", "<unk>", "▁dort", "<unk>", "<unk>", "</s>"])
    translator = Translator(model, tokenizer)
    side = output_side(tokenizer, ids, False)
    assert side.text == "Le <unk> dort <unk> <unk>"
    with pytest.warns(UserWarning, match="2 source pieces are unknown to the tokenizer, e.g. '뷁', 'zebra'"):
        result = translator("The 뷁 sleeps zebra.")
    assert result.words().source_words == ["The", "뷁", "sleeps", "zebra", ".", "</s>"]
    with pytest.warns(UserWarning, match="unknown"):
        result = translator.score("뷁", "Le <unk> dort")
    assert result.words().source_words == ["뷁", "</s>"]


def test_written_unknown_words_are_words_of_their_own():
    from hf_attn.data.pieces import group_pieces

    words, pieces = group_pieces("Le <unk>.", ["▁Le", "<unk>", ".", "</s>"], [(0, 2), (2, 8), (8, 9), None])
    assert words == ["Le", "<unk>", ".", "</s>"] and pieces == [[0], [1], [2], [3]]
    assert group_pieces("<unk>", ["<", "unk", ">"], [(0, 1), (1, 4), (4, 5)])[0] == ["<", "unk", ">"]


def test_samples_follow_the_distribution():
    logits = torch.tensor([[2.0, 1.0, -1.0, -math.inf]])
    noise = GumbelNoise([7])
    draws = torch.tensor([int(noise(None, logits).argmax()) for _ in range(4000)])
    frequencies = torch.bincount(draws, minlength=4) / 4000
    assert torch.allclose(frequencies, logits[0].softmax(0), atol=0.03)


def test_samples_repeat_by_seed(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    options = {"do_sample": True, "num_return_sequences": 6}
    first = translate(translator, SOURCES[2], seed=1, **options)
    state = torch.get_rng_state()
    assert first == translate(translator, SOURCES[2], seed=1, **options)
    assert torch.equal(state, torch.get_rng_state())
    assert first != translate(translator, SOURCES[2], seed=2, **options)
    assert len(set(first)) > 1
    torch.manual_seed(4)
    free = translate(translator, SOURCES[2], **options)
    torch.manual_seed(4)
    assert free == translate(translator, SOURCES[2], **options)


def test_threads_share_a_translator(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    expected = translate(translator, SOURCES)
    results = {}

    def work(number):
        results[number] = translate(translator, SOURCES[number:] + SOURCES[:number], batch_size=3)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert results[number] == expected[number:] + expected[:number]


def test_nothing_is_written_on_model_or_tokenizer(marian, tokenizer):
    tokenizer(SOURCES, padding=True, truncation=True, max_length=50)  # leaves settings on the tokenizer
    before = (dict(vars(marian)), marian.generation_config.to_dict(), tokenizer.backend_tokenizer.to_str())
    Translator(marian, tokenizer)(SOURCES, num_beams=2)
    assert before == (dict(vars(marian)), marian.generation_config.to_dict(), tokenizer.backend_tokenizer.to_str())


def test_a_model_in_training_translates_without_dropout(tokenizer):
    model = new_marian(dropout=0.5)
    translator = Translator(model, tokenizer)
    expected = translator("Yes!", max_new_tokens=5).token_log_probs
    model.train()
    assert translator("Yes!", max_new_tokens=5).token_log_probs == expected


def test_a_folder_is_opened_without_the_network(tmp_path, marian, tokenizer, monkeypatch):
    def no_network(*arguments, **keywords):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", no_network)
    for name in ("marian", "transformer"):
        folder = tmp_path / name
        model = trained(name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            translator = Translator(str(folder), device="cpu")
        result = translator("The cat sleeps.")
        assert result.text == "Le chat dort."
        assert result.cross_attentions.shape[:2] == (2, 4)
        assert translate(folder, ["Yes!"]) == ["Sì!"]


def test_half_precision_checkpoints_run_in_float32(tmp_path, tokenizer):
    new_transformer().to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert Translator(tmp_path).model.dtype == torch.float32
    assert Translator(tmp_path, dtype="bfloat16").model.dtype == torch.bfloat16
    result = Translator(tmp_path, dtype=torch.bfloat16)("Yes!", max_new_tokens=3)
    assert result.cross_attentions.dtype == torch.float32
    with pytest.raises(ValueError, match="dtype is 'float12'"):
        Translator(tmp_path, dtype="float12")


def test_separate_vocabularies(tmp_path, tokenizer):
    target_tokenizer = train_tokenizer([target for _, target in PAIRS], 330)
    model = new_transformer(decoder_vocab_size=len(target_tokenizer), share_embeddings=False, tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    target_tokenizer.save_pretrained(tmp_path / "target_tokenizer")
    translator = Translator(tmp_path, device="cpu")
    result = translator.score("The cat sleeps.", "Le chat dort.")
    ids = target_tokenizer("Le chat dort.").input_ids
    assert ids != tokenizer("Le chat dort.").input_ids
    assert result.target_tokens == target_tokenizer.convert_ids_to_tokens(ids)
    pair = Translator(model, (tokenizer, target_tokenizer))
    assert pair("Yes!").token_log_probs == pytest.approx(translator("Yes!").token_log_probs, abs=1e-5)


def test_what_is_no_model_is_refused(tmp_path, marian, tokenizer, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="no such folder"):
        Translator(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no config.json"):
        Translator(tmp_path)
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "checkpoint-5" / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="sub-folder checkpoint-5"):
        Translator(str(tmp_path))
    with pytest.raises(ValueError, match="needs its tokenizer"):
        Translator(marian)
    with pytest.raises(ValueError, match="model is 'nobody/nothing'; there is no such folder, nor did the Hub"):
        Translator("nobody/nothing")
    with pytest.raises(ValueError, match="device is 'gpu'; it must be the name of a torch device"):
        Translator(marian, tokenizer, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device is 'cuda', but torch finds no GPU"):
            Translator(marian, tokenizer, device="cuda")
    with pytest.raises(ValueError, match="model is int"):
        Translator(3)
    with pytest.raises(ValueError, match="no generating head"):
        Translator(MarianModel(marian.config), tokenizer)
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    with pytest.raises(ValueError, match="encoder-decoder"):
        Translator(BertModel(config), tokenizer)


def test_files_that_lack_weights_are_refused(tmp_path, marian, tokenizer):
    """transformers fills such weights with random numbers, and the translations are noise."""
    marian.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    lacking = {name: weight for name, weight in weights.items() if "encoder_attn" not in name}
    save_file(lacking, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ValueError, match=rf"{len(weights) - len(lacking)} of its weights are not in the files, e.g. model"
    ):
        Translator(tmp_path)
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    Translator(tmp_path)


def test_a_kernel_without_weights_says_what_to_do(tokenizer):
    translator = Translator(new_marian(attn_implementation="sdpa"), tokenizer)
    with pytest.raises(ValueError, match='attn_implementation="eager"'):
        translator("Yes!")
    assert isinstance(translator("Yes!", return_attention=False).text, str)
    assert isinstance(translate(translator, "Yes!"), str)


def test_progress_goes_to_stderr(marian, tokenizer, capsys):
    Translator(marian, tokenizer)(["Yes!", ""], progress=True)
    output = capsys.readouterr()
    assert output.out == "" and "1/1" in output.err
