"""Train a tokenizer: a joint BPE from which every text comes back exactly, or whole words.

Both are stock `PreTrainedTokenizerFast` objects, so `AutoTokenizer.from_pretrained` loads a saved one without this
package. `<pad>`, `<s>`, `</s>` and `<unk>` have the ids 0 to 3; a single text is closed with `</s>`.

Byte-pair encoding: Sennrich et al. 2016, arXiv 1508.07909. Differs from the paper: "▁" marks the space before a word
instead of "</w>" its end, and a character outside the vocabulary is spelled in UTF-8 bytes.
Read `words.py` for what a word is and `translation.py` for what the ids become.
"""

import itertools
import json
import operator
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import regex
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..models.checks import is_whole
from .words import WORD_PATTERN, check_text, split_words

SPECIAL_TOKENS = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
"""The special tokens in the order of their ids."""

_MASK = "<mask>"
_SPACE = "▁"
# Stands for a "▁" that the user typed. No NFC text contains U+1FEF (NFC makes it "`"), so nothing else can mean it.
_TYPED_SPACE_MARK = "\u1fef"
_WITH_MARKS = regex.compile(r".\p{M}*", regex.DOTALL)
_BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
_BYTE_OF_TOKEN = {token: byte for byte, token in enumerate(_BYTE_TOKENS)}


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    *,
    kind: str = "bpe",
    mask_token: bool = False,
    cls_token: bool = False,
    sentinels: int = 0,
    lowercase: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer on texts of all the languages that it shall serve.

    The text is brought to Unicode form NFC and cut into words (see `split_words`) before pieces are learned; the space
    before a word is the "▁" with which its piece begins. Special tokens typed by a user ("</s>", "<pad>") stay text,
    all but the mask, which is typed where a model shall fill it in.

    - `"bpe"`: pieces of words. Characters too rare for the vocabulary are spelled in bytes ("<0xEB>"), so nothing is
      unknown, and `decode(encode(text), skip_special_tokens=True)` gives back the text in NFC, whitespace included.
      (The library's NFC is that of Unicode 9: combining marks added since keep the order in which they were typed.)
    - `"word"`: the most frequent words; any other is `<unk>`, which `skip_special_tokens=True` drops. Known words come
      back with their single spaces and attached punctuation; other whitespace becomes one space or, at the ends, none.

    The same texts give the same vocabulary in every run.

    Args:
        texts: a list or any other iterable, read once.
        vocab_size: largest number of pieces, special tokens included. Few texts may give fewer.
        kind: "bpe" or "word".
        mask_token: whether to add `<mask>`, for denoising as BART does it and for models that fill masks. It hides the
            space before it too: "the <mask>." is "▁the", "<mask>", ".".
        cls_token: whether a text begins with `<s>`, as BERT's with "[CLS]", and the texts of a pair are told apart by
            token types.
        sentinels: how many of `<extra_id_0>`, `<extra_id_1>`, ... to add, for span corruption as T5 does it.
        lowercase: whether to read everything in lower case, as the uncased BERT does. Differs from it: accents stay.
            What comes back is the text in lower case.

    Returns:
        The tokenizer, for `AutoTokenizer` when saved. It never truncates unasked.

    Raises:
        ValueError: for an unknown `kind`, a `vocab_size` too small, negative `sentinels`, or `texts` that are empty, no
            strings, or not valid Unicode (lone surrogates).
    """
    if kind not in ("bpe", "word"):
        raise ValueError(f"kind must be 'bpe' or 'word', got {kind!r}")
    if not is_whole(sentinels):
        raise ValueError(f"sentinels must be a whole number of 0 or more, got {sentinels!r}")
    extra = [*([_MASK] if mask_token else []), *(f"<extra_id_{number}>" for number in range(sentinels))]
    smallest = len(SPECIAL_TOKENS) + (len(_BYTE_TOKENS) if kind == "bpe" else 0) + 1 + len(extra)
    if not is_whole(vocab_size, smallest):
        contents = "4 special tokens, 256 bytes and 1 piece" if kind == "bpe" else "4 special tokens and 1 word"
        contents += f", {len(extra)} more special tokens" if extra else ""
        raise ValueError(
            f"vocab_size must be a whole number of at least {smallest} ({contents}) for kind={kind!r}, "
            f"got {vocab_size!r}"
        )
    tokenizer = _pipeline(kind, lowercase, mask_token)
    words = _count_words(tokenizer, texts)
    del words[_MASK]  # a Counter: whether it was there or not
    learned = vocab_size - len(extra)
    tokenizer.model = (_bpe if kind == "bpe" else _word_level)(words, learned, mask_token)
    single, pair = ("<s> $A </s>", "<s> $A </s> $B:1 </s>:1") if cls_token else ("$A </s>", "$A </s> $B </s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **SPECIAL_TOKENS,
        **({"mask_token": AddedToken(_MASK, special=True, normalized=True)} if mask_token else {}),
        **({"cls_token": "<s>", "sep_token": "</s>"} if cls_token else {}),
        **({"extra_special_tokens": extra[mask_token:]} if sentinels else {}),
        split_special_tokens=True,  # special tokens in the user's text are text; the mask is a word as well
        clean_up_tokenization_spaces=False,
        padding_side="right",
        truncation_side="right",
        model_input_names=["input_ids", *(["token_type_ids"] if cls_token else []), "attention_mask"],
    )


def _pipeline(kind: str, lowercase: bool, mask_token: bool) -> Tokenizer:
    """Build what surrounds the model: the text on its way to words, and pieces on their way back to text."""
    tokenizer = Tokenizer(models.BPE())
    one_space = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()] if kind == "word" else []
    small = [normalizers.Lowercase()] if lowercase else []  # before NFC: "H\u0331" is two characters, "\u1e96" is one
    bare = [normalizers.Replace(Regex(f" ?{_MASK}"), _MASK)] if mask_token else []
    tokenizer.normalizer = normalizers.Sequence(
        [
            *small,
            normalizers.NFC(),
            *one_space,
            normalizers.Replace(_SPACE, _TYPED_SPACE_MARK),
            normalizers.Prepend(" "),
            *bare,
        ]
    )
    word = rf" ?(?:{WORD_PATTERN})"
    if mask_token:
        word = rf"{_MASK}| ?(?!{_MASK})(?:{WORD_PATTERN})"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(word), behavior="isolated"),
            pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="never", split=False),
        ]
    )
    tokenizer.decoder = piece_decoder(mask_token)
    return tokenizer


def piece_decoder(mask_token: bool = False, drop_space: bool = True) -> decoders.Decoder:
    """Make what turns pieces to text.

    Args:
        mask_token: whether there is a `<mask>`, before which there is a space.
        drop_space: whether the first piece begins a text, so that the space before it was not written; False for texts
            that go on with another.
    """
    return decoders.Sequence(
        [
            decoders.ByteFallback(),
            *([decoders.Replace(_MASK, f" {_MASK}")] if mask_token else []),
            decoders.Fuse(),
            decoders.Replace(_SPACE, " "),
            decoders.Replace(_TYPED_SPACE_MARK, _SPACE),
            *([decoders.Strip(content=" ", left=1, right=0)] if drop_space else []),
        ]
    )


def _count_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """Count the words of the texts as the pipeline cuts them, "▁" included."""
    if isinstance(texts, str):
        raise ValueError("texts must be an iterable of strings, got one string; put it in a list")
    if isinstance(texts, (bytes, dict)) or not isinstance(texts, Iterable):
        raise ValueError(f"texts must be an iterable of strings, got {type(texts).__name__}")
    counts: Counter[str] = Counter()
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts must hold strings, got {type(text).__name__} as text {number}")
        try:
            normalized = tokenizer.normalizer.normalize_str(text)
        except UnicodeEncodeError as error:
            raise ValueError(f"texts must be valid Unicode, got a lone surrogate in text {number}: {error}") from None
        counts.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized))
    if not counts:
        raise ValueError("texts must hold at least one word, got none")
    return counts


def _bpe(words: Counter[str], vocab_size: int, mask_token: bool) -> models.BPE:
    """Learn merges; the alphabet is the commonest characters, in at most half of the room beside the bytes."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    del counts[_TYPED_SPACE_MARK]
    room = vocab_size - len(SPECIAL_TOKENS) - len(_BYTE_TOKENS)
    ranked = sorted(counts, key=lambda character: (character != _SPACE, -counts[character], character))
    alphabet = ranked[: max(room // 2, 1)]
    fixed = [*SPECIAL_TOKENS.values(), *_BYTE_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=fixed,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    learner = Tokenizer(models.BPE())
    learner.train_from_iterator(words.elements(), trainer)
    # Built anew: the learner counts the bytes among its special tokens, which decoding would drop.
    model = json.loads(learner.to_str())["model"]
    merges = [(left, right) for left, right in model["merges"]]
    vocabulary = _with_mask(model["vocab"], mask_token)
    return models.BPE(  # with a mask, what is in the vocabulary as a whole is not made of merges
        vocabulary, merges, unk_token=SPECIAL_TOKENS["unk_token"], byte_fallback=True, ignore_merges=mask_token
    )


def _word_level(words: Counter[str], vocab_size: int, mask_token: bool) -> models.WordLevel:
    """Keep the commonest words; of equally common ones, the first in alphabetical order."""
    ranked = sorted(words, key=lambda word: (-words[word], word))
    kept = [*SPECIAL_TOKENS.values(), *ranked[: vocab_size - len(SPECIAL_TOKENS)]]
    vocabulary = _with_mask({token: number for number, token in enumerate(kept)}, mask_token)
    return models.WordLevel(vocabulary, SPECIAL_TOKENS["unk_token"])


def _with_mask(vocabulary: dict[str, int], mask_token: bool) -> dict[str, int]:
    """Add the mask, if there is one, behind the pieces."""
    return vocabulary | ({_MASK: len(vocabulary)} if mask_token else {})


def readable_tokens(tokenizer: PreTrainedTokenizerBase, ids: Iterable[int]) -> list[str]:
    """Name each piece for display.

    "▁" is the space before a word. Bytes that spell a character are shown as that character at the first byte and as
    "·" at the others; those that spell nothing printable keep their names ("<0xEB>", "<0x0A>").

    Args:
        tokenizer: one made by `train_tokenizer`; pieces of any other keep their own names.
        ids: token ids, special tokens included.

    Returns:
        One string for each id.

    Raises:
        ValueError: if an id is not in the vocabulary.
    """
    names = _names(tokenizer, ids)
    shown = list(names)
    for positions, character in _byte_characters(list(enumerate(names))):
        if character.isprintable() and (len(positions) > 1 or character != "\ufffd"):
            shown[positions[0] : positions[-1] + 1] = [character] + ["·"] * (len(positions) - 1)
    return [name.replace(_TYPED_SPACE_MARK, _SPACE) for name in shown]


def piece_spans(tokenizer: PreTrainedTokenizerBase, text: str, ids: Iterable[int]) -> list[tuple[int, int]]:
    """Find the characters of a text that each of its pieces covers, in whatever case they are written if the tokenizer
    reads lower case.

    A piece that begins with "▁" covers the space before its word. All the bytes of a character cover that character.
    Special tokens and pieces of which the text shows nothing cover nothing: an empty span where the text has arrived,
    which for the closing `</s>` is the end. (One between the bytes of a character covers it as they do.) An unknown
    word covers what stands in its place.

    Args:
        tokenizer: one made by `train_tokenizer`. Other tokenizers are served as far as their pieces, turned to text one
            by one, are found in the text.
        text: the text that was encoded (perhaps truncated), or the text that the ids were decoded to.
        ids: token ids, special tokens included.

    Returns:
        A (start, end) for each id, in characters of the text in Unicode form NFC, never going back.

    Raises:
        ValueError: if an id is not in the vocabulary.
    """
    check_text("text", text)
    text = unicodedata.normalize("NFC", text)
    names = _names(tokenizer, ids)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and isinstance(backend.decoder, decoders.ByteLevel):
        names = [tokenizer.convert_tokens_to_string([name]) for name in names]
    shown = (tokenizer.unk_token, tokenizer.mask_token)
    hidden = {name for name in tokenizer.all_special_tokens if name not in shown}
    pieces = [(position, name) for position, name in enumerate(names) if name not in hidden]
    read, starts, ends = _as_read(tokenizer, text)
    found = {}
    if backend is not None and isinstance(backend.model, models.WordLevel):
        found = _match_words(tokenizer, read, pieces)
    found = found or _walk(tokenizer, read, pieces)
    spans, arrived = [], 0
    for position in range(len(names)):
        start, end = found.get(position, (0, 0))
        span = (starts[start], ends[end - 1]) if start < end else (arrived, arrived)
        arrived = span[1]
        spans.append(span)
    return spans


def _as_read(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[str, list[int], list[int]]:
    """Give the text in the case in which the tokenizer reads it, and where each character of that starts and ends in
    the text: a letter with its marks may have more characters in one case than in the other."""
    normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
    if normalizer is None or "A" in normalizer.normalize_str("A"):
        return text, list(range(len(text))), list(range(1, len(text) + 1))
    read, starts, ends = "", [], []
    for match in _WITH_MARKS.finditer(text):
        letter = unicodedata.normalize("NFC", "".join(character.lower() for character in match[0]))
        one_to_one = len(letter) == len(match[0])
        for number in range(len(letter)):
            starts.append(match.start() + (number if one_to_one else 0))
            ends.append(match.start() + number + 1 if one_to_one else match.end())
        read += letter
    return read, starts, ends


def _names(tokenizer: PreTrainedTokenizerBase, ids: Iterable[int]) -> list[str]:
    """Give the piece of each id."""
    numbers = [operator.index(number) for number in ids]
    inside = not numbers or min(numbers) >= 0
    names: Any = tokenizer.convert_ids_to_tokens(numbers) if inside else [None]
    if None in names:
        found = numbers[names.index(None)] if inside else min(numbers)
        raise ValueError(f"ids holds {found}; this tokenizer has ids from 0 to {len(tokenizer) - 1}")
    return names


_Piece = tuple[int, str]  # position among the ids, name
_Unit = tuple[list[int], str | None]  # positions among the ids, the characters that they spell; None: unknown


def _byte_characters(pieces: list[_Piece]) -> Iterator[tuple[list[int], str]]:
    """Yield the positions and the character of each group of bytes, as the decoder reads them.

    Neighbouring bytes that are not valid UTF-8 as a whole are U+FFFD one by one.
    """
    for are_bytes, group in itertools.groupby(pieces, key=lambda piece: piece[1] in _BYTE_OF_TOKEN):
        if not are_bytes:
            continue
        positions, names = zip(*group, strict=True)
        try:
            characters = bytes(_BYTE_OF_TOKEN[name] for name in names).decode("utf-8")
        except UnicodeDecodeError:
            characters = "\ufffd" * len(names)
            lengths = [1] * len(names)
        else:
            lengths = [len(character.encode("utf-8")) for character in characters]
        start = 0
        for character, length in zip(characters, lengths, strict=True):
            yield list(positions[start : start + length]), character
            start += length


def _match_words(tokenizer: PreTrainedTokenizerBase, text: str, pieces: list[_Piece]) -> dict[int, tuple[int, int]]:
    """Give each piece of a word-level tokenizer its word; nothing if the pieces are not the words of the text."""
    words = split_words(text)
    if len(pieces) > len(words):
        return {}
    found = {}
    for (position, name), (start, end) in zip(pieces, words, strict=False):
        word = text[start:end].replace(_SPACE, _TYPED_SPACE_MARK)
        if name != tokenizer.unk_token and name.removeprefix(_SPACE) != word:
            return {}
        found[position] = (start, end)
    return found


def _walk(tokenizer: PreTrainedTokenizerBase, text: str, pieces: list[_Piece]) -> dict[int, tuple[int, int]]:
    """Go through text and pieces side by side."""
    units = _surfaces(tokenizer, pieces)
    found: dict[int, tuple[int, int]] = {}
    arrived = 0
    for number, (positions, surface) in enumerate(units):
        start = end = arrived
        if surface is None:  # unknown: what stands before the next piece that is known
            following = next((other.strip() for _, other in units[number + 1 :] if other is not None), None)
            reached = len(text) if following is None else text.find(following, arrived)
            if text[arrived:reached].strip():
                end = max(arrived, reached)
        elif text.startswith(surface, arrived):
            end = arrived + len(surface)
        else:  # the text has other whitespace than the piece
            word = surface.strip()
            begins = arrived + len(text[arrived:]) - len(text[arrived:].lstrip())
            if word and text.startswith(word, begins):
                end = begins + len(word)
        found.update(dict.fromkeys(range(positions[0], positions[-1] + 1), (start, end)))
        arrived = end
    return found


def _surfaces(tokenizer: PreTrainedTokenizerBase, pieces: list[_Piece]) -> list[_Unit]:
    """Turn pieces to text. Bytes of one character go together, and so do neighbouring unknown pieces."""
    in_bytes = {positions[0]: (positions, character) for positions, character in _byte_characters(pieces)}
    units: list[_Unit] = []
    for position, name in pieces:
        if name == tokenizer.unk_token:
            if units and units[-1][1] is None:
                units[-1][0].append(position)
            else:
                units.append(([position], None))
        elif position in in_bytes:
            units.append((in_bytes[position][0], _as_typed(in_bytes[position][1])))
        elif name not in _BYTE_OF_TOKEN:
            units.append(([position], _as_typed(name)))
    if units and units[0][1]:
        units[0] = (units[0][0], units[0][1].removeprefix(" "))  # the decoder drops it too
    return units


def _as_typed(characters: str) -> str:
    return characters.replace(_SPACE, " ").replace(_TYPED_SPACE_MARK, _SPACE)
