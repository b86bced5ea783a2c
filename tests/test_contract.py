# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Saving and loading: what a folder gives back is what was saved, for every family, head and variant.

Read test_contract_calls.py next: what a loaded model returns.
"""

import json
import re
from dataclasses import MISSING, fields
from functools import cache
from itertools import product

import pytest
import torch
from contract import VARIANTS, cases
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, GenerationConfig, Trainer, TrainingArguments

from hf_attn.registry import FAMILIES, family_module

TIES = list(product([False, True], repeat=2))


def load(model_class, folder, **options):
    """The model and what the library reports about its loading."""
    return model_class.from_pretrained(folder, output_loading_info=True, **options)


def named_tensors(model):
    """Every parameter and buffer by every one of its names."""
    return dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))


def assert_same_tensors(model, expected):
    """The same names, and equal values."""
    tensors = named_tensors(model)
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensors[name], tensor), name


def run(model, case, **options):
    """What the model computes for the batch of its case: logits, or states without a head."""
    with torch.no_grad():
        return model(**case.batch(labels=False), **options)[0]


def poison(model):
    """Leave NaN in freed memory of the sizes that the loader will ask for."""
    sizes = [tensor.numel() for tensor in named_tensors(model).values()]
    spoilt = [torch.full((size,), float("nan")) for size in sizes for _ in range(4)]
    assert len(spoilt) == 4 * len(sizes)


def matrices(model):
    """The embeddings, of source and target where there are two, and, where there is one, the output matrix; none of a
    model without a vocabulary."""
    if model.main_input_name != "input_ids":
        return []
    base = model.base_model
    stacks = [base.encoder, base.decoder] if model.config.is_encoder_decoder else [base]
    head = [model.lm_head.weight] if hasattr(model, "lm_head") else []
    return [*(stack.embed_tokens.weight for stack in stacks), *head]


def ties(case, share, tie):
    """The two switches, as far as the family has them."""
    output = {"tie_word_embeddings": tie} if case.reads_text else {}
    return output | ({"share_embeddings": share} if case.is_encoder_decoder else {})


def switches(case):
    """How the two are set in a variant; embeddings that there is one of are one."""
    return getattr(case.config(), "share_embeddings", True), getattr(case.config(), "tie_word_embeddings", False)


def with_ties(found, both=lambda share, tie: ()):
    """The cases with each setting of the switches that they have, and the marks that `both` gives a setting."""
    return [
        pytest.param(param.values[0], share, tie, id=f"{param.id}-{share}-{tie}", marks=both(share, tie))
        for param in found
        for share, tie in TIES
        if (share or param.values[0].is_encoder_decoder) and (param.values[0].reads_text or not tie)
    ]


def assert_tied(model, share, tie):
    """One storage where the two switches say so, and separate ones elsewhere."""
    found = [matrix.untyped_storage().data_ptr() for matrix in matrices(model)]
    if model.main_input_name != "input_ids":
        return
    embeddings, output = (found[:2], found[2:]) if model.config.is_encoder_decoder else (found[:1], found[1:])
    source, target = embeddings[0], embeddings[-1]
    assert (source == target) == share
    for head in output:
        assert (head == target) == tie
        assert (head == source) == (share and tie)


@pytest.mark.parametrize("case", cases())
def test_loading_restores_every_parameter_and_buffer(case, tmp_path):
    model = case.model(sharpness=4.0)
    model.save_pretrained(tmp_path, include_code=False)
    expected = run(model, case)
    for _ in range(3):
        poison(model)
        loaded, info = load(case.model_class, tmp_path)
        assert not any(info.values()), info
        assert_same_tensors(loaded, named_tensors(model))
        assert torch.equal(run(loaded, case), expected)
        assert not any(module.training for module in loaded.modules())
        for module in loaded.modules():  # a tensor that is neither parameter nor buffer would not be moved or filled
            assert not [name for name, value in vars(module).items() if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("case", cases())
def test_only_safetensors_and_json_are_written(case, tmp_path):
    model = case.model_class(case.config())  # right after construction
    model.save_pretrained(tmp_path, include_code=False)
    names = {"config.json", "model.safetensors"} | ({"generation_config.json"} if case.generates else set())
    assert {path.name for path in tmp_path.iterdir()} == names
    assert model.training
    saved = load_file(tmp_path / "model.safetensors")
    assert sum(tensor.numel() for tensor in saved.values()) == model.num_parameters()  # each tied matrix once


@cache
def new_models(case):
    """The tensors of several new models, by name."""
    models = [case.model_class(case.config()) for seed in range(6) if torch.manual_seed(seed)]
    return {name: torch.stack([named_tensors(model)[name] for model in models]) for name in named_tensors(models[0])}


def assert_new(name, tensor, new):
    """A tensor is distributed like those of new models, (models, ...)."""
    new, tensor = new.detach(), tensor.detach()
    constant = (new == new[0]).all(dim=0)  # ones, zeros, the row of padding: the same in every new model
    assert torch.equal(tensor[constant], new[0][constant]), name
    free, expected = tensor[~constant], new[:, ~constant]
    if free.numel() == 0:
        return
    assert (free != 0).all() and free.abs().max() < 2 * expected.abs().max(), name
    ratio = free.square().mean().sqrt() / expected.square().mean().sqrt()
    assert abs(ratio - 1) < 5 / (2 * free.numel()) ** 0.5, f"{name}: {ratio} times as wide as in new models"
    assert not any(torch.equal(tensor, one) for one in new), name
    if tensor.dim() == 2 and tensor.shape[0] % tensor.shape[1] == 0:
        identity = torch.eye(tensor.shape[1])
        for gate, new_gate in zip(tensor.split(len(identity)), new[0].split(len(identity)), strict=True):
            if torch.allclose(new_gate @ new_gate.T, identity, atol=1e-4):
                torch.testing.assert_close(gate @ gate.T, identity, atol=1e-4, rtol=0, msg=name)


def load_without(case, folder, dropped):
    """Load a saved model from which parameters are missing."""
    state = load_file(folder / "model.safetensors")
    lacking = folder / "lacking"
    lacking.mkdir(exist_ok=True)
    (lacking / "config.json").write_bytes((folder / "config.json").read_bytes())
    kept = {name: tensor for name, tensor in state.items() if name not in dropped}
    save_file(kept or {"nothing": torch.zeros(1)}, lacking / "model.safetensors", metadata={"format": "pt"})
    loaded, info = load(case.model_class, lacking)
    assert set(info["unexpected_keys"]) == set() if kept else {"nothing"}
    return loaded, info


@pytest.mark.parametrize("case", cases(heads=True))
def test_what_a_checkpoint_lacks_is_named_and_new(case, tmp_path):
    """Each parameter is missing once with its neighbours in place, once with all of its module class, and once with
    everything."""
    model = case.model(sharpness=4.0)
    model.save_pretrained(tmp_path, include_code=False)
    saved = load_file(tmp_path / "model.safetensors")
    tied = model._tied_weights_keys or {}
    others = {source: [target for target, of in tied.items() if of == source] for source in saved}
    groups = {"everything": list(saved)}
    for number, (path, module) in enumerate(model.named_modules()):
        for index, (name, _) in enumerate(module.named_parameters(recurse=False)):
            name = f"{path}.{name}"
            if name in saved:
                groups.setdefault(type(module), []).append(name)
                groups.setdefault((number % 2, index), []).append(name)
    for dropped in groups.values():
        poison(model)
        loaded, info = load_without(case, tmp_path, dropped)
        dropped = {name for source in dropped for name in (source, *others[source])}
        assert set(info["missing_keys"]) == dropped
        assert not info["mismatched_keys"] and not info["error_msgs"]
        for name, tensor in named_tensors(loaded).items():
            if name in dropped:
                assert_new(name, tensor, new_models(case)[name])
            else:
                assert torch.equal(tensor, named_tensors(model)[name]), name


def test_a_checkpoint_that_does_not_fit_says_so(tmp_path):
    case = cases(heads=True)[0].values[0]
    case.model().save_pretrained(tmp_path, include_code=False)
    state = load_file(tmp_path / "model.safetensors")
    save_file(state | {"lm_head.bias": torch.zeros(3)}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    _, info = load(case.model_class, tmp_path)
    assert set(info["unexpected_keys"]) == {"lm_head.bias"} and not info["missing_keys"]
    with pytest.raises(RuntimeError, match="size mismatch|ignore_mismatched_sizes"):
        load(case.model_class, tmp_path, vocab_size=50)


@pytest.mark.parametrize("case, share, tie", with_ties(cases(variants=False, text=True)))
def test_tied_matrices_are_one_storage_through_saving_and_loading(case, share, tie, tmp_path):
    model = case.model(**ties(case, share, tie))
    assert_tied(model, share, tie)
    first, second, absent = (tmp_path / name for name in ("first", "second", "absent"))
    model.save_pretrained(first, include_code=False)
    loaded, info = load(case.model_class, first)
    assert not any(info.values()), info
    loaded.save_pretrained(second, include_code=False)
    again, info = load(case.model_class, second)
    assert not any(info.values()), info
    for copy in (loaded, again):
        assert_tied(copy, share, tie)
        assert_same_tensors(copy, named_tensors(model))
    copied = copy.__class__(copy.config)
    copied.load_state_dict(model.state_dict())
    assert_tied(copied, share, tie)

    # without the flags in config.json the family's defaults hold
    config = json.loads((first / "config.json").read_text())
    defaults = {field.name: field.default for field in fields(case.model_class.config_class)}
    flags = ties(case, share, tie)
    if all(defaults[name] == value for name, value in flags.items()):
        absent.mkdir()
        (absent / "config.json").write_text(json.dumps({n: v for n, v in config.items() if n not in flags}))
        (absent / "model.safetensors").write_bytes((first / "model.safetensors").read_bytes())
        loaded, info = load(case.model_class, absent)
        assert not any(info.values()), info
        assert_tied(loaded, share, tie)
        assert_same_tensors(loaded, named_tensors(model))


@pytest.mark.parametrize(
    "case, share, tie",
    with_ties(cases(heads=True, variants=False), lambda share, tie: pytest.mark.slow if share != tie else ()),
)
def test_a_resumed_training_ends_like_an_uninterrupted_one_and_stays_tied(case, share, tie, tmp_path):
    arguments = TrainingArguments(
        tmp_path, max_steps=4, save_steps=2, per_device_train_batch_size=2, learning_rate=0.05, use_cpu=True,
        disable_tqdm=True, seed=1,
    )  # fmt: skip
    batch = case.batch()
    rows = [{name: value[row] for name, value in batch.items()} for row in range(3)]
    finals = []
    for checkpoint in (None, tmp_path / "checkpoint-2"):
        model = case.model(seed=len(finals), sharpness=2.0, **ties(case, share, tie))
        trainer = Trainer(model, arguments, train_dataset=rows)
        trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        assert trainer.state.global_step == 4
        assert_tied(trainer.model, share, tie)
        finals.append(named_tensors(trainer.model))
    for name, tensor in finals[0].items():
        torch.testing.assert_close(finals[1][name], tensor, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("case", cases(heads=True))
def test_a_checkpoint_of_half_precision_keeps_it_or_becomes_float32(case, dtype, tmp_path):
    exact = case.model()
    expected = run(exact, case)
    exact.to(dtype).save_pretrained(tmp_path, include_code=False)
    name = str(dtype).split(".")[1]
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == name
    for options in ({}, {"dtype": "auto"}):
        loaded = case.model_class.from_pretrained(tmp_path, **options)
        assert loaded.dtype == dtype and {p.dtype for p in loaded.parameters()} == {dtype}
        assert_same_tensors(loaded, named_tensors(exact))
        logits = run(loaded, case)
        assert logits.dtype == dtype and loaded.config.dtype == dtype
        coarse = torch.finfo(dtype).eps * 16 * expected.abs().max()
        torch.testing.assert_close(logits.float(), expected, atol=coarse.item(), rtol=0)
    loaded = case.model_class.from_pretrained(tmp_path, dtype=torch.float32)
    assert_same_tensors(loaded, {name: tensor.float() for name, tensor in named_tensors(exact).items()})
    torch.testing.assert_close(run(loaded, case), expected, atol=coarse.item(), rtol=0)
    loaded.save_pretrained(tmp_path, include_code=False)  # and the other way round
    assert_same_tensors(case.model_class.from_pretrained(tmp_path, dtype=name), named_tensors(exact))


def is_joint(config):
    """Whether source and target have one vocabulary."""
    return getattr(config, "decoder_vocab_size", None) is None


@pytest.mark.parametrize(
    "case",
    [
        param
        for param in cases(heads=True, text=True) + cases(heads=False, variants=False, text=True)
        if is_joint(param.values[0].config())
    ],
)
def test_a_joint_vocabulary_is_resized_everywhere(case, tmp_path):
    batch = case.batch(labels=False)
    batch = {name: value.clamp(max=30) for name, value in batch.items()}
    share, tie = switches(case)
    sizes = [({"new_num_tokens": 50}, 50), ({"new_num_tokens": 39}, 39), ({"pad_to_multiple_of": 8}, 48)]
    sizes += [
        ({"new_num_tokens": 45, "pad_to_multiple_of": 16}, 48),
        ({"new_num_tokens": 60, "mean_resizing": False}, 60),
    ]
    for number, (options, size) in enumerate(sizes):
        model = case.model(sharpness=2.0)
        old, expected = [matrix.detach().clone() for matrix in matrices(model)], model(**batch)[0]
        padding = model.get_input_embeddings().padding_idx
        kept = min(size, 43)
        assert model.resize_token_embeddings(**options) is model.get_input_embeddings()
        model.save_pretrained(tmp_path / str(number), include_code=False)
        loaded, info = load(case.model_class, tmp_path / str(number))
        assert not any(info.values()), info
        assert_same_tensors(loaded, named_tensors(model))
        for copy in (model, loaded):
            assert copy.config.vocab_size == size and is_joint(copy.config)
            assert_tied(copy, share, tie)
            for before, after in zip(old, matrices(copy), strict=True):
                assert after.shape == (size, before.shape[1]) and torch.equal(after[:kept], before[:kept])
                assert after[kept:].isfinite().all() and (after[kept:] != 0).all()
                if "mean_resizing" in options:
                    assert after[kept:].std() < 1.5 * case.config().initializer_range
            output = copy(**batch)[0]
            if case.has_vocabulary:
                assert output.shape[-1] == size
                torch.testing.assert_close(output[..., :kept], expected[..., :kept])
            else:
                torch.testing.assert_close(output, expected)
            embedding = copy.get_input_embeddings()
            assert embedding.num_embeddings == size and embedding.padding_idx == padding
            copy(**batch | {"input_ids": torch.full_like(batch["input_ids"], size - 1)})
        if case.generates:
            ids = {name: batch[name] for name in ("input_ids", "attention_mask")}
            assert torch.equal(model.generate(**ids, max_new_tokens=4), loaded.generate(**ids, max_new_tokens=4))


@pytest.mark.parametrize("case", cases(variants=False, seq2seq=True))
def test_two_vocabularies_are_not_resized_by_one_number(case):
    for size in (37, 43):  # also where the two happen to be of one size
        model = case.model(decoder_vocab_size=size, share_embeddings=False)
        before = named_tensors(model)
        for options in ({"new_num_tokens": 50}, {"pad_to_multiple_of": 8}):
            with pytest.raises(ValueError, match=f"decoder_vocab_size={size}: a model with separate vocabularies"):
                model.resize_token_embeddings(**options)
        assert model.resize_token_embeddings() is model.get_input_embeddings()
        assert_same_tensors(model, before)
        assert (model.config.vocab_size, model.config.decoder_vocab_size) == (43, size)


@pytest.mark.parametrize("case", cases(variants=False, seq2seq=True))
def test_shared_embeddings_are_one_vocabulary_also_where_its_size_is_said_twice(case, tmp_path):
    model = case.model(decoder_vocab_size=43, share_embeddings=True)
    model.resize_token_embeddings(50)
    assert (model.config.vocab_size, model.config.decoder_vocab_size) == (50, 50)
    assert {matrix.shape[0] for matrix in matrices(model)} == {50}
    model.save_pretrained(tmp_path, include_code=False)
    assert_same_tensors(case.model_class.from_pretrained(tmp_path), named_tensors(model))


@pytest.mark.parametrize("case", cases(variants=False, text=True))
def test_a_vocabulary_without_its_special_ids_is_refused(case):
    model = case.model(pad_token_id=40)
    before = named_tensors(model)
    for size, message in ((40, "pad_token_id=40"), (0, "pad_token_id=40")):
        with pytest.raises(ValueError, match=message):
            model.resize_token_embeddings(size)
    assert_same_tensors(model, before)
    assert model.config.vocab_size == 43


@pytest.mark.parametrize("case", cases())
def test_shards_hold_the_same_model(case, tmp_path):
    model = case.model()
    model.save_pretrained(tmp_path, include_code=False, max_shard_size="3KB")
    shards = sorted(tmp_path.glob("model-*-of-*.safetensors"))
    assert len(shards) > 2 and (tmp_path / "model.safetensors.index.json").exists()
    assert sum(len(load_file(shard)) for shard in shards) == len(list(model.parameters()))
    loaded, info = load(case.model_class, tmp_path)
    assert not any(info.values()), info
    assert_same_tensors(loaded, named_tensors(model))
    assert_tied(loaded, *switches(case))
    model.save_pretrained(tmp_path, include_code=False)  # the shards do not stay beside the new file
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["model.safetensors"]


@pytest.mark.parametrize("device_map", ["cpu", "auto", {"": "cpu"}], ids=str)
@pytest.mark.parametrize("case", cases(heads=True, variants=False))
def test_a_device_map_changes_nothing(case, device_map, tmp_path):
    model = case.model(sharpness=4.0)
    model.save_pretrained(tmp_path, include_code=False)
    poison(model)
    loaded, info = load(case.model_class, tmp_path, device_map=device_map)
    assert not any(info.values()), info
    assert_same_tensors(loaded, named_tensors(model))
    assert_tied(loaded, *switches(case))
    assert torch.equal(run(loaded, case), run(model, case))
    batch = case.batch(labels=False)
    batch.pop("decoder_input_ids", None)
    for beams in (1, 3) if case.generates else ():
        options = {"num_beams": beams, "max_new_tokens": 5}
        assert torch.equal(loaded.generate(**batch, **options), model.generate(**batch, **options))


@pytest.mark.parametrize("case, share, tie", with_ties(cases(heads=True, variants=False)))
def test_a_head_s_folder_opens_as_its_model_and_a_model_s_as_a_head(case, share, tie, tmp_path):
    head = case.model(sharpness=2.0, **ties(case, share, tie))
    model_class = type(head.model)
    head.save_pretrained(tmp_path / "head", include_code=False)
    head.model.save_pretrained(tmp_path / "model", include_code=False)
    tied = {"lm_head.weight"} if tie and hasattr(head, "lm_head") else set()
    own = named_tensors(model_class(head.config)).keys() - named_tensors(head.model).keys()  # a pooler

    def assert_the_head_s(loaded):
        tensors = named_tensors(loaded)
        assert_same_tensors(loaded, named_tensors(head.model) | {name: tensors[name] for name in own})

    separate = {name for name in named_tensors(head) if not name.startswith("model.")} - tied
    for opened_class in (model_class, AutoModel):
        loaded, info = load(opened_class, tmp_path / "head")
        assert type(loaded) is model_class
        assert set(info["missing_keys"]) == own and set(info["unexpected_keys"]) == separate
        assert_the_head_s(loaded)
        assert_tied(loaded, share, tie)
    for folder in ("model", "head"):
        assert_the_head_s(AutoModel.from_pretrained(tmp_path / folder))
    poison(head)
    loaded, info = load(case.model_class, tmp_path / "model")
    assert set(info["missing_keys"]) == separate and not info["unexpected_keys"]
    assert_same_tensors(loaded.model, named_tensors(head.model))
    assert_tied(loaded, share, tie)
    for name in info["missing_keys"]:
        new = [case.model(seed=seed, **ties(case, share, tie)) for seed in range(4)]
        assert_new(name, named_tensors(loaded)[name], torch.stack([named_tensors(one)[name] for one in new]))


@pytest.mark.parametrize("case", cases(generates=True))
def test_generation_settings_live_in_the_generation_configuration_alone(case, tmp_path):
    model = case.model(sharpness=4.0)
    settings = {
        "num_beams": 3,
        "max_new_tokens": 7,
        "no_repeat_ngram_size": 2,
        "length_penalty": 0.5,
        "num_return_sequences": 2,
    }
    model.generation_config.update(**settings)
    batch = case.batch(labels=False)
    batch.pop("decoder_input_ids", None)
    expected = model.generate(**batch)
    assert len(expected) == 6 and len(set(expected.flatten().tolist())) > 3
    model.save_pretrained(tmp_path, include_code=False)
    own = {field.name for field in fields(case.model_class.config_class)}
    assert not set(json.loads((tmp_path / "config.json").read_text())) & (set(vars(GenerationConfig())) - own)
    assert settings.items() <= json.loads((tmp_path / "generation_config.json").read_text()).items()
    loaded = case.model_class.from_pretrained(tmp_path)
    assert torch.equal(loaded.generate(**batch), expected)
    changed = case.model_class.from_pretrained(tmp_path, generation_config=GenerationConfig(max_new_tokens=2))
    assert changed.generation_config.max_new_tokens == 2


CONFIGURATIONS = [
    (family_module(family).AUTO_CLASSES["AutoModel"].config_class, VARIANTS.get(family, {"default": {}}))
    for family in FAMILIES
]
GENERATION = {
    "num_beams": 4,
    "max_length": 50,
    "do_sample": True,
    "length_penalty": 2.0,
    "forced_eos_token_id": 2,
    "max_new_tokens": 9,
}


@pytest.mark.parametrize("name", GENERATION)
@pytest.mark.parametrize("config_class", [config_class for config_class, _ in CONFIGURATIONS])
def test_a_generation_setting_is_no_field_of_a_configuration(config_class, name, tmp_path):
    with pytest.raises(ValueError, match=f"{name}={GENERATION[name]}.*generation_config"):
        config_class(**{name: GENERATION[name]})
    config = config_class()
    setattr(config, name, GENERATION[name])
    with pytest.raises((ValueError, StrictDataclassError), match=name):
        config.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("config_class", [config_class for config_class, _ in CONFIGURATIONS])
def test_a_misspelt_field_is_refused_and_the_one_that_is_meant_named(config_class):
    names = [field.name for field in fields(config_class)]
    for name in names:
        middle = len(name) // 2
        for misspelt in (name[:-1], name + "s", name[:middle] + "_" + name[middle:]):
            if len(name) > 6 and misspelt not in [*names, *config_class.attribute_map]:
                with pytest.raises(ValueError, match=f"{misspelt}=2 is no field of the .*; did you mean '{name}'"):
                    config_class(**{misspelt: 2})
    # what the library, other models and users add
    others = [
        "sep_token_id", "torch_dtype", "is_decoder", "tokenizer_class", "add_cross_attention",
        "tie_encoder_decoder", "cross_attention_hidden_size", "finetuning_task", "d_model", "note",
    ]  # fmt: skip
    others = [name for name in others if name not in names]
    assert config_class(num_labels=3, **dict.fromkeys(others)).to_dict().keys() >= {"sep_token_id", "note", "d_model"}
    layers = config_class.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    assert getattr(config_class(num_hidden_layers=3), layers) == 3


def candidates(config_class, field):
    """Values of the kind of a field, for a string those that its check names."""
    if field.type in (bool, "bool"):
        return [True, False]
    if "str" in str(field.type):
        try:
            config_class(**{field.name: "?"})
        except Exception as refused:
            return re.findall(r"'(\w+)'", str(refused).split("choose one of")[-1])
        return ["gelu", "relu"]
    if "list" in str(field.type) and "int" not in str(field.type).split("list")[0]:
        return [[0]]
    if "float" in str(field.type):
        return [0.25]
    return [3, 4, 8, 1, 0, 12, 100, 40000]


@pytest.mark.parametrize("config_class, variants", CONFIGURATIONS)
def test_every_field_of_a_configuration_survives_json(config_class, variants, tmp_path):
    own = {
        name
        for base in config_class.__mro__
        if base.__module__.startswith("hf_attn")
        for name in vars(base).get("__annotations__", {})
    }
    changed, fixed = {}, set()
    for field in fields(config_class):
        if field.name not in own:
            continue
        assert field.default is not MISSING
        for variant, value in product(variants.values(), candidates(config_class, field)):
            try:
                config = config_class(**variant | {field.name: value})
            except Exception:
                continue
            if value != field.default:
                changed[field.name] = (config, value)
                break
        else:
            fixed.add(field.name)
    assert changed.keys() | fixed == own and fixed <= {"is_encoder_decoder", "num_attention_heads"}
    for name, (config, value) in changed.items():
        config.save_pretrained(tmp_path)
        for loaded in (config_class.from_pretrained(tmp_path), AutoConfig.from_pretrained(tmp_path)):
            assert type(loaded) is config_class and getattr(loaded, name) == value
            assert loaded.to_dict() | {"_name_or_path": ""} == config.to_dict()
        assert config_class(**config.to_dict()).to_dict() == config.to_dict()
