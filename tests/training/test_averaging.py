"""The mean of checkpoints, against means computed by hand."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import BartConfig, BartForConditionalGeneration

from hf_attn.training import average_checkpoints, last_checkpoints, load_average


def write(folder, **tensors):
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_mean_by_hand(tmp_path):
    one = write(tmp_path / "a", weight=torch.tensor([1.0, 2.0]), steps=torch.tensor(7))
    two = write(tmp_path / "b", weight=torch.tensor([3.0, -4.0]), steps=torch.tensor(9))
    three = write(tmp_path / "c", weight=torch.tensor([5.0, 5.0]), steps=torch.tensor(8))
    average = average_checkpoints([one, two, three])
    assert average["weight"].tolist() == [3.0, 1.0]
    assert average["steps"].item() == 8  # whole numbers: those of the last checkpoint
    assert average_checkpoints([one])["weight"].tolist() == [1.0, 2.0]


def test_sum_is_wider_than_the_weights(tmp_path):
    """In bfloat16 256 + 1 + 1 is 256: only a wider sum gives the mean 86."""
    values = [256.0, 1.0, 1.0]
    folders = [
        write(tmp_path / str(place), weight=torch.tensor([value], dtype=torch.bfloat16))
        for place, value in enumerate(values)
    ]
    average = average_checkpoints(folders)["weight"]
    assert average.dtype == torch.bfloat16
    assert average.item() == 86.0
    assert (sum(torch.tensor(value).bfloat16() for value in values) / 3).item() != 86.0


def test_shards(tmp_path):
    folder = tmp_path / "sharded"
    folder.mkdir()
    save_file({"a": torch.tensor([2.0])}, folder / "model-00001-of-00002.safetensors")
    save_file({"b": torch.tensor([4.0])}, folder / "model-00002-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    whole = write(tmp_path / "whole", a=torch.tensor([0.0]), b=torch.tensor([1.0]))
    average = average_checkpoints([folder, whole])
    assert {name: tensor.item() for name, tensor in average.items()} == {"a": 1.0, "b": 2.5}


def tiny_bart(seed, **fields):
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=16, **fields,
    )  # fmt: skip
    return BartForConditionalGeneration(config).eval()


def test_model_takes_the_average_and_keeps_its_ties(tmp_path):
    models = [tiny_bart(seed) for seed in range(3)]
    for seed, model in enumerate(models):
        model.save_pretrained(tmp_path / str(seed))
    model = tiny_bart(9)
    load_average(model, [tmp_path / str(seed) for seed in range(3)])
    for name, parameter in model.named_parameters():
        expected = sum(dict(other.named_parameters())[name] for other in models) / 3
        torch.testing.assert_close(parameter, expected, rtol=1e-6, atol=1e-7)
    assert model.lm_head.weight.data_ptr() == model.model.shared.weight.data_ptr()
    ids = torch.tensor([[5, 6, 2]])
    before = model(input_ids=ids, decoder_input_ids=ids).logits
    model.save_pretrained(tmp_path / "average")
    again = BartForConditionalGeneration.from_pretrained(tmp_path / "average")
    assert torch.equal(again(input_ids=ids, decoder_input_ids=ids).logits, before)


def test_what_does_not_fit_is_refused(tmp_path):
    one = write(tmp_path / "a", weight=torch.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="at least one checkpoint"):
        average_checkpoints([])
    with pytest.raises(ValueError, match="not the same model"):
        average_checkpoints([one, write(tmp_path / "b", weight=torch.tensor([1.0]))])
    with pytest.raises(ValueError, match="not the same model"):
        average_checkpoints([one, write(tmp_path / "c", other=torch.tensor([1.0, 2.0]))])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty has no model.safetensors"):
        average_checkpoints([tmp_path / "empty"])
    with pytest.raises(ValueError, match="not a checkpoint of this model: missing .*unknown"):
        load_average(tiny_bart(0), [one])


def test_last_checkpoints_by_step(tmp_path):
    for name in ("checkpoint-5", "checkpoint-20", "checkpoint-100", "checkpoint-best", "2024", "runs"):
        write(tmp_path / name, weight=torch.ones(2))
    (tmp_path / "checkpoint-30").mkdir()  # a run was killed here
    (tmp_path / "checkpoint-300").mkdir()
    (tmp_path / "checkpoint-300" / "model.safetensors").write_bytes(b"half")
    assert [path.name for path in last_checkpoints(tmp_path, 2)] == ["checkpoint-20", "checkpoint-100"]
    assert [path.name for path in last_checkpoints(tmp_path, 9)] == ["checkpoint-5", "checkpoint-20", "checkpoint-100"]
    with pytest.raises(ValueError, match="last 0 checkpoints"):
        last_checkpoints(tmp_path, 0)
    with pytest.raises(ValueError, match="of the 0 in"):
        last_checkpoints(tmp_path / "runs", 1)
