#!/usr/bin/env bash
# From nothing to trained translators whose attention you can see: bash scripts/quickstart.sh [OUTPUT_DIR]
#
# Installs the package into .venv, trains Bahdanau's network and the Transformer on the embedded English-Italian phrasebook, prints their BLEU,
# translates ten sentences with each and draws which source word every output word looked at. No network beyond pip. Six minutes at most on
# two cores after installation; uses a GPU where there is one. QUICKSTART_STEPS sets the number of updates.
set -euo pipefail
output=$(realpath -m "${1:-out/quickstart}")
source "$(dirname "$0")/environment.sh" train,viz
export HF_HUB_OFFLINE=1

sentences=(
    "The old man reads a book."
    "The girl sees the red house."
    "I do not see them."
    "We eat the fresh bread."
    "The teacher writes a long letter in the garden."
    "Maria buys three red apples at the market."
    "The student who lives in Rome helps the doctor."
    "They visited the old church and the small museum."
    "She helps my sister's friend."
    "The boy drinks the milk because he is tired."
)
for model in bahdanau transformer; do
    echo "== Training $model on the English-Italian phrasebook"
    python scripts/train_translation.py --recipe "$model-tiny" --phrasebook en-it --max_steps "${QUICKSTART_STEPS:-550}" \
        --max_eval_samples 100 --max_predict_samples 300 --output_dir "$output/$model"
    echo "== Ten sentences by $model, and their alignments"
    python scripts/plot_attention.py --model_name_or_path "$output/$model" --text "${sentences[@]}" \
        --output_dir "$output/$model/alignments"
done
echo "Done. Open $output/bahdanau/alignments/alignment-6.html in a browser; the PNG beside it shows the same."
