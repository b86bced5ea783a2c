#!/usr/bin/env bash
# From nothing to trained translators whose attention you can see: bash scripts/quickstart.sh [OUTPUT_DIR]
#
# Installs the package into .venv, trains Bahdanau's network and the Transformer side by side on the embedded
# English-Italian phrasebook, prints their BLEU, translates ten sentences with each and draws which source word every
# output word looked at. No network beyond pip. Six minutes at most on two cores after installation; uses a GPU where
# there is one. QUICKSTART_STEPS sets the number of updates of both.
set -euo pipefail
output=$(realpath -m "${1:-out/quickstart}")
source "$(dirname "$0")/environment.sh" train,viz
export HF_HUB_OFFLINE=1
OMP_NUM_THREADS=$(python -c 'import os; print(max(1, os.cpu_count() // 2))') # half of the cores each
export OMP_NUM_THREADS

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
train() { # model, updates
    python scripts/train_translation.py --recipe "$1-tiny" --phrasebook en-it --max_steps "${QUICKSTART_STEPS:-$2}" \
        --attn_implementation eager --max_eval_samples 100 --max_predict_samples 300 --output_dir "$output/$1"
}

mkdir -p "$output"
echo "== Training both models on the English-Italian phrasebook; the progress shown is Bahdanau's,"
echo "   the Transformer's is in $output/transformer.log"
train transformer 950 > "$output/transformer.log" 2>&1 &
transformer=$!
train bahdanau 750
wait "$transformer" || { cat "$output/transformer.log"; exit 1; }
for model in bahdanau transformer; do
    echo "== Ten sentences by $model, and their alignments"
    python scripts/plot_attention.py --model_name_or_path "$output/$model" --text "${sentences[@]}" \
        --output_dir "$output/$model/alignments"
done
for model in bahdanau transformer; do
    python -c 'import json, sys; print(f"BLEU of {sys.argv[1]}:", round(json.load(open(sys.argv[2]))["predict_bleu"], 1))' \
        "$model" "$output/$model/predict_results.json"
done
echo "Done. Open $output/bahdanau/alignments/alignment-6.html in a browser; the PNG beside it shows the same."
