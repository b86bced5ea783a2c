"""Translate text, or score given translations, with any encoder-decoder model; attention weights come along.

Decoding chooses the pieces (greedy, beam or sampling, by the model's own `generate`). One teacher-forced forward pass
then reads log-probabilities and attention weights off the chosen pieces, so they are exact for every way of decoding,
and `Translator.score` is the same pass on pieces that the caller chose:

    score = sum of log p(piece_t | pieces before t, source) / length ** length_penalty

where length counts the target pieces, "</s>" included and the start piece not. This is the score by which transformers
5.24 ranks finished beams (`sequences_scores`). `decoding.py` prepares the call of `generate`, and has the other score,
GNMT's with its coverage penalty. `sides.py` turns text into pieces and back, `ensemble.py` makes one model of several.
"""

import dataclasses
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_attn.models.checks import check_finite, is_whole

from .decoding import Decoding, decode_batch, start_id, stop_ids
from .ensemble import vocab_limits
from .loading import load_translator, position_limit
from .sides import Side, encode, output_side, prefix_pieces
from .translation import Translation

Tokenizers = PreTrainedTokenizerBase | tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]
ModelLike = Any  # a folder, a Hub id, a list of them, a Translator, or a tuple (model, tokenizer)

_LINE_BREAK = re.compile(r"(\r\n|\n|\r)")  # U+2028 and the like are characters of a line


class Translator:
    """Translate with one model, loaded once.

    Calls from several threads may share a translator. A result depends on the sentence and the options alone, not on
    the other sentences of the call (up to float rounding).

    Args:
        model: a folder, a Hub id, or a loaded encoder-decoder model. A folder is read without the network. From a
            folder or the Hub, weights are float32 whatever the checkpoint's dtype, on CUDA where there is a GPU. A
            loaded model keeps its dtype and device unless told otherwise, and is put into evaluation mode. A list of
            such is an ensemble: models with one vocabulary, whose probabilities are averaged at every step.
        tokenizer: for a loaded model its tokenizer, or the pair (source, target) for separate vocabularies. From a
            folder, the sub-folder `target_tokenizer` is the target side where it exists.
        device: where to run, e.g. "cpu" or "cuda:1".
        dtype: dtype of the weights, e.g. "bfloat16" or `torch.bfloat16`.
        trust_remote_code: run the Python code that a Hub repository brings along.

    Raises:
        ValueError: if there is no such folder, the folder holds no model or not all of its weights, the model is no
            encoder-decoder with a generating head, a loaded model comes without its tokenizer, or the models of a list
            do not fit together.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel | list[str] | list[Path] | list[PreTrainedModel],
        tokenizer: Tokenizers | None = None,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        trust_remote_code: bool = False,
    ):
        loaded = load_translator(model, tokenizer, device, dtype, trust_remote_code)
        self.model, self.tokenizer, self.target_tokenizer = loaded

    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        num_beams: int = 1,
        num_return_sequences: int = 1,
        max_new_tokens: int | None = None,
        batch_size: int = 32,
        return_attention: bool = True,
        progress: bool = False,
        length_penalty: float = 1.0,
        do_sample: bool = False,
        seed: int | None = None,
        coverage_penalty: float | None = None,
        prefix: str | Iterable[str] = "",
    ) -> Any:
        r"""Translate one text or many.

        A text of several lines ("\n", "\r\n") is translated line by line; empty lines stay empty.

        Args:
            texts: one text, or several.
            num_beams: 1 is greedy search.
            num_return_sequences: how many translations of each text to give, best first: at most `num_beams`, or any
                number of samples.
            max_new_tokens: longest output in pieces, "</s>" included; None is twice the pieces of the source plus 20,
                and those of the prefix. Bounded by the model's positions.
            batch_size: how many sentences run together.
            return_attention: whether to keep the attention weights.
            progress: whether to show a progress bar on stderr.
            length_penalty: exponent of the length in the score; with beam search, more than 0 favours long outputs.
            do_sample: draw every piece from the model's distribution instead of searching.
            seed: makes samples repeatable, each sentence on its own; None takes a seed from torch's generator.
            coverage_penalty: beta of GNMT (about 0.2): rank the beams by GNMT's score, which wants every source piece
                attended to; `length_penalty` is then its alpha. 0 is GNMT's length penalty alone. None ranks by the
                score above.
            prefix: text with which the translation has to start, one for all texts or one for each ("" forces
                nothing). It is cut into pieces as a text of its own and counts in the score. White space at its end is
                dropped, since a space belongs to the piece that follows; so its last word may still grow ("Je" into
                "Jean"), though pieces of a model that learned whole words seldom do. Of several lines the first that is
                not empty gets it.

        Returns:
            For a string a `Translation`, for several strings a list of them in the same order; with
            `num_return_sequences` above 1 a list of translations in place of each.

        Raises:
            TypeError: if `texts` or `prefix` is neither a string nor strings.
            ValueError: if an option is out of range or does not fit the model, or the model's implementation of
                attention gives no weights.
        """
        decoding = Decoding(
            num_beams, num_return_sequences, max_new_tokens, length_penalty, do_sample, seed, coverage_penalty
        )
        checked = _checked_texts("texts", texts)
        prefixes = self._prefixes(prefix, None if isinstance(texts, str) else len(checked))
        lines_of_text = [_LINE_BREAK.split(text) for text in checked]
        _check_batch_size(batch_size)
        lines, forced = [], []
        for parts, start in zip(lines_of_text, prefixes, strict=True):
            full = [line for line in parts[::2] if line.strip()]
            lines += full
            forced += [start, *[[]] * len(full)][: len(full)]

        def translate_batch(batch: list[tuple[Side, list[int]]]) -> list[list[Translation]]:
            sources = [(side.text, side.ids) for side, _ in batch]
            starts = [start for _, start in batch]
            outputs = decode_batch(self.model, decoding, sources, starts, self._stop_ids, self._pad_id)
            pairs = [
                (side, output_side(self.target_tokenizer, ids, truncated))
                for (side, _), candidates in zip(batch, outputs, strict=True)
                for ids, truncated in candidates
            ]
            ranked_anew = coverage_penalty is not None
            translations = self._teacher_forced(pairs, return_attention or ranked_anew, length_penalty)
            count = decoding.candidates
            groups = [translations[i : i + count] for i in range(0, len(pairs), count)]
            if ranked_anew:
                groups = [decoding.rank(group) for group in groups]
                if not return_attention:
                    groups = [[_without_attention(one) for one in group] for group in groups]
            return groups

        items = list(zip(self._sources(lines), forced, strict=True))
        translated = iter(_in_batches(items, translate_batch, lambda item: len(item[0].ids), batch_size, progress))
        results = [_join_lines(parts, translated, num_return_sequences, decoding.normalise) for parts in lines_of_text]
        if num_return_sequences == 1:
            results = [candidates[0] for candidates in results]
        return results[0] if isinstance(texts, str) else results

    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        *,
        batch_size: int = 32,
        return_attention: bool = True,
        progress: bool = False,
        length_penalty: float = 1.0,
    ) -> Any:
        """Give log-probabilities and attention weights of given translations (forced decoding).

        Args:
            sources: one source, or several. Each is one sequence: line breaks do not divide it.
            targets: as many targets.
            batch_size: how many pairs run together.
            return_attention: whether to keep the attention weights.
            progress: whether to show a progress bar on stderr.
            length_penalty: exponent of the length in the score; 0 gives the log-probability of the whole target.

        Returns:
            For two strings a `Translation`, else a list of them; `text` is the target as given.

        Raises:
            TypeError: if one side is a string and the other is not, or something is not a string.
            ValueError: if there are not as many targets as sources, or an option is out of range.
        """
        if isinstance(sources, str) != isinstance(targets, str):
            raise TypeError("sources and targets must both be a string, or both be several strings")
        source_texts, target_texts = _checked_texts("sources", sources), _checked_texts("targets", targets)
        if len(source_texts) != len(target_texts):
            raise ValueError(f"there are {len(source_texts)} sources and {len(target_texts)} targets; give one for one")
        _check_batch_size(batch_size)
        check_finite("length_penalty", length_penalty)
        pairs = list(zip(self._sources(source_texts), self._targets(target_texts), strict=True))
        results = _in_batches(
            pairs,
            lambda batch: self._teacher_forced(batch, return_attention, length_penalty),
            lambda pair: len(pair[0].ids) + len(pair[1].ids),
            batch_size,
            progress,
        )
        return results[0] if isinstance(sources, str) else results

    @property
    def _stop_ids(self) -> set[int]:
        return stop_ids(self.model, self.target_tokenizer)

    @property
    def _pad_id(self) -> int:
        pad_id: Any = self.tokenizer.pad_token_id
        return pad_id or 0  # masked wherever it is used, so any id will do

    def _sources(self, texts: list[str]) -> list[Side]:
        limit = position_limit(self.model, self.tokenizer)
        sides = encode(self.tokenizer, "text", texts, limit, "source")
        _check_ids(sides, vocab_limits(self.model)[0])
        unknown = [
            side.tokens[i] if span is None else side.text[slice(*span)].strip()
            for side in sides
            for i, span in enumerate(side.spans)
            if side.ids[i] == self.tokenizer.unk_token_id
        ]
        if unknown:
            shown = ", ".join(repr(piece) for piece in dict.fromkeys(unknown[:5]))
            warnings.warn(f"{len(unknown)} source pieces are unknown to the tokenizer, e.g. {shown}", stacklevel=3)
        return sides

    def _targets(self, texts: list[str]) -> list[Side]:
        limit = position_limit(self.model, self.target_tokenizer)
        argument = "text_target" if self.target_tokenizer is self.tokenizer else "text"
        sides = encode(self.target_tokenizer, argument, texts, limit, "target", self._stop_ids)
        _check_ids(sides, vocab_limits(self.model)[1])
        return sides

    def _prefixes(self, prefix: str | Iterable[str], count: int | None) -> list[list[int]]:
        """Turn the forced starts of `count` texts (None: of one text that is no list) into pieces."""
        given = [text.rstrip() for text in _checked_texts("prefix", prefix)]
        if not isinstance(prefix, str) and count is None:
            raise TypeError("prefix is several strings for one text; give one string")
        if not isinstance(prefix, str) and len(given) != count:
            raise ValueError(f"prefix has {len(given)} entries for {count} texts; give one for all, or one for each")
        if any(_LINE_BREAK.search(text) for text in given):
            raise ValueError("prefix has several lines; a text of several lines is translated line by line")
        pieces = [prefix_pieces(self.target_tokenizer, side) for side in self._targets(given)]
        return pieces * (1 if count is None else count) if isinstance(prefix, str) else pieces

    @torch.no_grad()
    def _teacher_forced(
        self, pairs: list[tuple[Side, Side]], return_attention: bool, length_penalty: float
    ) -> list[Translation]:
        """Run the model on known targets: the only place where log-probabilities and weights are read."""
        self.model.eval()  # a no-op but for a model that was being trained

        def batch(rows: list[list[int]], padding: int) -> torch.Tensor:
            tensors = [torch.tensor(row) for row in rows]
            return pad_sequence(tensors, batch_first=True, padding_value=padding).to(self.model.device)

        start = start_id(self.model)
        labels = batch([target.ids for _, target in pairs], 0)  # (batch, target_len)
        outputs = self.model(
            input_ids=batch([source.ids for source, _ in pairs], self._pad_id),
            attention_mask=batch([[1] * len(source.ids) for source, _ in pairs], 0),
            decoder_input_ids=batch([[start, *target.ids[:-1]] for _, target in pairs], self._pad_id),
            output_attentions=return_attention,
            use_cache=False,
        )
        log_probs = outputs.logits.float().log_softmax(dim=-1).gather(2, labels[:, :, None])[:, :, 0].cpu()
        norms = self._value_norms(outputs) if return_attention else None  # (batch, layers, heads, source_len)

        translations = []
        for row, (source, target) in enumerate(pairs):
            source_len, target_len = len(source.ids), len(target.ids)
            token_log_probs = log_probs[row, :target_len].tolist()

            def weights(name: str, query_len: int, key_len: int, row: int = row) -> torch.Tensor | None:
                return self._cut_weights(outputs, name, row, query_len, key_len) if return_attention else None

            translation = Translation(
                source=source.text,
                text=target.text,
                source_tokens=source.tokens,
                target_tokens=target.tokens,
                token_log_probs=token_log_probs,
                score=_score(token_log_probs, length_penalty),
                truncated=source.truncated or target.truncated,
                cross_attentions=weights("cross_attentions", target_len, source_len),
                encoder_attentions=weights("encoder_attentions", source_len, source_len),
                decoder_attentions=weights("decoder_attentions", target_len, target_len),
                value_norms=None if norms is None else norms[row, :, :, :source_len],
                **self._recommended_alignment(),
                source_spans=source.spans,
                target_spans=target.spans,
                source_ids=source.ids,
                target_ids=target.ids,
            )
            translations.append(translation)
        return translations

    def _value_norms(self, outputs: Any) -> torch.Tensor | None:
        """Ask the decoder how much each source piece adds at each cross-attention; None where it does not say."""
        measure = getattr(self.model.get_decoder(), "value_norms", None)
        layers = None if measure is None else measure(outputs.encoder_last_hidden_state)
        return None if layers is None else torch.stack([layer.float().cpu() for layer in layers], dim=1)

    def _recommended_alignment(self) -> dict[str, Any]:
        """Give the fields in which the model says how to read word alignments; transformers' own models say nothing."""
        names = ("alignment_method", "alignment_layer", "alignment_heads")
        said = {name: getattr(self.model.config, name, None) for name in names}
        return {name: value for name, value in said.items() if value is not None}

    def _cut_weights(self, outputs: Any, name: str, row: int, query_len: int, key_len: int) -> torch.Tensor | None:
        """Cut one sentence's weights (layers, heads, query_len, key_len) out of a padded batch."""
        layers = getattr(outputs, name, None)
        if layers is None:
            return None
        if not layers:
            implementation = self.model.config._attn_implementation
            raise ValueError(
                f"{type(self.model).__name__} gives no attention weights with attn_implementation={implementation!r}; "
                'load it with attn_implementation="eager", or call with return_attention=False'
            )
        return torch.stack([layer[row, :, :query_len, :key_len].float().cpu() for layer in layers])


def translate(model: ModelLike, texts: str | Iterable[str], **options: Any) -> Any:
    """Translate, and give the text alone.

    Args:
        model: a folder, a Hub id, a list of them (an ensemble), a `Translator`, or a tuple (model, tokenizer).
        texts: one text, or several.
        options: keyword arguments of `Translator.__call__` except `return_attention`.

    Returns:
        For a string a string, for several strings a list; with `num_return_sequences` above 1 a list in place of each.
    """
    results = _as_translator(model)(texts, return_attention=False, **options)

    def text_of(result: Any) -> Any:
        return [text_of(one) for one in result] if isinstance(result, list) else result.text

    return text_of(results)


def score(model: ModelLike, sources: str | Iterable[str], targets: str | Iterable[str], **options: Any) -> Any:
    """Give log-probabilities and attention weights of given translations.

    Args:
        model: a folder, a Hub id, a list of them (an ensemble), a `Translator`, or a tuple (model, tokenizer).
        sources: one source, or several.
        targets: as many targets.
        options: keyword arguments of `Translator.score`.

    Returns:
        For two strings a `Translation`, else a list of them.
    """
    return _as_translator(model).score(sources, targets, **options)


def _as_translator(model: ModelLike) -> Translator:
    if isinstance(model, Translator):
        return model
    if isinstance(model, tuple) and len(model) != 2:
        raise ValueError(f"model is a tuple of {len(model)}; it must be (model, tokenizer)")
    return Translator(*model) if isinstance(model, tuple) else Translator(model)


def _checked_texts(name: str, texts: Any) -> list[str]:
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, dict)):
        raise TypeError(f"{name} is {type(texts).__name__}; it must be a string or several strings")
    checked = [texts] if isinstance(texts, str) else list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise TypeError(
                f"{name}[{index}] is {type(text).__name__}; every entry must be a string, a sentence (not token ids)"
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError(f"{name}[{index}] is not valid Unicode text: it holds a lone surrogate")
    return checked


def _check_batch_size(batch_size: int) -> None:
    if not is_whole(batch_size, 1):
        raise ValueError(f"batch_size is {batch_size!r}; it must be a whole number of at least 1")


def _check_ids(sides: list[Side], vocab_size: int) -> None:
    """Refuse pieces that the model has no embedding for, as another model's tokenizer gives them."""
    largest = max((number for side in sides for number in side.ids), default=0)
    if largest >= vocab_size:
        raise ValueError(
            f"tokenizer gives a piece the id {largest}, but the model knows ids less than {vocab_size} only; give the "
            "tokenizer that belongs to the model"
        )


def _in_batches(
    items: list, run: Callable[[list], list], length: Callable[[Any], int], batch_size: int, progress: bool
) -> list:
    """Run sentences of similar length together, longest first, and give the results in the order of the items."""
    results: list = [None] * len(items)
    order = sorted(range(len(items)), key=lambda index: -length(items[index]))
    with tqdm(total=len(items), disable=not progress, unit="sentence") as bar:
        for start in range(0, len(order), batch_size):
            indices = order[start : start + batch_size]
            for index, result in zip(indices, run([items[index] for index in indices]), strict=True):
                results[index] = result
            bar.update(len(indices))
    return results


def _without_attention(translation: Translation) -> Translation:
    names = ("cross_attentions", "encoder_attentions", "decoder_attentions", "value_norms")
    return dataclasses.replace(translation, **dict.fromkeys(names))


def _score(token_log_probs: list[float], length_penalty: float) -> float:
    return sum(token_log_probs) / max(len(token_log_probs), 1) ** length_penalty


def _join_lines(
    parts: list[str],
    translated: Iterator[list[Translation]],
    candidate_count: int,
    normalise: Callable[[list[float]], float],
) -> list[Translation]:
    """Put the candidates of each line together, with the line breaks (every second part) of the source between them."""
    candidates_of_line = [
        next(translated) if line.strip() else [Translation(line, "", [], [], [], 0.0) for _ in range(candidate_count)]
        for line in parts[::2]
    ]
    if len(candidates_of_line) == 1:
        return candidates_of_line[0]
    joined = []
    for segments in zip(*candidates_of_line, strict=True):
        breaks = [*parts[1::2], ""]
        log_probs = [value for segment in segments for value in segment.token_log_probs]
        translation = Translation(
            source="".join(parts),
            text="".join(segment.text + line_break for segment, line_break in zip(segments, breaks, strict=True)),
            source_tokens=[token for segment in segments for token in segment.source_tokens],
            target_tokens=[token for segment in segments for token in segment.target_tokens],
            token_log_probs=log_probs,
            # of a line's score, what its log-probabilities do not explain is its coverage
            score=normalise(log_probs) + sum(one.score - normalise(one.token_log_probs) for one in segments),
            truncated=any(segment.truncated for segment in segments),
            segments=list(segments),
        )
        joined.append(translation)
    return joined
