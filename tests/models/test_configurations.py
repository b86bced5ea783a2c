"""What every configuration refuses."""

import json

import pytest

from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig


@pytest.mark.parametrize("config_class", [AttnRnnConfig, AttnTransformerConfig])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pad_token_id": 10}, "pad_token_id=10 must be at least 0 and less than 10"),
        ({"pad_token_id": -1}, "pad_token_id=-1"),
        ({"decoder_start_token_id": 10}, "decoder_start_token_id=10 must be at least 0 and less than 10"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id=-1"),
        ({"initializer_range": -1.0}, "initializer_range=-1.0 must be greater than 0"),
        ({"initializer_range": float("nan")}, "initializer_range=nan"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder=False is not allowed"),
        ({"decoder_vocab_size": 5, "pad_token_id": 7}, "pad_token_id=7 must be at least 0 and less than 5"),
        ({"decoder_vocab_size": 5, "decoder_start_token_id": 5}, "decoder_start_token_id=5"),
    ],
)
def test_values_out_of_range_are_refused(config_class, options, message):
    with pytest.raises(ValueError, match=message):
        config_class(vocab_size=10, share_embeddings=False, tie_word_embeddings=False, **options)


@pytest.mark.parametrize(
    ("config_class", "options", "message"),
    [
        (
            AttnTransformerConfig,
            {"alignment_method": "norms"},
            "alignment_method='norms' is not allowed; choose one of",
        ),
        (AttnTransformerConfig, {"alignment_layer": 6}, "alignment_layer=6 must be at least 0 and less than 6"),
        (AttnTransformerConfig, {"alignment_layer": -1}, "alignment_layer=-1"),
        (AttnTransformerConfig, {"alignment_heads": [0, 8]}, r"alignment_heads=\[0, 8\] must be heads of 0 to 7"),
        (AttnTransformerConfig, {"alignment_heads": []}, r"alignment_heads=\[\]"),
        (
            AttnRnnConfig,
            {"decoder_layers": 2, "alignment_layer": 1},
            "alignment_layer=1 must be at least 0 and less than 1",
        ),
        (AttnRnnConfig, {"alignment_heads": [1]}, r"alignment_heads=\[1\] must be heads of 0 to 0"),
        (AttnRnnConfig, {"attention_type": "none", "alignment_heads": [0]}, "must be None without attention"),
    ],
)
def test_an_alignment_that_the_model_cannot_give_is_refused(config_class, options, message):
    with pytest.raises(ValueError, match=message):
        config_class(**options)


@pytest.mark.parametrize("config_class", [AttnRnnConfig, AttnTransformerConfig])
def test_the_recommended_alignment_is_saved_and_older_files_open(config_class, tmp_path):
    config = config_class(alignment_method="shifted", alignment_layer=0, alignment_heads=[0])
    config.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    loaded = config_class.from_pretrained(tmp_path)
    assert (loaded.alignment_method, loaded.alignment_layer, loaded.alignment_heads) == ("shifted", 0, [0])
    saved = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({name: saved[name] for name in saved if not name.startswith("alignment")}))
    older = config_class.from_pretrained(tmp_path)
    assert (older.alignment_method, older.alignment_layer, older.alignment_heads) == ("weights", None, None)


@pytest.mark.parametrize(
    "options",
    [
        {"hidden_size": 18, "head_dim": 4},  # 8 heads, which need not divide the width
        {"head_dim": 6, "position_type": "rotary"},
        {"decoder_start_token_id": 0},  # padding
        {"layer_norm_eps": 1},
        {"position_type": "relative", "relative_attention_num_buckets": 4, "relative_attention_max_distance": 3},
        {"position_type": "alibi", "relative_attention_num_buckets": 32, "sinusoidal_order": "interleaved"},
    ],
)
def test_a_transformer_takes_what_is_unusual_but_makes_sense(options, tmp_path):
    AttnTransformerConfig(**options).save_pretrained(tmp_path)
    loaded = AttnTransformerConfig.from_pretrained(tmp_path)
    assert {name: getattr(loaded, name) for name in options} == options


@pytest.mark.parametrize("config_class", [AttnRnnConfig, AttnTransformerConfig])
def test_ids_inside_are_taken(config_class):
    config = config_class(vocab_size=10, decoder_vocab_size=12, share_embeddings=False, decoder_start_token_id=11)
    assert config.decoder_start_token_id == 11


@pytest.mark.parametrize("config_class", [AttnRnnConfig, AttnTransformerConfig])
@pytest.mark.parametrize("sizes", [{"vocab_size": 10}, {"vocab_size": 10, "decoder_vocab_size": 12}])
def test_a_saved_configuration_keeps_its_vocabularies(config_class, sizes, tmp_path):
    config_class(share_embeddings=False, **sizes).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert {name: saved.get(name) for name in ("vocab_size", "decoder_vocab_size")} == {
        "vocab_size": 10,
        "decoder_vocab_size": sizes.get("decoder_vocab_size"),
    }
    loaded = config_class.from_pretrained(tmp_path)
    assert loaded.get_text_config(decoder=True).vocab_size == sizes.get("decoder_vocab_size", 10)
