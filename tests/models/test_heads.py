"""Pooling and losses against explicit loops and transformers' own losses."""

import pytest
import torch
from transformers.loss.loss_utils import (
    ForMaskedLMLoss,
    ForQuestionAnsweringLoss,
    ForSequenceClassificationLoss,
    ForTokenClassification,
)

from hf_attn.models.heads import (
    Pooler,
    TokenTransform,
    binary_loss,
    class_loss,
    classification_loss,
    first_state,
    pool,
    span_loss,
)

PADDING = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_pooling_is_over_real_tokens_one_after_the_other(pooling):
    states = random(4, 4, 5) - 3  # all below 0, which padding must not be the maximum of
    vectors = pool(states, PADDING, pooling)
    for row, mask, vector in zip(states[:3], PADDING, vectors, strict=False):
        real = [state for state, one in zip(row, mask, strict=True) if one]
        for place in range(5):
            numbers = [float(state[place]) for state in real]
            expected = {"cls": numbers[0], "mean": sum(numbers) / len(numbers), "max": max(numbers)}[pooling]
            assert float(vector[place]) == pytest.approx(expected, abs=1e-6)
    assert vectors.isfinite().all()
    if pooling != "cls":
        assert (vectors[3] == 0).all()
    torch.testing.assert_close(pool(states[:1], None, pooling), vectors[:1])


def test_an_unknown_pooling_or_activation_is_refused():
    with pytest.raises(ValueError, match="pooling='sum' is not allowed; choose one of 'cls', 'mean', 'max'"):
        pool(random(1, 2, 3), None, "sum")
    with pytest.raises(ValueError, match="pooler_activation='wave' is unknown; choose one of .*tanh"):
        Pooler(4, "wave")
    with pytest.raises(ValueError, match="activation_function='wave' is unknown"):
        TokenTransform(4, 4, "wave", torch.nn.Identity())


def test_a_pooler_reads_the_first_real_token():
    pooler, states = Pooler(5), random(4, 4, 5)
    expected = [
        torch.tanh(pooler.dense.weight @ states[row, first] + pooler.dense.bias) for row, first in enumerate((0, 2, 0))
    ]
    torch.testing.assert_close(pooler(states, PADDING)[:3], torch.stack(expected))
    assert torch.equal(first_state(states, None), states[:, 0])


def test_losses_are_those_of_transformers_where_these_have_no_padding():
    logits, labels = random(3, 4, 6), torch.tensor([[0, 5, -100, 2], [-100, 1, 1, 3], [4, -100, 0, 0]])
    torch.testing.assert_close(class_loss(logits, labels), ForMaskedLMLoss(logits, labels, 6))
    torch.testing.assert_close(class_loss(logits, labels, 7), ForMaskedLMLoss(logits, labels, 6, 7))

    class Config:
        num_labels, problem_type = 6, None

    torch.testing.assert_close(class_loss(logits, labels), ForTokenClassification(logits, labels, Config()))
    starts, ends = torch.tensor([0, 3, 1]), torch.tensor([2, 3, 3])
    expected = ForQuestionAnsweringLoss(logits[..., 0], logits[..., 1], starts.clone(), ends.clone())
    torch.testing.assert_close(span_loss(logits[..., 0], logits[..., 1], starts, ends), expected)


@pytest.mark.parametrize(
    ("problem_type", "classes", "labels"),
    [
        ("single_label_classification", 4, torch.tensor([3, 0, 1])),
        ("multi_label_classification", 4, torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]])),
        ("regression", 1, torch.tensor([0.5, -2.0, 3.0])),
        ("regression", 4, random(3, 4, seed=1)),
    ],
)
def test_a_loss_of_texts_is_that_of_transformers_with_its_kind_given_or_told_by_the_labels(
    problem_type, classes, labels
):
    logits = random(3, classes)

    class Config:
        num_labels = classes

    Config.problem_type = problem_type
    expected = ForSequenceClassificationLoss(labels, logits, Config)
    torch.testing.assert_close(classification_loss(logits, labels, problem_type), expected)
    if (problem_type, classes) != ("regression", 4):
        torch.testing.assert_close(classification_loss(logits, labels), expected)
    total = expected * labels.numel()
    torch.testing.assert_close(classification_loss(logits, labels, problem_type, 7), total / 7)
    more = torch.cat([labels, torch.full_like(labels[:1], -100)])
    torch.testing.assert_close(classification_loss(torch.cat([logits, logits[:1]]), more, problem_type), expected)


def test_yes_and_no_is_the_loss_of_each_token_that_is_real_and_labelled():
    logits, labels = random(2, 3), torch.tensor([[1, 0, -100], [0, 1, 1]])
    padding = torch.tensor([[True, True, True], [True, True, False]])
    parts = []
    for row in range(2):
        for column in range(3):
            if labels[row, column] != -100 and padding[row, column]:
                likely = torch.sigmoid(logits[row, column])
                parts.append(-torch.log(likely if labels[row, column] else 1 - likely))
    torch.testing.assert_close(binary_loss(logits, labels, padding), sum(parts) / 4)
    torch.testing.assert_close(binary_loss(logits, labels, padding, 3), sum(parts) / 3)


def test_an_answer_is_a_choice_among_real_tokens():
    logits = random(1, 5)
    padding = torch.tensor([[False, True, True, True, False]])
    place = torch.tensor([2])
    inner = -torch.log(torch.exp(logits[0, 2]) / sum(torch.exp(logits[0, j]) for j in (1, 2, 3)))
    torch.testing.assert_close(span_loss(logits, logits, place, place, padding), inner)
    nothing = span_loss(logits, logits, place, place, torch.zeros(1, 5).bool())
    assert nothing.isfinite()


@pytest.mark.parametrize("items", [None, 3, torch.tensor(0)])
def test_without_a_label_losses_and_gradients_are_0(items):
    logits = random(2, 3).requires_grad_()
    single, both = torch.tensor([-100, -100]), torch.full((2, 3), -100)
    losses = [
        class_loss(logits, single, items),
        binary_loss(logits, both, None, items),
        classification_loss(logits, both.float(), "regression", items),
        span_loss(logits, logits, single, single, None, items),
    ]
    sum(losses).backward()
    assert [loss.item() for loss in losses] == [0.0] * 4 and (logits.grad == 0).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: class_loss(x, [0, 1]), TypeError, "labels must be a tensor, got list"),
        (lambda x: class_loss(x, torch.tensor([0.0, 1.0])), TypeError, "labels must be torch.int64, got torch.float32"),
        (lambda x: class_loss(x, torch.tensor([0])), ValueError, r"labels must have the shape \(2,\), got \(1,\)"),
        (lambda x: class_loss(x, torch.tensor([0, 3])), ValueError, "labels has 3; .*less than 3, or -100"),
        (lambda x: class_loss(x, torch.tensor([-1, 0])), ValueError, "labels has -1; it must be at least 0"),
        (lambda x: binary_loss(x, torch.full((2, 3), 2)), ValueError, "labels has 2; it must be from 0 to 1, or -100"),
        (lambda x: binary_loss(x, torch.zeros(2)), ValueError, r"labels must have the shape \(2, 3\)"),
        (lambda x: classification_loss(x, 1), TypeError, "labels must be a tensor, got int"),
        (
            lambda x: classification_loss(x, torch.zeros(2), "regression"),
            ValueError,
            r"labels must have the shape \(2, 3\), got \(2,\)",
        ),
        (
            lambda x: span_loss(x, x, torch.tensor([0, 3]), torch.tensor([0, 0])),
            ValueError,
            "start_positions has 3; .*less than 3",
        ),
        (
            lambda x: span_loss(x, x, torch.tensor([0, 0]), torch.tensor([0, -2])),
            ValueError,
            "end_positions has -2; it must be at least 0",
        ),
    ],
)
def test_labels_that_are_none_are_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call(random(2, 3))
