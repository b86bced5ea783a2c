"""Translate a sentence and draw which source words each target word attended to, as a picture and an interactive page.

    python scripts/plot_attention.py --model_name_or_path out/fr --text "Where is the station?" --output_dir pictures

writes ``pictures/alignment.png`` and ``pictures/alignment.html`` and prints the translation and where they are, within
seconds for a small model. With ``--target "Où est la gare ?"`` the weights are those behind this translation instead of
the model's own. Several texts, and the lines of a text, are drawn one by one: ``alignment-1.png``, ``alignment-2.png``.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from transformers import HfArgumentParser

from hf_attn.inference import ALIGNMENT_METHODS, Translation, Translator
from hf_attn.visualization import alignment_heatmap, alignment_html


@dataclass
class PlotArguments:
    """What is drawn, and where to."""

    model_name_or_path: str = field(metadata={"help": "Folder or Hub id of a translation model."})
    text: list[str] = field(metadata={"help": "One source sentence, or several, each in quotation marks."})
    output_dir: str = field(metadata={"help": "Folder for the pictures and pages; made if it does not exist."})
    target: list[str] | None = field(
        default=None, metadata={"help": "Draw the attention behind these translations, one for each text."}
    )
    layer: int | None = field(
        default=None, metadata={"help": "Decoder layer, counted from 0; the model's recommendation, or else the last."}
    )
    heads: list[int] | None = field(
        default=None,
        metadata={"help": "One head or several to average, counted from 0; the model's recommendation, or else all."},
    )
    method: str | None = field(
        default=None, metadata={"help": f"{', '.join(ALIGNMENT_METHODS)}; the model's recommendation if not given."}
    )
    pieces: bool = field(default=False, metadata={"help": "Draw the tokenizer's pieces instead of words."})
    num_beams: int = field(default=1, metadata={"help": "Width of the beam search; 1 is greedy search."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )


def translate_lines(args: PlotArguments) -> list[Translation]:
    """Translate the texts, or score the given targets; the lines of a text become translations of their own."""
    translator = Translator(args.model_name_or_path, trust_remote_code=args.trust_remote_code)
    if args.target is not None:
        results = translator.score(args.text, args.target)
    else:
        results = translator(args.text, num_beams=args.num_beams)
    lines = [line for result in results for line in (result.segments or [result])]
    return [line for line in lines if line.target_tokens]


def main(args: PlotArguments) -> None:
    """Write a picture and a page for every line."""
    translations = translate_lines(args)
    if not translations:
        raise ValueError(f"text is {args.text!r}; there is nothing to translate")
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    options = {"layer": args.layer, "heads": args.heads, "words": not args.pieces, "method": args.method}
    for number, translation in enumerate(translations, start=1):
        name = "alignment" if len(translations) == 1 else f"alignment-{number}"
        picture, page = folder / f"{name}.png", folder / f"{name}.html"
        alignment_heatmap(translation, **options).savefig(picture)
        alignment_html(translation, **options).save(page)
        print(f"{translation.source}\n{translation.text}\n  picture: {picture}\n  page:    {page}")


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(PlotArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
