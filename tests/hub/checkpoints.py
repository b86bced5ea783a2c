"""Tiny checkpoints of transformers with tokenizers of their own kinds, trained on sentences of the phrasebook."""

import functools
import io
import json

import sentencepiece
from parity.twin_models import random_model
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, BartTokenizer, MarianTokenizer

from hf_attn.data import phrasebook

# what each side reads besides: a Latin and a Korean alphabet, characters that no model knows, special tokens as text
SENTENCES = [
    "The old man reads a book.",
    "그 소녀는 빨간 집을 봐요.",
    "  two  spaces, ☃ and Ω",
    "typed </s> and <pad> and <unk> and <s>",
    ">>fr<< Where is it?",
    "",
]
SPECIAL = {  # ids of padding, end and unknown word, and where the decoder starts
    "bart": {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2},
    "mbart": {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": 2},
    "t5": {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
}
KINDS = ("marian", "marian-separate", "bart", "mbart", "t5")


@functools.cache
def sides():
    """Sentences in English and in Korean."""
    pairs = phrasebook("en-ko", size=200)["translation"]
    return [pair["en"] for pair in pairs], [pair["ko"] for pair in pairs]


def write_pieces(path, texts, **special):
    """Train a SentencePiece model; give its pieces."""
    model = io.BytesIO()
    options = {"model_type": "unigram", "vocab_size": 420, "hard_vocab_limit": False} | special
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, character_coverage=0.98, minloglevel=2, num_threads=1,
        **options,
    )  # fmt: skip
    path.write_bytes(model.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [pieces.id_to_piece(number) for number in range(pieces.vocab_size())]


def write_marian_tokenizer(folder, separate):
    """Two SentencePiece models, and one table of ids or two, in Marian's order: end, unknown, pieces, padding."""

    def write_ids(name, pieces):
        ordered = dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"])
        ids = {piece: number for number, piece in enumerate(piece for piece in ordered if piece != "<s>")}
        (folder / name).write_text(json.dumps(ids), encoding="utf-8")

    english, korean = sides()
    source, target = write_pieces(folder / "source.spm", english), write_pieces(folder / "target.spm", korean)
    if separate:
        # one size, since both sides have the same id of padding
        source, target = source[: min(len(source), len(target))], target[: min(len(source), len(target))]
        write_ids("vocab.json", source)
        write_ids("target_vocab.json", target)
    else:
        write_ids("vocab.json", [">>fr<<", *source, *target])
    return MarianTokenizer.from_pretrained(folder, separate_vocabs=separate)


def write_bart_tokenizer(folder):
    """Byte-level BPE."""
    learner = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learner.train_from_iterator([*sides()[0], *sides()[1]], vocab_size=330, special_tokens=special, show_progress=False)
    learner.save_model(str(folder))
    return BartTokenizer.from_pretrained(folder)


def write_tokenizer(kind, folder):
    """Write the files of a tokenizer of this kind, and load it as transformers does."""
    if kind.startswith("marian"):
        return write_marian_tokenizer(folder, kind == "marian-separate")
    if kind == "bart":
        return write_bart_tokenizer(folder)
    name = "spiece.model" if kind == "t5" else "sentencepiece.bpe.model"
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} if kind == "t5" else {}
    write_pieces(folder / name, [*sides()[0], *sides()[1]], **ids)
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))  # tells the library whose files these are
    return AutoTokenizer.from_pretrained(folder)


def write_checkpoint(kind, folder, **options):
    """Write a model and a tokenizer that fit together.

    Args:
        kind: one of KINDS.
        folder: a new folder.
        options: of the model's configuration.

    Returns:
        The model and the tokenizer.
    """
    folder.mkdir()
    tokenizer = write_tokenizer(kind, folder)
    if kind.startswith("marian"):
        special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": 0}
        options = special | {"decoder_start_token_id": tokenizer.pad_token_id} | options
        separate = kind == "marian-separate"
        options |= {"share_encoder_decoder_embeddings": not separate, "decoder_vocab_size": len(tokenizer)}
    else:
        options = SPECIAL[kind] | options
    if kind == "mbart":
        tokenizer.tgt_lang = "ko_KR"
        options = {"decoder_start_token_id": tokenizer.convert_tokens_to_ids("ko_KR")} | options
    if kind == "t5":
        options = {"num_layers": 2, "num_decoder_layers": 2} | options  # its cache has as many layers as the encoder
    if kind != "t5":
        options = {"tie_word_embeddings": True, "max_position_embeddings": 64} | options
    model = random_model(kind.split("-")[0], 0, sharpness=3.0, **{"vocab_size": len(tokenizer)} | options)
    model.generation_config.update(suppress_tokens=[tokenizer.unk_token_id], no_repeat_ngram_size=1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer
