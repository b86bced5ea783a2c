"""What the steps of every family are made of: quantities, formulas, lines of code, and the steps that all share.

Read next: `steps_recurrent.py`, `steps_convs2s.py`, `steps_transformer.py` and `steps_text.py`, which compute the
steps, and `steps_html.py`, which draws them.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedTokenizerBase

from hf_attn.inference.decoding import start_id
from hf_attn.inference.what_if import candidates
from hf_attn.models.attention import attend
from hf_attn.models.checks import is_whole

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator

PACKAGE = Path(__file__).parents[1]
LIKELIEST = 5


@dataclass(frozen=True, eq=False)
class Quantity:
    """Numbers of the model with their names.

    Attributes:
        name: what they are.
        values: (rows,) one number each, or (rows, width) one vector each.
        rows: a label for each row.
        shape: names and sizes of the axes, e.g. "source_len 12 × hidden_size 256".
        columns: a label for each column, where columns have a meaning of their own.
    """

    name: str
    values: torch.Tensor
    rows: list[str]
    shape: str
    columns: list[str] | None = None


@dataclass(frozen=True)
class Code:
    """Lines of the package.

    Attributes:
        where: file and number of the first line, e.g. "hf_attn/models/attention.py:54".
        text: the lines.
    """

    where: str
    text: str


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the computation.

    Attributes:
        title: its name.
        formula: its equation, in words; `_j` is a subscript.
        meaning: one or two sentences.
        quantities: what comes out, in order.
        code: the lines that compute it.
    """

    title: str
    formula: str
    meaning: str
    quantities: list[Quantity]
    code: list[Code]


def read_ids(translator: "Translator", translation: "Translation") -> tuple[torch.Tensor, torch.Tensor]:
    """Give what the encoder reads, (1, source_len), and what the decoder reads, (1, target_len)."""
    read = [start_id(translator.model), *translation.target_ids[:-1]]
    device = translator.model.device
    return torch.tensor([translation.source_ids], device=device), torch.tensor([read], device=device)


def softmax_step(weights: torch.Tensor, pieces: list[str], axis: str) -> Step:
    return Step(
        "Softmax",
        "weight_j = exp(score_j) / Σ_k exp(score_k)",
        f"The scores become weights between 0 and 1 that add up to {float(weights.sum()):.3f}. Small differences of "
        "scores become large ones of weights.",
        [Quantity("weights", weights, pieces, shape_of(**{axis: len(pieces)}))],
        [line_of(attend, "weights = torch.softmax(")],
    )


def sum_step(context, weights, value, pieces: list[str], axis: str, width: str, made_by: str = "") -> Step:
    shares = weights[:, None] * value
    sizes = {axis: len(pieces), width: value.shape[1]}
    values = [Quantity("values", value, pieces, shape_of(**sizes))] if made_by else []
    return Step(
        "Values and weighted sum" if made_by else "Weighted sum",
        (f"value_j = {made_by};  " if made_by else "") + "context = Σ_j weight_j value_j",
        "Each value is multiplied by its weight, and all are added: one vector, mostly of what was looked at most.",
        [*values, Quantity("weight × value", shares, pieces, shape_of(**sizes)), vector("context", context, width)],
        [line_of(attend, "context = torch.nn.functional.dropout(")],
    )


def vector(name: str, values: torch.Tensor, axis: str) -> Quantity:
    return Quantity(name, values[None], [name], f"{axis} {values.shape[0]}")


def shape_of(**sizes: int) -> str:
    return " × ".join(f"{name} {size}" for name, size in sizes.items())


def likeliest(
    tokenizer: PreTrainedTokenizerBase,
    logits: torch.Tensor,
    written: int | None,
    name: str = "probability of the next piece",
) -> Quantity:
    """Give the probabilities of the likeliest pieces and of the one that is written there, if any: beam search may have
    found another to lead to a better sentence."""
    found = candidates(tokenizer, logits, LIKELIEST, written)
    names = [one.token + (" ← written" if one.id == written else "") for one in found]
    values = torch.tensor([one.probability for one in found])
    return Quantity(name, values, names, f"vocab_size {logits.shape[-1]}")


def check_choices(**choices: tuple[object, int]) -> None:
    """Raise ValueError unless each choice, (value, count) by name, is a whole number from 0 to its count less one."""
    for name, (value, count) in choices.items():
        if not is_whole(value) or value >= count:  # type: ignore[operator]
            raise ValueError(f"{name} is {value!r}; here it must be a whole number from 0 to {count - 1}")


def line_of(function: Callable, start: str) -> Code:
    """Find the one line of a function that begins so."""
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    found = [number for number, line in enumerate(lines) if line.strip().startswith(start)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} lines of {function.__qualname__} begin with {start!r}")
    return _code(function, lines[found[0]], first + found[0])


def body_of(function: Callable) -> Code:
    """Give what a function does, without its signature and docstring."""
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    quotes = [number for number, line in enumerate(lines) if line.count('"""') == 1]
    documented = quotes[1] if quotes else next(number for number, line in enumerate(lines) if '"""' in line)
    return _code(function, "".join(lines[documented + 1 :]), first + documented + 1)


def _code(function: Callable, text: str, number: int) -> Code:
    file = Path(inspect.getsourcefile(function) or "")
    name = file.relative_to(PACKAGE.parent).as_posix() if file.is_relative_to(PACKAGE) else file.name
    return Code(f"{name}:{number}", textwrap.dedent(text).strip("\n"))
