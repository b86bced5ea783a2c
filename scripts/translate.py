"""Translate text with a trained model: one output line for each input line.

    python scripts/translate.py --model_name_or_path out/fr --text "Where is the station?"

    python scripts/translate.py --model_name_or_path out/fr --input source.txt --output translated.txt --num_beams 4

    python scripts/translate.py --model_name_or_path out/fr-1 out/fr-2 --text "He came." --num_beams 4 --prefix "Elle"

Without ``--input`` lines are read from standard input, without ``--output`` they go to standard output; the progress
bar goes to standard error. Empty lines stay empty. ``--num_return_sequences 3`` writes three lines for each, best
first, and ``--json`` one JSON object a line, with pieces, log-probabilities and score. Several models, which must share
their tokenizer, translate as one ensemble.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transformers import HfArgumentParser

from hf_attn.inference import Translation, Translator


@dataclass
class TranslateArguments:
    """What is translated, and how."""

    model_name_or_path: list[str] = field(
        metadata={"help": "Folder or Hub id of a translation model; of several, for an ensemble."}
    )
    text: str | None = field(default=None, metadata={"help": "Text to translate, instead of a file."})
    input: str = field(default="-", metadata={"help": "UTF-8 text file, one sentence a line; - is standard input."})
    output: str = field(default="-", metadata={"help": "File to write; - is standard output."})
    num_beams: int = field(default=1, metadata={"help": "Width of the beam search; 1 is greedy search."})
    num_return_sequences: int = field(
        default=1, metadata={"help": "Translations of each line, best first; at most num_beams unless sampling."}
    )
    length_penalty: float = field(default=1.0, metadata={"help": "Exponent of the length in the score of a beam."})
    coverage_penalty: float | None = field(
        default=None, metadata={"help": "Rank the beams by GNMT's score, with this weight of the coverage (e.g. 0.2)."}
    )
    prefix: str = field(default="", metadata={"help": "Text with which every translation has to start."})
    max_new_tokens: int | None = field(
        default=None, metadata={"help": "Longest output in pieces; twice the source plus 20 if not given."}
    )
    do_sample: bool = field(default=False, metadata={"help": "Draw pieces from the model's distribution."})
    seed: int | None = field(default=None, metadata={"help": "Makes samples repeatable."})
    batch_size: int = field(default=32, metadata={"help": "Sentences that run together."})
    json: bool = field(default=False, metadata={"help": "Write JSON lines instead of text."})
    device: str | None = field(default=None, metadata={"help": "cpu or cuda; a GPU is used where there is one."})
    dtype: str | None = field(default=None, metadata={"help": "Number format of the weights; float32 if not given."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )

    def __post_init__(self):
        if self.text is not None and self.input != "-":
            raise ValueError(f"text and input={self.input!r} were both given; give one of them")


def read_lines(name: str) -> list[str]:
    """Read the lines of a file or of standard input; only line feeds divide lines."""
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return split_lines(content.decode("utf-8-sig"))


def split_lines(text: str) -> list[str]:
    """Divide a text into lines, without the carriage returns that Windows puts at their ends."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def format_lines(number: int, candidates: list[Translation], as_json: bool) -> Iterator[str]:
    """Give one line for each translation of input line `number`."""
    for translation in candidates:
        if as_json:
            yield json.dumps({"line": number, **translation.to_dict()}, ensure_ascii=False)
        else:
            yield re.sub(r"[\r\n]+", " ", translation.text)  # a model may produce a line break; the lines must match


def main(args: TranslateArguments) -> None:
    """Translate all lines and write them."""
    lines = read_lines(args.input) if args.text is None else split_lines(args.text)
    translator = Translator(
        args.model_name_or_path, device=args.device, dtype=args.dtype, trust_remote_code=args.trust_remote_code
    )
    results = translator(
        lines,
        num_beams=args.num_beams,
        num_return_sequences=args.num_return_sequences,
        length_penalty=args.length_penalty,
        coverage_penalty=args.coverage_penalty,
        prefix=args.prefix,
        max_new_tokens=args.max_new_tokens,
        do_sample=args.do_sample,
        seed=args.seed,
        batch_size=args.batch_size,
        return_attention=False,
        progress=args.text is None,
    )
    output = "".join(
        line + "\n"
        for number, result in enumerate(results, start=1)
        for line in format_lines(number, result if isinstance(result, list) else [result], args.json)
    )
    if args.output == "-":
        sys.stdout.buffer.write(output.encode("utf-8"))
        sys.stdout.buffer.flush()
    else:
        Path(args.output).write_bytes(output.encode("utf-8"))


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(TranslateArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
