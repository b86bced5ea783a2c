"""What a classifier is given: labels at the right pieces, pixels at the right places, weights of the right folder."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from PIL import Image
from transformers import ViTImageProcessorPil

from hf_attn.data import train_tokenizer
from hf_attn.data.text import train_text_tokenizer
from hf_attn.training.classification import encode_texts, encode_tokens, image_transform, make_classifier, new_config

TEXTS = ["the old man reads", "a woman sings", "the red house is unbelievably old"]
TOKENIZERS = {
    "bert": lambda: train_text_tokenizer(TEXTS, 290, masked=True),
    "gpt": lambda: train_text_tokenizer(TEXTS, 290),
    "translation": lambda: train_tokenizer(TEXTS, 290),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_the_tag_of_a_word_stands_at_its_first_piece_alone(kind):
    tokenizer = TOKENIZERS[kind]()
    rows = [text.split() for text in ("the unbelievably old man", "woman")]
    names = [f"tag{number}" for number in range(4)]
    dataset = Dataset.from_dict({"tokens": rows, "tags": [names, names[:1]]})
    encoded = encode_tokens(dataset, tokenizer, names, 64)
    for words, ids, labels in zip(rows, encoded["input_ids"], encoded["labels"]):
        assert len(ids) == len(labels) > len(words)  # some word has several pieces
        assert [label for label in labels if label != -100] == list(range(len(words)))
        starts = [place for place, label in enumerate(labels) if label != -100]
        ends = [*starts[1:], len(ids)]
        spelled = [tokenizer.decode(ids[start:end], skip_special_tokens=True) for start, end in zip(starts, ends)]
        assert [word.strip() for word in spelled] == words
    whole = tokenizer(" ".join(rows[0]))["input_ids"]
    assert encoded[0]["input_ids"] == whole  # words given one by one are read as in a text


def test_a_text_that_is_cut_loses_tags_and_that_is_said():
    tokenizer = TOKENIZERS["bert"]()
    dataset = Dataset.from_dict({"tokens": [["the", "old", "man", "reads"], ["the"]], "tags": [list("abab"), ["a"]]})
    with pytest.warns(UserWarning, match="1 texts were cut to max_length=4"):
        encoded = encode_tokens(dataset, tokenizer, ["a", "b"], 4)
    assert max(map(len, encoded["input_ids"])) == 4
    texts = Dataset.from_dict({"text": TEXTS, "label": ["a", "b", "a"]})
    with pytest.warns(UserWarning, match="3 texts were cut to max_length=4"):
        encode_texts(texts, tokenizer, ["a", "b"], 4)


def test_pairs_of_texts_are_two_segments():
    tokenizer = TOKENIZERS["bert"]()
    pairs = Dataset.from_dict({"text": ["the man"], "text_pair": ["a woman"], "label": ["b"]})
    row = encode_texts(pairs, tokenizer, ["a", "b"], 32)[0]
    first, second = tokenizer("the man")["input_ids"], tokenizer("a woman")["input_ids"][1:]
    assert row["input_ids"] == first + second and row["labels"] == 1
    assert row["token_type_ids"] == [0] * len(first) + [1] * len(second)


def test_a_label_that_training_did_not_have_is_refused():
    dataset = Dataset.from_dict({"text": ["a"], "label": ["c"]})
    with pytest.raises(ValueError, match="label 'c' is not in the training set, whose labels are a, b"):
        encode_texts(dataset, TOKENIZERS["bert"](), ["a", "b"], 8)


def test_images_move_by_whole_pixels_and_what_comes_in_is_black():
    pixels = np.arange(1, 26, dtype=np.uint8).reshape(5, 5) * 10
    processor = ViTImageProcessorPil(size={"height": 5, "width": 5}, image_mean=[0.0], image_std=[1.0])
    rows = {"image": [Image.fromarray(pixels)] * 60, "label": ["x"] * 60}
    seen = set()
    torch.manual_seed(0)
    for moved in image_transform(processor, ["x"], 1, max_shift=1)(rows)["pixel_values"]:
        moved = np.rint(np.asarray(moved)[0] * 255)
        found = []
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                expected = np.zeros((7, 7))
                expected[1 + down : 6 + down, 1 + right : 6 + right] = pixels
                if np.array_equal(expected[1:6, 1:6], moved):
                    found.append((down, right))
        assert len(found) == 1
        seen |= set(found)
    assert len(seen) == 9
    still = image_transform(processor, ["x"], 1)(rows)["pixel_values"][7]
    assert np.array_equal(np.rint(np.asarray(still)[0] * 255), pixels)


def test_images_get_the_channels_of_the_model():
    picture = Image.fromarray(np.zeros((4, 4, 3), dtype=np.uint8))
    for channels in (1, 3):
        half = [0.5] * channels
        processor = ViTImageProcessorPil(size={"height": 4, "width": 4}, image_mean=half, image_std=half)
        pixels = image_transform(processor, ["x"], channels)({"image": [picture], "label": ["x"]})["pixel_values"]
        assert tuple(pixels[0].shape) == (channels, 4, 4)


@pytest.mark.parametrize("model_type", ["attn-bert", "attn-gpt", "bert"])
def test_a_classifier_begins_with_the_weights_of_a_folder_or_with_new_ones(model_type, tmp_path):
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = new_config("text", model_type, TOKENIZERS["bert"](), **small)
    before = make_classifier("text", ["a", "b"], config)
    before.save_pretrained(tmp_path)
    table = before.get_input_embeddings().weight
    after = make_classifier("text", ["x", "y", "z"], config, str(tmp_path))
    assert torch.equal(after.get_input_embeddings().weight, table)
    assert after.config.id2label == {0: "x", 1: "y", 2: "z"} and after.config.label2id["z"] == 2
    fresh = make_classifier("text", ["x", "y", "z"], config)
    assert not torch.equal(fresh.get_input_embeddings().weight, table)
    ids = torch.tensor([[1, 5, 6, 2]])
    assert tuple(after(input_ids=ids).logits.shape) == tuple(fresh(input_ids=ids).logits.shape) == (1, 3)


def test_a_config_field_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="attn-bert has no config field hidden_sise"):
        new_config("text", "attn-bert", TOKENIZERS["bert"](), hidden_sise=8)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_of_16_bits_is_read_as_that_of_8_bits(channels):
    half = [0.5] * channels
    processor = ViTImageProcessorPil(size={"height": 4, "width": 4}, image_mean=half, image_std=half)
    greys = np.arange(16, dtype=np.uint8).reshape(4, 4) * 16
    images = [Image.fromarray(greys), Image.fromarray(greys.astype(np.uint16) * 257)]
    plain, fine = image_transform(processor, ["x"], channels)({"image": images, "label": ["x"] * 2})["pixel_values"]
    assert torch.equal(plain, fine)
