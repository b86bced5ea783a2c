# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Read something off the states of a stack: a vector of the sentence, a word at each place, a class; and the losses.

    pooled vector    activation(W first_state)                          Devlin 2019 (arXiv 1810.04805), section 3
    masked token     output(norm(activation(W state)))                  section 3.1, task 1
    replaced token   w . activation(W state)                            Clark 2020 (2003.10555), section 2
    sentence vector  first state, or mean or maximum of all             Reimers 2019 (1908.10084), section 3

Every loss is a mean over what is labelled, or, where many batches make one update, a sum divided by the number of
labels of them all, so that the update is that of one large batch. A label of -100 counts for nothing; without a single
label the loss is 0 and so are its gradients.

Axis names: batch, length, width, classes. A padding mask is boolean, True for real tokens, or None where all are.
Read next: modeling_attn_bert.py.
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN

POOLINGS = ("cls", "mean", "max")
IGNORED = -100


def make_activation(field: str, name: str) -> nn.Module:
    """Make an activation function.

    Args:
        field: The option that names it.
        name: Its name, as in transformers.

    Raises:
        ValueError: If it is unknown.
    """
    if name not in ACT2FN:
        raise ValueError(f"{field}={name!r} is unknown; choose one of {', '.join(sorted(ACT2FN))}")
    return ACT2FN[name]


# Vectors of a sentence


def first_state(states: torch.Tensor, padding: torch.Tensor | None) -> torch.Tensor:
    """Return the state of the first real token of each row, (batch, width), of states (batch, length, width)."""
    if padding is None:
        return states[:, 0]
    first = padding.long().argmax(dim=-1)  # (batch,)
    return states[torch.arange(len(states), device=states.device), first]


def pool(states: torch.Tensor, padding: torch.Tensor | None, pooling: str) -> torch.Tensor:
    """Make one vector of the states of a sentence; padding is left out.

    Args:
        states: (batch, length, width)
        padding: (batch, length), True for real tokens; None when nothing is padded.
        pooling: "cls" for the first real token, "mean" or "max" for all of them.

    Returns:
        (batch, width); zero for a row without a real token, but for "cls".

    Raises:
        ValueError: If the pooling is unknown.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"pooling={pooling!r} is not allowed; choose one of {', '.join(map(repr, POOLINGS))}")
    if pooling == "cls":
        return first_state(states, padding)
    if padding is None:
        return states.mean(dim=1) if pooling == "mean" else states.amax(dim=1)
    real = padding[..., None]  # (batch, length, 1)
    if pooling == "mean":
        return states.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    largest = states.masked_fill(~real, torch.finfo(states.dtype).min).amax(dim=1)
    return largest.masked_fill(~real.any(dim=1), 0.0)


class Pooler(nn.Module):
    """activation(W state) of the first real token.

    Args:
        hidden_size: Width of the states and of the vector.
        activation: Name of an activation function, as in transformers.

    Raises:
        ValueError: If the activation is unknown.
    """

    def __init__(self, hidden_size: int, activation: str = "tanh"):
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.activation = make_activation("pooler_activation", activation)

    def forward(self, states: torch.Tensor, padding: torch.Tensor | None = None) -> torch.Tensor:
        """(batch, length, hidden_size), and the padding mask or None -> (batch, hidden_size)"""
        return self.activation(self.dense(first_state(states, padding)))


# Something at each place


class TokenTransform(nn.Module):
    """norm(activation(W state)) at every position: what an output layer for single tokens reads.

    Args:
        hidden_size: Width of the states.
        output_size: Width of the result.
        activation: Name of an activation function, as in transformers.
        norm: Norm of the result, or nn.Identity().

    Raises:
        ValueError: If the activation is unknown.
    """

    def __init__(self, hidden_size: int, output_size: int, activation: str, norm: nn.Module):
        super().__init__()
        self.dense = nn.Linear(hidden_size, output_size)
        self.activation = make_activation("activation_function", activation)
        self.norm = norm

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(batch, length, hidden_size) -> (batch, length, output_size)"""
        return self.norm(self.activation(self.dense(states)))


# Losses


def check_classes(name: str, labels: object, classes: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Refuse what are no classes.

    Args:
        name: What the labels are called.
        labels: Of the given shape.
        classes: Labels are less than this, or -100.
        shape: (batch,) or (batch, length)

    Returns:
        The labels.

    Raises:
        TypeError: If they are no tensor of whole numbers.
        ValueError: If they have another shape, or one is no class.
    """
    labels = check_labels(labels, shape, name)
    if labels.dtype != torch.int64:
        raise TypeError(f"{name} must be torch.int64, got {labels.dtype}")
    if torch.compiler.is_compiling() or labels.device.type != "cpu" or labels.numel() == 0:
        return labels
    for found in map(int, torch.aminmax(labels.masked_fill(labels == IGNORED, 0))):
        if not 0 <= found < classes:
            raise ValueError(f"{name} has {found}; it must be at least 0 and less than {classes}, or {IGNORED}")
    return labels


def check_labels(labels: object, shape: tuple[int, ...], name: str = "labels") -> torch.Tensor:
    """Return labels; raise TypeError unless they are a tensor, ValueError unless they have the shape."""
    if not isinstance(labels, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(labels).__name__}")
    if tuple(labels.shape) != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {tuple(labels.shape)}")
    return labels


def average(
    losses: torch.Tensor, labelled: torch.Tensor, num_items_in_batch: torch.Tensor | int | None
) -> torch.Tensor:
    """Average losses over what is labelled.

    Args:
        losses: One for each label, of any shape.
        labelled: The same shape, True where a label counts.
        num_items_in_batch: What to divide their sum by instead of the number of labels.

    Returns:
        A number.
    """
    count = labelled.sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
    return losses.masked_fill(~labelled, 0.0).sum() / count.to(losses.device).clamp(min=1)


def wide(logits: torch.Tensor) -> torch.Tensor:
    """Return logits in float32 or wider: a loss is a small difference of large numbers."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def class_loss(
    logits: torch.Tensor, labels: object, num_items_in_batch: torch.Tensor | int | None = None, name: str = "labels"
) -> torch.Tensor:
    """Average -log p(label).

    Args:
        logits: (batch, classes) or (batch, length, classes)
        labels: (batch,) or (batch, length); -100 where nothing is to be predicted.
        num_items_in_batch: What to divide the sum by instead of the number of labels.
        name: What the labels are called.

    Returns:
        A number.

    Raises:
        TypeError: If the labels are no tensor of whole numbers.
        ValueError: If they have another shape, or one is no class.
    """
    labels = check_classes(name, labels, logits.shape[-1], tuple(logits.shape[:-1])).to(logits.device)
    losses = F.cross_entropy(
        wide(logits).flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="none"
    ).view(labels.shape)
    return average(losses, labels != IGNORED, num_items_in_batch)


def binary_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    padding: torch.Tensor | None = None,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Average -log p(label) of answers yes and no.

    Args:
        logits: Of any shape.
        labels: The same shape, from 0 to 1; -100 where nothing is to be predicted.
        padding: The same shape, True for real tokens, where answers are about tokens; None where all count.
        num_items_in_batch: What to divide the sum by instead of the number of labels.

    Returns:
        A number.

    Raises:
        TypeError: If the labels are no tensor.
        ValueError: If they have another shape, or one is neither a probability nor -100.
    """
    labels = check_labels(labels, tuple(logits.shape)).to(logits.device)
    labelled = labels != IGNORED
    if not torch.compiler.is_compiling() and labels.device.type == "cpu":
        wrong = labels[labelled & ~((labels >= 0) & (labels <= 1))]
        if len(wrong):
            raise ValueError(f"labels has {wrong[0].item()}; it must be from 0 to 1, or {IGNORED}")
    targets = labels.masked_fill(~labelled, 0).to(wide(logits).dtype)
    losses = F.binary_cross_entropy_with_logits(wide(logits), targets, reduction="none")
    return average(losses, labelled if padding is None else labelled & padding, num_items_in_batch)


def classification_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    problem_type: str | None = None,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Average the loss of classes, or of numbers, of sentences.

    Args:
        logits: (batch, classes)
        labels: For "single_label_classification" (batch,) whole numbers; for "multi_label_classification" (batch,
            classes), 1 for each class that holds; for "regression" (batch, classes), or (batch,) where there is one.
        problem_type: One of the three; None for "regression" with one class, otherwise what the labels' kind says.
        num_items_in_batch: What to divide the sum by instead of the number of labels.

    Returns:
        A number.

    Raises:
        TypeError: If the labels are no tensor of the right kind.
        ValueError: If they have another shape, or a value is not allowed.
    """
    if not isinstance(labels, torch.Tensor):
        raise TypeError(f"labels must be a tensor, got {type(labels).__name__}")
    if problem_type is None:
        whole = "multi_label_classification" if labels.is_floating_point() else "single_label_classification"
        problem_type = "regression" if logits.shape[-1] == 1 else whole
    if problem_type == "single_label_classification":
        return class_loss(logits, labels, num_items_in_batch)
    if problem_type == "multi_label_classification":
        return binary_loss(logits, labels, num_items_in_batch=num_items_in_batch)
    logits = logits.squeeze(-1) if labels.dim() == 1 and logits.shape[-1] == 1 else logits
    check_labels(labels, tuple(logits.shape))
    labels = labels.to(logits.device, wide(logits).dtype)
    return average((wide(logits) - labels).square(), labels != IGNORED, num_items_in_batch)


def span_loss(
    start_logits: torch.Tensor,
    end_logits: torch.Tensor,
    start_positions: object,
    end_positions: object,
    padding: torch.Tensor | None = None,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Average -log p(start) and -log p(end), each a choice among the real tokens of a row.

    Args:
        start_logits: (batch, length)
        end_logits: (batch, length)
        start_positions: (batch,); -100 where there is no answer to learn from.
        end_positions: (batch,); the same.
        padding: (batch, length), True for real tokens; None when nothing is padded.
        num_items_in_batch: What to divide the sums by instead of the number of answers.

    Returns:
        A number.

    Raises:
        TypeError: If positions are no tensor of whole numbers.
        ValueError: If they have another shape, or one lies outside the row.
    """
    losses = []
    for name, logits, positions in (
        ("start_positions", start_logits, start_positions),
        ("end_positions", end_logits, end_positions),
    ):
        if padding is not None:
            logits = logits.masked_fill(~padding, torch.finfo(logits.dtype).min)
        losses.append(class_loss(logits, positions, num_items_in_batch, name))
    return (losses[0] + losses[1]) / 2
