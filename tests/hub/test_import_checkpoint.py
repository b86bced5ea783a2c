"""Import and export of checkpoints: tokenizers, text, settings, dtypes, ties, and what is refused."""

import json
import shutil

import pytest
import torch
from hub.checkpoints import KINDS, SENTENCES, sides, write_checkpoint
from hub.hub_stand_in import run_hub, use_hub
from parity.twin_models import CLASSES, ragged_batch, random_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, BartModel, T5EncoderModel

from hf_attn.hub import checkpoint_tokenizers, export_checkpoint, import_checkpoint
from hf_attn.hub.conversion import ALIGNMENT, option_values
from hf_attn.hub.seq2seq_twins import SEQ2SEQ_TWINS
from hf_attn.inference import Translator
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Folder, model and tokenizer of each kind, and the folder that importing it wrote; each is made once."""
    made = {}

    def make(kind):
        if kind not in made:
            place = tmp_path_factory.mktemp(kind)
            model, tokenizer = write_checkpoint(kind, place / "theirs")
            import_checkpoint(place / "theirs", place / "ours")
            made[kind] = place / "theirs", model, tokenizer, place / "ours"
        return made[kind]

    return make


JOINT = {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": None}


def write_model(folder, model_type="bart", seed=0, **options):
    """Write a model without a tokenizer."""
    model = random_model(model_type, seed, **options)
    model.save_pretrained(folder)
    return model


def change_config(folder, **values):
    """Change values in a config.json; None takes one out."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


# Tokenizers and text


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_the_original_tokenizer(checkpoint, kind):
    _, _, original, ours = checkpoint(kind)
    source = AutoTokenizer.from_pretrained(ours)
    separate = (ours / "target_tokenizer").is_dir()
    assert separate == (kind == "marian-separate")
    target = AutoTokenizer.from_pretrained(ours / "target_tokenizer") if separate else source
    assert type(source) is type(target) is type(original)
    for split in (False, True):
        options = {"split_special_tokens": split}
        for sentence in SENTENCES:
            wanted = original(sentence, **options)["input_ids"]
            assert source(sentence, **options)["input_ids"] == wanted
            name = "text" if separate else "text_target"
            labels = original(text_target=sentence, **options)["input_ids"]
            assert target(**{name: sentence}, **options)["input_ids"] == labels
            for skip in (False, True):
                text = original.decode(labels, skip_special_tokens=skip)
                assert target.decode(labels, skip_special_tokens=skip) == text
    for name in ("pad_token_id", "eos_token_id", "unk_token_id", "model_max_length", "all_special_ids"):
        assert getattr(source, name) == getattr(original, name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_translator_writes_what_the_original_would(checkpoint, kind):
    _, theirs, tokenizer, ours = checkpoint(kind)
    translator = Translator(ours)
    for num_beams in (1, 4):
        for sentence in SENTENCES[:2]:
            inputs = tokenizer(sentence, return_tensors="pt")
            ids = theirs.generate(**inputs, num_beams=num_beams, max_length=10, forced_eos_token_id=None)[
                0, 1:
            ].tolist()
            end = theirs.config.eos_token_id
            ids = ids[: ids.index(end) + 1] if end in ids else ids
            translation = translator(sentence, num_beams=num_beams, max_new_tokens=len(ids), return_attention=False)
            assert len(set(ids)) > 2 and translation.target_ids == ids
            hidden = set(tokenizer.all_special_ids)
            wanted = tokenizer.decode([i for i in ids if i not in hidden])
            assert translation.text == wanted
            assert translation.source_ids == inputs["input_ids"][0].tolist()
            names = tokenizer.convert_ids_to_tokens(ids)
            assert [name for name, i in zip(translation.target_tokens, ids) if i not in hidden] == [
                name for name, i in zip(names, ids) if i not in hidden
            ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_given_translation_ends_with_its_end_and_a_prefix_without(checkpoint, kind):
    _, theirs, tokenizer, ours = checkpoint(kind)
    translator = Translator(ours)
    ids = tokenizer(text_target=SENTENCES[1])["input_ids"]
    end = ids.index(theirs.config.eos_token_id)  # behind it, mBART has the language
    scored = translator.score(SENTENCES[0], SENTENCES[1], return_attention=False)
    assert scored.target_ids == ids[: end + 1]
    inputs = tokenizer(SENTENCES[0], return_tensors="pt")
    decoder_input_ids = torch.tensor([[theirs.config.decoder_start_token_id, *ids[:end]]])
    log_probs = theirs(**inputs, decoder_input_ids=decoder_input_ids).logits.log_softmax(-1)[0]
    expected = [log_probs[place, piece].item() for place, piece in enumerate(ids[: end + 1])]
    assert scored.token_log_probs == pytest.approx(expected, abs=1e-3)

    known = next(text for text in sides()[1] if tokenizer.unk_token_id not in tokenizer(text_target=text)["input_ids"])
    ids = tokenizer(text_target=known)["input_ids"]
    start = ids[: ids.index(theirs.config.eos_token_id)]
    translator.model.generation_config.no_repeat_ngram_size = None  # it would forbid what the prefix repeats
    forced = translator(SENTENCES[0], prefix=known, max_new_tokens=len(start) + 1, return_attention=False)
    assert forced.target_ids[:-1] == start


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_back_gives_the_checkpoint(checkpoint, kind, tmp_path):
    folder, theirs, tokenizer, ours = checkpoint(kind)
    export_checkpoint(ours, tmp_path / "back")
    opened = type(theirs).from_pretrained(tmp_path / "back")
    for name, tensor in theirs.state_dict().items():
        unread = 2 if "embed_positions" in name and kind in ("bart", "mbart") else 0
        assert torch.equal(opened.state_dict()[name][unread:], tensor[unread:]), name
    assert opened.generation_config.to_dict() == theirs.generation_config.to_dict()
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    assert type(again) is type(tokenizer)
    for sentence in SENTENCES:
        assert again(sentence, text_target=sentence) == tokenizer(sentence, text_target=sentence)
    assert not (tmp_path / "back" / "target_tokenizer").exists()


def test_a_folder_without_a_tokenizer_gives_none(tmp_path):
    write_model(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer; only the model is taken"):
        _, tokenizer = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert tokenizer is None
    assert not list((tmp_path / "ours").glob("tokenizer*"))


def test_a_missing_package_is_named(checkpoint, monkeypatch):
    def absent(*args, **kwargs):
        raise ImportError("MarianTokenizer requires the SentencePiece library")

    monkeypatch.setattr(checkpoint_tokenizers.AutoTokenizer, "from_pretrained", absent)
    monkeypatch.setattr(checkpoint_tokenizers, "is_sentencepiece_available", lambda: False)
    with pytest.raises(ValueError, match=r"pip install 'hf_attn\[sentencepiece\]'"):
        import_checkpoint(checkpoint("marian")[0])


def test_an_mbart_starts_with_the_language_that_is_asked_for(tmp_path):
    _, tokenizer = write_checkpoint("mbart", tmp_path / "theirs", decoder_start_token_id=None)
    with pytest.raises(ValueError, match="decoder_start_token_id is None in the configuration of this mbart"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    with pytest.raises(ValueError, match="decoder_start_token_id='xx_XX' is no token: the tokenizer does not have it"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours", decoder_start_token_id="xx_XX")
    assert not (tmp_path / "ours").exists()
    korean = tokenizer.convert_tokens_to_ids("ko_KR")
    for start in ("ko_KR", korean):
        model, _ = import_checkpoint(tmp_path / "theirs", decoder_start_token_id=start)
        assert model.config.decoder_start_token_id == model.generation_config.decoder_start_token_id == korean
    inputs = tokenizer(SENTENCES[0], return_tensors="pt")
    assert model.generate(**inputs, max_new_tokens=3)[0, 0] == korean


# The folder


def test_the_folder_opens_with_the_auto_classes_and_has_the_code(checkpoint):
    _, theirs, _, ours = checkpoint("bart")
    described = json.loads((ours / "config.json").read_text())
    assert described["auto_map"]["AutoModelForSeq2SeqLM"] == (
        "modeling_attn_transformer.AttnTransformerForConditionalGeneration"
    )
    for name in ("modeling_attn_transformer.py", "attention.py", "tokenizer.json", "generation_config.json"):
        assert (ours / name).is_file()
    opened, imported = AutoModelForSeq2SeqLM.from_pretrained(ours).eval(), import_checkpoint(theirs)[0]
    batch = ragged_batch(theirs)
    assert torch.equal(opened(**batch).logits, imported(**batch).logits)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model_type", CLASSES)
def test_the_dtype_is_kept(model_type, dtype, tmp_path):
    seed = 1 if model_type == "t5" else 0
    theirs = random_model(model_type, seed, tie_word_embeddings=model_type != "t5").to(dtype)
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        model, _ = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    opened = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours")
    for ours in (model, opened):
        assert {tensor.dtype for tensor in ours.state_dict().values()} == {dtype}
        embeddings = theirs.get_encoder().embed_tokens.weight
        assert torch.equal(ours.get_input_embeddings().weight, embeddings)
    back, _ = export_checkpoint(opened)
    for name, tensor in theirs.state_dict().items():
        unread = 2 if "embed_positions" in name and model_type in ("bart", "mbart") else 0
        assert torch.equal(back.state_dict()[name][unread:], tensor[unread:].to(back.state_dict()[name].dtype)), name


@pytest.mark.parametrize(
    ("model_type", "options", "shared", "tied"),
    [
        ("bart", {"tie_word_embeddings": True}, True, True),
        ("bart", {"tie_word_embeddings": False}, False, False),
        ("t5", {"tie_word_embeddings": True}, True, True),
        ("t5", {"tie_word_embeddings": False}, True, False),
        ("marian", JOINT | {"tie_word_embeddings": True}, True, True),
        ("marian", JOINT | {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": True}, False, True),
        ("marian", JOINT | {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}, False, False),
    ],
)
def test_what_is_tied_stays_tied(model_type, options, shared, tied, tmp_path):
    theirs = random_model(
        model_type, 0, **{"decoder_vocab_size": None} | options if model_type == "marian" else options
    )
    model, _ = import_checkpoint(theirs, tmp_path / "ours")
    for ours in (model, AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours")):
        source, target = ours.model.encoder.embed_tokens.weight, ours.model.decoder.embed_tokens.weight
        assert (source is target) == shared == ours.config.share_embeddings
        assert (ours.lm_head.weight is target) == tied == ours.config.tie_word_embeddings
    theirs_back, _ = export_checkpoint(model, tmp_path / "back")
    for back in (theirs_back, type(theirs).from_pretrained(tmp_path / "back")):
        output, target = back.get_output_embeddings().weight, back.get_decoder().embed_tokens.weight
        assert (output is target) == tied
        assert (back.get_encoder().embed_tokens.weight is target) == shared


def test_generation_settings_come_along(tmp_path):
    theirs = random_model("bart", 0)
    wanted = {
        **{"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "no_repeat_ngram_size": 3, "min_length": 4},
        **{"max_length": 20, "forced_bos_token_id": 11, "forced_eos_token_id": 2, "bad_words_ids": [[12], [13, 14]]},
    }
    theirs.generation_config.update(**wanted)
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    opened = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours")
    for name, value in wanted.items():
        assert getattr(opened.generation_config, name) == value, name
    batch = ragged_batch(theirs)
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    expected = theirs.generate(**inputs)
    assert (expected[:, 1] == 11).all() and expected.unique().numel() > 5
    assert torch.equal(opened.generate(**inputs), expected)


@pytest.mark.parametrize("model_type", CLASSES)
def test_generation_starts_where_its_settings_say_and_labels_where_the_configuration_says(model_type, tmp_path):
    layers = {"num_layers": 2, "num_decoder_layers": 2} if model_type == "t5" else {}
    theirs = random_model(model_type, 1, sharpness=2.0, **layers)
    theirs.generation_config.decoder_start_token_id = 15
    batch = ragged_batch(theirs)
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"], "max_length": 8}
    expected = theirs.generate(**inputs)
    ours, _ = import_checkpoint(theirs)
    back, _ = export_checkpoint(ours)
    for model in (ours, back):
        assert torch.equal(model.generate(**inputs), expected) and (expected[:, 0] == 15).all()
        assert model.config.decoder_start_token_id == theirs.config.decoder_start_token_id != 15
    asked, _ = import_checkpoint(theirs, decoder_start_token_id=16)
    assert asked.config.decoder_start_token_id == asked.generation_config.decoder_start_token_id == 16
    if model_type != "marian":  # whose configuration always names one
        theirs.config.decoder_start_token_id = None
        assert import_checkpoint(theirs)[0].config.decoder_start_token_id == 15


def test_generation_settings_in_an_old_configuration_come_along(tmp_path):
    write_model(tmp_path / "theirs", "marian")
    (tmp_path / "theirs" / "generation_config.json").unlink()
    change_config(tmp_path / "theirs", num_beams=6, max_length=33, bad_words_ids=[[46]])
    with pytest.warns(UserWarning, match="has no tokenizer"):
        model, _ = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    settings = model.generation_config
    assert (settings.num_beams, settings.max_length, settings.bad_words_ids) == (6, 33, [[46]])


def test_generation_settings_that_ours_refuses_are_left_out_with_a_warning():
    theirs = random_model("marian", 0, share_encoder_decoder_embeddings=False, decoder_vocab_size=41)
    theirs.generation_config.update(encoder_no_repeat_ngram_size=2, num_beams=3)
    with pytest.warns(UserWarning, match="encoder_no_repeat_ngram_size=2 is left out: source and target have separate"):
        model, _ = import_checkpoint(theirs)
    assert model.generation_config.encoder_no_repeat_ngram_size is None
    batch = ragged_batch(theirs)
    assert model.generate(batch["input_ids"], max_new_tokens=3).shape[1] <= 4


def test_padding_on_the_left_moves_their_positions_and_not_ours():
    theirs = random_model("bart", 0)
    ours, _ = import_checkpoint(theirs)
    row = torch.tensor([[11, 12, 13, 2]])
    padded = torch.cat([torch.full((1, 3), 1), row], dim=1)
    inputs = {"attention_mask": (padded != 1).long(), "decoder_input_ids": torch.tensor([[2, 15]])}
    alone = {"input_ids": row, "decoder_input_ids": inputs["decoder_input_ids"]}
    assert torch.allclose(ours(padded, **inputs).logits, ours(**alone).logits, atol=1e-5)
    assert not torch.allclose(theirs(padded, **inputs).logits, theirs(**alone).logits, atol=1e-2)


# Where a checkpoint lies, and in how many files


def test_a_checkpoint_of_the_hub_in_several_files(monkeypatch, tmp_path):
    theirs, tokenizer = write_checkpoint("bart", tmp_path / "theirs")
    with run_hub() as hub:
        use_hub(monkeypatch, hub, tmp_path)
        theirs.push_to_hub("jane/bart", max_shard_size="40KB")
        tokenizer.push_to_hub("jane/bart")
        assert "model.safetensors.index.json" in hub.tree("jane/bart")
        ours, tokenizer = import_checkpoint("jane/bart", tmp_path / "ours")
        with pytest.raises(ValueError, match="source is 'jane/none'; it holds no config.json that can be read"):
            import_checkpoint("jane/none")
    batch = ragged_batch(theirs)
    torch.testing.assert_close(ours(**batch).logits, theirs(**batch).logits, atol=1e-3, rtol=1e-3)
    assert (
        tokenizer(SENTENCES[0])["input_ids"] == AutoTokenizer.from_pretrained(tmp_path / "ours")(SENTENCES[0]).input_ids
    )


def test_a_checkpoint_of_the_model_without_its_head(tmp_path):
    theirs = random_model("bart", 0, tie_word_embeddings=True)
    body = BartModel(theirs.config)
    body.load_state_dict(theirs.model.state_dict())
    body.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        ours, _ = import_checkpoint(tmp_path / "theirs")
    batch = ragged_batch(theirs)
    torch.testing.assert_close(ours(**batch).logits, theirs(**batch).logits, atol=1e-5, rtol=1e-5)


def test_code_beside_the_weights_never_runs(tmp_path):
    write_model(tmp_path / "theirs")
    trap = tmp_path / "it-ran"
    (tmp_path / "theirs" / "trap.py").write_text(f"open({str(trap)!r}, 'w')\nclass Config: ...\nclass Model: ...\n")
    auto = {"AutoConfig": "trap.Config", "AutoModelForSeq2SeqLM": "trap.Model", "AutoModel": "trap.Model"}
    change_config(tmp_path / "theirs", auto_map=auto)
    with pytest.warns(UserWarning, match="has no tokenizer"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not trap.exists() and not (tmp_path / "ours" / "trap.py").exists()


# What is refused


def rewrite_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def lose_two(tensors):
    del tensors["model.decoder.layers.0.fc1.bias"], tensors["model.encoder.layernorm_embedding.weight"]


def add_two(tensors):
    tensors["model.encoder.adapter.weight"] = torch.zeros(3, 5)
    tensors["head.bias"] = torch.zeros(2)


def cut_one(tensors):
    tensors["model.encoder.layers.0.fc1.weight"] = tensors["model.encoder.layers.0.fc1.weight"][:7].clone()


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        (
            lose_two,
            [r"missing: model.decoder.layers.0.fc1.bias \(", r"missing: model.encoder.layernorm_embedding"],
        ),
        (add_two, [r"unknown: head.bias \(2,\)", r"unknown: model.encoder.adapter.weight \(3, 5\)"]),
        (cut_one, [r"other shape: model.encoder.layers.0.fc1.weight \(7, \d+\) instead of \(\d\d, \d+\)"]),
    ],
)
def test_every_missing_unknown_or_other_tensor_is_named(change, messages, tmp_path):
    write_model(tmp_path / "theirs")
    rewrite_tensors(tmp_path / "theirs", change)
    with pytest.raises(ValueError) as refused:
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    for message in messages:
        assert pytest.RaisesExc(ValueError, match=message).matches(refused.value), refused.value
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "pegasus"}, "model_type='pegasus' of .* must be one of marian, bart, mbart, t5"),
        ({"model_type": None}, "model_type=None of .* must be one of"),
        ({"model_type": "attn-transformer"}, "model_type='attn-transformer' of .* must be one of"),
        ({"encoder_layerdrop": 0.1}, r"encoder_layerdrop=0.1 \(it must be 0.0\)"),
        ({"decoder_layerdrop": 0.2, "is_decoder": True}, r"is_decoder=True .* decoder_layerdrop=0.2"),
        ({"quantization_config": {"quant_method": "fbgemm_fp8"}}, "quantised weights"),
    ],
)
def test_a_setting_without_a_counterpart_is_named(values, message, tmp_path):
    write_model(tmp_path / "theirs")
    change_config(tmp_path / "theirs", **values)
    with pytest.raises(ValueError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("model_type", ["bart", "mbart", "t5"])
def test_a_setting_of_another_type_is_named(model_type):
    theirs = random_model(model_type, 0)
    theirs.config.pad_token_id = None
    with pytest.raises(ValueError, match=f"this {model_type} has a setting without a counterpart .* 'pad_token_id'"):
        import_checkpoint(theirs)


@pytest.mark.parametrize("convert", [import_checkpoint, export_checkpoint])
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("config.json", lambda data: b"{", "holds no config.json that can be read"),
        ("config.json", lambda data: b"[1]", "holds no config.json with the settings of a model"),
        ("config.json", lambda data: b"", "holds no config.json"),
        ("model.safetensors", lambda data: b"", "its weights cannot be read from safetensors"),
        ("model.safetensors", lambda data: b"version https://git-lfs.github.com/spec/v1", "its weights cannot be read"),
        ("model.safetensors", lambda data: data[:-100], "its weights cannot be read from safetensors"),
    ],
)
def test_a_broken_file_is_named_in_both_directions(convert, name, change, message, tmp_path):
    model = random_model("bart", 0) if convert is import_checkpoint else ours_like("bart")
    model.save_pretrained(tmp_path / "from")
    path = tmp_path / "from" / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        convert(tmp_path / "from", tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("fault", ["missing", "unknown", "other shape"])
def test_an_export_takes_no_weights_that_are_not_whole(fault, tmp_path):
    ours_like("bart").save_pretrained(tmp_path / "ours")
    name = "model.decoder.layers.1.feed_forward.inner.bias"

    def change(tensors):
        if fault == "missing":
            del tensors[name]
        else:
            tensors[name + "x" * (fault == "unknown")] = torch.zeros(3)

    rewrite_tensors(tmp_path / "ours", change)
    with pytest.raises(ValueError, match=f"{fault}: {name}"):
        export_checkpoint(tmp_path / "ours", tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_weights_in_a_pickle_are_refused(tmp_path):
    model = write_model(tmp_path / "theirs")
    (tmp_path / "theirs" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="has no weights: there is no file"):
        import_checkpoint(tmp_path / "theirs")
    torch.save(model.state_dict(), tmp_path / "theirs" / "pytorch_model.bin")
    with pytest.raises(ValueError, match="has its weights in pytorch_model.bin, a format that can run code"):
        import_checkpoint(tmp_path / "theirs")


def test_a_table_that_is_not_of_sinusoids_is_refused():
    theirs = random_model("marian", 0)
    with torch.no_grad():
        theirs.model.decoder.embed_positions.weight[5, 3] += 0.01
    with pytest.raises(ValueError, match="model.decoder.embed_positions.weight is no table of sinusoids .* 0.01"):
        import_checkpoint(theirs)


def test_a_marian_whose_configuration_does_not_say_what_is_tied_is_refused():
    theirs = random_model("marian", 0, share_encoder_decoder_embeddings=True, tie_word_embeddings=False)
    with pytest.raises(ValueError, match=r"share_encoder_decoder_embeddings=True \(it must be False\)"):
        import_checkpoint(theirs)


def test_sources_that_are_no_checkpoints_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no such folder"):
        import_checkpoint(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no config.json"):
        import_checkpoint(tmp_path)
    theirs = random_model("t5", 0)
    with pytest.raises(ValueError, match="T5EncoderModel, which has no twin here; it must be one of MarianMTModel"):
        import_checkpoint(T5EncoderModel(theirs.config))
    with pytest.raises(ValueError, match="which has no twin here"):
        import_checkpoint(AttnTransformerForConditionalGeneration(AttnTransformerConfig(**SMALL)))


def test_a_folder_that_holds_something_is_not_written_to(tmp_path):
    (tmp_path / "kept.txt").write_text("mine")
    theirs = random_model("bart", 0)
    for convert, model in ((import_checkpoint, theirs), (export_checkpoint, import_checkpoint(theirs)[0])):
        with pytest.raises(ValueError, match="which holds something; give a new or an empty folder"):
            convert(model, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


# Ours to theirs


SMALL = {
    "vocab_size": 43, "hidden_size": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 4, "encoder_intermediate_size": 20, "decoder_intermediate_size": 24,
    "max_position_embeddings": 30,
}  # fmt: skip
LIKE = {
    "marian": {"sinusoidal_order": "concatenated"},
    "bart": {"position_type": "learned", "normalize_embedding": True},
    "mbart": {"position_type": "learned", "normalize_embedding": True, "norm_first": True},
    "t5": {
        "position_type": "relative", "norm_type": "rms", "norm_first": True, "use_bias": False,
        "scale_attention": False, "scale_embedding": False, "encoder_attention_heads": 4,
        "encoder_intermediate_size": 24, "dropout": 0.0,
    },
}  # fmt: skip


def ours_like(model_type, **options):
    """A model of ours that has a twin, unless the options prevent it."""
    config = AttnTransformerConfig(**SMALL | LIKE[model_type] | options)
    return AttnTransformerForConditionalGeneration(config).eval()


@pytest.mark.parametrize("model_type", CLASSES)
def test_the_class_is_chosen_by_the_configuration(model_type, tmp_path):
    ours = ours_like(model_type)
    theirs, tokenizer = export_checkpoint(ours, tmp_path / "theirs")
    assert type(theirs) is CLASSES[model_type][1] and tokenizer is None
    assert type(AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs")) is type(theirs)
    batch = {"input_ids": torch.tensor([[5, 6, 7, 2]]), "decoder_input_ids": torch.tensor([[1, 9, 8]])}
    torch.testing.assert_close(theirs(**batch).logits, ours(**batch).logits, atol=1e-5, rtol=1e-5)
    again, _ = import_checkpoint(theirs)
    assert again.config.to_dict() | {"dtype": None} == ours.config.to_dict() | {"dtype": None}
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.state_dict().items())


@pytest.mark.parametrize(
    ("model_type", "options", "obstacle"),
    [
        ("marian", {"position_type": "rotary", "sinusoidal_order": "interleaved"}, "position_type='rotary'"),
        (
            "marian",
            {"sinusoidal_order": "interleaved"},
            r"sinusoidal_order='interleaved' \(it must be ",
        ),
        ("marian", {"norm_type": "rms"}, r"norm_type='rms' \(it must be 'layer'\)"),
        ("marian", {"embedding_size": 8}, "embedding_size=8"),
        ("marian", {"use_bias": False}, "use_bias=False"),
        ("bart", {"position_type": "alibi"}, "position_type='alibi'"),
        ("bart", {"head_dim": 6}, r"head_dim=6 \(it must be None\)"),
        ("bart", {"layer_norm_eps": 1e-6}, "layer_norm_eps=1e-06"),
        ("bart", {"share_embeddings": False}, "share_embeddings=False with tie_word_embeddings=True"),
        ("bart", {"decoder_vocab_size": 41, "share_embeddings": False, "tie_word_embeddings": False}, "vocab_size=41"),
        ("mbart", {"gated_feed_forward": True}, "gated_feed_forward=True"),
        ("t5", {"decoder_attention_heads": 2}, "decoder_attention_heads=2 beside encoder_attention_heads=4"),
        ("t5", {"attention_dropout": 0.1}, "attention_dropout=0.1 beside dropout=0.0"),
        ("t5", {"output_bias": True}, "output_bias=True"),
        ("t5", {"gated_feed_forward": True, "activation_function": "gelu"}, "activation_function='gelu' with gated"),
        ("t5", {"share_embeddings": False}, "share_embeddings=False with tie_word_embeddings=True"),
    ],
)
def test_an_option_without_a_twin_is_named(model_type, options, obstacle, tmp_path):
    ours = ours_like(model_type, **options)
    with pytest.raises(ValueError, match=f"no model of transformers does what .* {model_type}: .*{obstacle}"):
        export_checkpoint(ours, tmp_path / "theirs")
    with pytest.raises(ValueError, match=f"in the way of {model_type}: [^;]*{obstacle}[^;]*$"):
        export_checkpoint(ours, tmp_path / "theirs", model_type=model_type)
    assert not (tmp_path / "theirs").exists()


def test_every_option_of_ours_stands_in_every_table_or_must_have_its_default():
    options = option_values(AttnTransformerConfig()).keys()
    for twin in SEQ2SEQ_TWINS.values():
        said = {*twin.fields, *twin.fixed, *twin.converted}
        assert said <= options
        assert not said & set(ALIGNMENT)


def test_alignment_options_get_lost_with_a_warning():
    ours = ours_like("bart", alignment_method="shifted", alignment_heads=[1])
    with pytest.warns(UserWarning, match=r"bart has no place for alignment_method='shifted', alignment_heads=\[1\]"):
        export_checkpoint(ours)


def test_an_export_of_something_else_is_refused(checkpoint, tmp_path):
    folder, theirs, _, _ = checkpoint("bart")
    with pytest.raises(ValueError, match="model is BartForConditionalGeneration; it must be one of AttnTransformer"):
        export_checkpoint(theirs)
    with pytest.raises(ValueError, match="model_type='bart' of .* is no model of ours with a twin"):
        export_checkpoint(folder)
    with pytest.raises(ValueError, match="model_type='gpt2' is not allowed for AttnTransformer.*; choose one of 'mar"):
        export_checkpoint(ours_like("bart"), model_type="gpt2")


def test_what_was_imported_needs_the_source_no_more(tmp_path):
    write_checkpoint("marian-separate", tmp_path / "theirs")
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    before = Translator(tmp_path / "ours")(SENTENCES[0], max_new_tokens=5).text
    shutil.rmtree(tmp_path / "theirs")
    assert Translator(tmp_path / "ours")(SENTENCES[0], max_new_tokens=5).text == before
    for path in (tmp_path / "ours").rglob("*.json"):
        assert str(tmp_path) not in path.read_text(encoding="utf-8"), path.name
