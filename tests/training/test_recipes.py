"""Recipes: the papers' numbers, and models that can be built and trained from them."""

import pytest
import torch
from transformers import AutoConfig, Seq2SeqTrainingArguments

import hf_attn  # noqa: F401  registers the model types
from hf_attn.data import train_tokenizer
from hf_attn.training import RECIPES, build_config, build_model, get_recipe, training_arguments
from hf_attn.training.arguments import ARGUMENT_CLASSES
from hf_attn.training.recipes import hardware_defaults

TEXTS = ["the house is red", "la maison est rouge", "두 집은 빨갛다"]
TINY_RNN = {"hidden_size": 8, "embedding_size": 8, "encoder_layers": 1, "decoder_layers": 1}
TINY_TRANSFORMER = {"hidden_size": 8, "encoder_attention_heads": 2, "decoder_attention_heads": 2} | {
    "encoder_layers": 1, "decoder_layers": 1, "encoder_intermediate_size": 8, "decoder_intermediate_size": 8,
}  # fmt: skip
TINY_CONTROL = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
TINY = {
    "attn-rnn": TINY_RNN,
    "attn-convs2s": TINY_RNN,
    "attn-transformer": TINY_TRANSFORMER,
    "marian": TINY_CONTROL,
    "bart": TINY_CONTROL,
}


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 300)


@pytest.fixture(scope="module")
def other_tokenizer():
    return train_tokenizer(TEXTS[2:], 280)


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_names_real_fields_and_arguments(name, tokenizer):
    recipe = get_recipe(name)
    known = AutoConfig.for_model(recipe.model_type)
    assert [field for field in recipe.config if not hasattr(known, field)] == []
    arguments = {field for cls in ARGUMENT_CLASSES for field in cls.__dataclass_fields__}
    assert set(recipe.arguments) <= arguments
    config = build_config(name, tokenizer)
    assert {field: getattr(config, field) for field in recipe.config} == recipe.config
    assert config.vocab_size == len(tokenizer)
    assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 1, 2)
    assert config.decoder_start_token_id == 1


@pytest.mark.parametrize("name", RECIPES)
def test_model_of_recipe_trains_and_generates(name, tokenizer):
    recipe = get_recipe(name)
    model = build_model(name, tokenizer, **TINY[recipe.model_type])
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    loss = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=batch.input_ids).loss
    loss.backward()
    assert torch.isfinite(loss)
    assert model.config.model_type == recipe.model_type
    ids = model.generate(input_ids=batch.input_ids, attention_mask=batch.attention_mask, max_new_tokens=4)
    assert ids[:, 0].tolist() == [1, 1, 1]
    assert 2 <= ids.shape[1] <= 5


def test_paper_numbers():
    """Vaswani 2017, Table 3 and equation 3; Bahdanau 2015, A.2.3; Sutskever 2014, 3.4; Luong 2015, 4.1; Gehring 2017,
    4.2 and 5.1."""
    base, big = RECIPES["transformer-base"], RECIPES["transformer-big"]
    columns = ("encoder_layers", "hidden_size", "encoder_intermediate_size", "encoder_attention_heads", "dropout")
    assert [base.config[column] for column in columns] == [6, 512, 2048, 8, 0.1]
    assert [big.config[column] for column in columns] == [6, 1024, 4096, 16, 0.3]
    for recipe in (base, big):
        peak = recipe.config["hidden_size"] ** -0.5 * recipe.arguments["warmup_steps"] ** -0.5
        assert recipe.arguments["learning_rate"] == pytest.approx(peak, rel=1e-3)
    bahdanau = RECIPES["bahdanau"].config
    assert (bahdanau["hidden_size"], bahdanau["embedding_size"], bahdanau["attention_size"]) == (1000, 620, 1000)
    convs2s = RECIPES["convs2s"]
    columns = ("encoder_layers", "decoder_layers", "hidden_size", "encoder_kernel_size", "decoder_kernel_size")
    assert [convs2s.config[column] for column in columns] == [20, 20, 512, 3, 3]
    assert (convs2s.arguments["learning_rate"], convs2s.arguments["max_grad_norm"]) == (0.25, 0.1)
    gnmt = RECIPES["gnmt"]  # Wu 2016, sections 3 and 8
    columns = ("rnn_type", "encoder_layers", "decoder_layers", "bidirectional_layers", "hidden_size", "residual")
    assert [gnmt.config[column] for column in columns] == ["lstm", 8, 8, 1, 1024, True]
    assert (gnmt.arguments["learning_rate"], gnmt.arguments["max_grad_norm"]) == (2e-4, 5.0)
    for name in ("sutskever", "luong"):
        assert RECIPES[name].config["rnn_type"] == "lstm"
        assert (RECIPES[name].config["decoder_layers"], RECIPES[name].config["hidden_size"]) == (4, 1000)


@pytest.mark.parametrize("size", ["small", "tiny"])
def test_only_the_attention_differs_between_recurrent_siblings(size):
    siblings = [RECIPES[f"{name}-{size}"] for name in ("none", "bahdanau", "luong")]
    assert [recipe.config["attention_type"] for recipe in siblings] == ["none", "bahdanau", "luong"]
    attention = {"attention_type", "score_function", "attention_size", "input_feeding", "context_feeding"}
    assert len({str({k: v for k, v in recipe.config.items() if k not in attention}) for recipe in siblings}) == 1
    assert siblings[0].arguments == siblings[1].arguments == siblings[2].arguments


def test_the_small_transformer_starts_like_its_control(tokenizer):
    """Two of one architecture are under the same conditions only if their weights begin alike."""
    spreads = []
    for name in ("transformer-small", "marian-small"):
        torch.manual_seed(0)
        model = build_model(name, tokenizer)
        matrices = [p for p in model.parameters() if p.dim() == 2 and p.requires_grad]
        spreads.append(sorted(float(matrix.detach().std()) for matrix in matrices))
    assert spreads[0] == pytest.approx(spreads[1], rel=0.05)
    assert RECIPES["transformer-small"].arguments == RECIPES["marian-small"].arguments


def test_inverse_sqrt_schedule_is_vaswanis_equation_3():
    from transformers import get_scheduler

    recipe = RECIPES["transformer-base"]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=recipe.arguments["learning_rate"])
    schedule = get_scheduler("inverse_sqrt", optimizer, num_warmup_steps=recipe.arguments["warmup_steps"])
    for step in range(1, 9001):
        optimizer.step()
        schedule.step()
        if step % 1000 == 0:
            expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
            assert schedule.get_last_lr()[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["bahdanau-small", "transformer-small", "marian-small"])
def test_separate_vocabularies(name, tokenizer, other_tokenizer):
    model = build_model(name, tokenizer, other_tokenizer, **TINY[get_recipe(name).model_type])
    assert len(tokenizer) != len(other_tokenizer)
    assert (model.config.vocab_size, model.config.decoder_vocab_size) == (len(tokenizer), len(other_tokenizer))
    source, target = torch.tensor([[len(tokenizer) - 1, 2]]), torch.tensor([[1, len(other_tokenizer) - 1]])
    logits = model(input_ids=source, decoder_input_ids=target).logits
    assert logits.shape == (1, 2, len(other_tokenizer))


def test_what_cannot_be_built_is_refused(tokenizer, other_tokenizer):
    with pytest.raises(ValueError, match="recipe must be one of sutskever, .*; got 'gpt-9'"):
        get_recipe("gpt-9")
    with pytest.raises(ValueError, match="attn-rnn has no config field hiden_size; it has .*hidden_size"):
        build_config("bahdanau-small", tokenizer, hiden_size=8)
    with pytest.raises(ValueError, match="'bart' has one vocabulary"):
        build_config("bart-small", tokenizer, other_tokenizer)
    strange = train_tokenizer(TEXTS, 300)
    strange.eos_token = strange.convert_ids_to_tokens(7)
    with pytest.raises(ValueError, match="target_tokenizer must have the special tokens of the source"):
        build_config("bahdanau-small", tokenizer, strange)
    strange.pad_token = None
    with pytest.raises(ValueError, match="it lacks pad_token_id"):
        build_config("bahdanau-small", strange)


def test_training_arguments_of_a_recipe(tmp_path):
    args = training_arguments("transformer-small", str(tmp_path), learning_rate=0.5, use_cpu=True, bf16=False)
    assert isinstance(args, Seq2SeqTrainingArguments)
    assert args.learning_rate == 0.5  # overridden
    assert args.label_smoothing_factor == RECIPES["transformer-small"].arguments["label_smoothing_factor"] == 0.1
    assert str(args.lr_scheduler_type.value) == "inverse_sqrt"


@pytest.mark.parametrize(
    ("capabilities", "expected"), [({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx2": True}, False)]
)
def test_bfloat16_where_the_processor_computes_in_it(monkeypatch, capabilities, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert hardware_defaults() == {"bf16": expected, "use_cpu": True, "dataloader_pin_memory": False}
    Seq2SeqTrainingArguments(output_dir="unused", **hardware_defaults())  # accepted by transformers


@pytest.mark.parametrize("native", [True, False])
def test_bfloat16_where_the_gpu_computes_in_it(monkeypatch, native):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or native)
    assert hardware_defaults() == {"bf16": native, "dataloader_pin_memory": True}
