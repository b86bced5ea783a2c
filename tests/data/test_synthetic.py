import pytest

from hf_attn.data import copy_task, reverse_task


def sentences(dataset, side: str) -> list[list[str]]:
    return [row[side].split(" ") for row in dataset["translation"]]


def test_targets_repeat_and_reverse() -> None:
    copied, reversed_ = copy_task(50), reverse_task(50)
    assert copied.column_names == reversed_.column_names == ["translation"]
    assert sentences(copied, "target") == sentences(copied, "source")
    assert sentences(reversed_, "target") == [words[::-1] for words in sentences(reversed_, "source")]
    assert sentences(reversed_, "target") != sentences(reversed_, "source")


def test_lengths_and_symbols() -> None:
    drawn = sentences(reverse_task(500, symbols=["고양이", "개", "chat"], min_length=2, max_length=4), "source")
    assert len(drawn) == 500
    assert {len(words) for words in drawn} == {2, 3, 4}
    assert {word for words in drawn for word in words} == {"고양이", "개", "chat"}
    assert len(copy_task(0)) == 0


def test_seed() -> None:
    first, again, other = (copy_task(20, seed=seed)["translation"][:] for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": -1}, "size.*-1"),
        ({"size": 1, "min_length": 0}, "min_length.*0"),
        ({"size": 1, "min_length": 5, "max_length": 4}, "min_length.*4.*5"),
        ({"size": 1, "symbols": []}, "symbols"),
        ({"size": 1, "symbols": ["a", "a"]}, "symbols"),
        ({"size": 1, "symbols": ["a b"]}, "symbols"),
    ],
)
def test_clear_errors(arguments: dict, message: str) -> None:
    for task in (copy_task, reverse_task):
        with pytest.raises(ValueError, match=message):
            task(**arguments)
