"""Greedy, beam and exhaustive search in explicit loops over lists of token ids.

All rank a finished output by one formula:

    score = sum of the log-probabilities of its tokens / length ** length_penalty

The length counts the tokens that the search chose, the end-of-sentence token among them; not the start token, nor what
was given as a prompt. An output that reaches the longest length counts as finished, with or without the end.

Every search gets `next_log_probs`: for a list of prefixes (chosen tokens, without start and prompt) the list of
log-probabilities of each next token.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Prefix = tuple[int, ...]
NextLogProbs = Callable[[list[Prefix]], list[list[float]]]


@dataclass(frozen=True)
class Found:
    """An output and its score."""

    tokens: Prefix
    score: float


def normalised(total: float, length: int, length_penalty: float) -> float:
    """The score of an output with this sum of log-probabilities."""
    return total / length**length_penalty


def greedy_search(next_log_probs: NextLogProbs, end: int, longest: int) -> Prefix:
    """The most probable token, again and again."""
    prefix: Prefix = ()
    while len(prefix) < longest and (not prefix or prefix[-1] != end):
        row = next_log_probs([prefix])[0]
        prefix += (max(range(len(row)), key=row.__getitem__),)
    return prefix


def exhaustive_search(next_log_probs: NextLogProbs, end: int, longest: int, length_penalty: float) -> list[Found]:
    """All outputs that there are, best first."""
    running: list[tuple[Prefix, float]] = [((), 0.0)]
    finished: list[Found] = []
    for length in range(1, longest + 1):
        rows = next_log_probs([prefix for prefix, _ in running])
        continued = []
        for (prefix, total), row in zip(running, rows, strict=True):
            for token, log_prob in enumerate(row):
                if token == end or length == longest:
                    score = normalised(total + log_prob, length, length_penalty)
                    finished.append(Found((*prefix, token), score))
                else:
                    continued.append(((*prefix, token), total + log_prob))
        running = continued
    return sorted(finished, key=lambda found: -found.score)


def beam_search(
    next_log_probs: NextLogProbs,
    end: int,
    longest: int,
    num_beams: int,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
) -> list[Found]:
    """Beam search as transformers documents it; best output first.

    At each step the running outputs are continued by every token, and the best 2 * num_beams continuations are looked
    at, best first. One that is finished is kept if it is among the first num_beams; of those kept so far only the best
    num_beams stay. The first num_beams that are not finished run on. The search stops

    * when every continuation is finished;
    * with early_stopping=True, when num_beams outputs are finished;
    * otherwise when num_beams outputs are finished and the best running one could not beat the worst of them, if from
      now on it lost no probability and had: the longest length, with early_stopping="never" and length_penalty > 0; its
      present length else. That is a bound with "never", and a guess with False.
    """
    running: list[tuple[Prefix, float]] = [((), 0.0)]
    finished: list[Found] = []
    for length in range(1, longest + 1):
        rows = next_log_probs([prefix for prefix, _ in running])
        continuations = []
        for (prefix, total), row in zip(running, rows, strict=True):
            for token, log_prob in enumerate(row):
                continuations.append(((*prefix, token), total + log_prob))
        continuations.sort(key=lambda continuation: -continuation[1])

        running = []
        for rank, (prefix, total) in enumerate(continuations[: 2 * num_beams]):
            if prefix[-1] == end or length == longest:
                if rank < num_beams:
                    finished.append(Found(prefix, normalised(total, length, length_penalty)))
            elif len(running) < num_beams:
                running.append((prefix, total))
        finished = sorted(finished, key=lambda found: -found.score)[:num_beams]

        if not running:
            break
        if len(finished) == num_beams:
            hoped_for = longest if early_stopping == "never" and length_penalty > 0 else length
            best = normalised(running[0][1], hoped_for, length_penalty)
            if early_stopping is True or best <= finished[-1].score:
                break
    return finished


def asking(model, source: torch.Tensor, prompt: Prefix = ()) -> NextLogProbs:
    """Let a model answer: teacher-forced, without a cache, so that nothing has to be reordered.

    Args:
        model: An encoder-decoder, or a decoder alone.
        source: Ids of one source without padding, (1, source_len); for a decoder alone the text that it goes on with.
        prompt: What the decoder has read after its start token, or after the source.
    """
    known: dict[Prefix, list[float]] = {}

    def next_log_probs(prefixes: list[Prefix]) -> list[list[float]]:
        new = [prefix for prefix in prefixes if prefix not in known]
        if new:
            two = model.config.is_encoder_decoder
            begin = [model.config.decoder_start_token_id] if two else source[0].tolist()
            read = torch.tensor([(*begin, *prompt, *prefix) for prefix in new])
            inputs = (
                {"input_ids": source.expand(len(new), -1), "decoder_input_ids": read} if two else {"input_ids": read}
            )
            with torch.no_grad():
                logits = model(**inputs, use_cache=False).logits
            known.update(zip(new, logits[:, -1].log_softmax(dim=-1).tolist(), strict=True))
        return [known[prefix] for prefix in prefixes]

    return next_log_probs
