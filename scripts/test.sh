#!/usr/bin/env bash
# Run the checks and the tests: bash scripts/test.sh [arguments for pytest]
# Sets itself up on a fresh machine. Under five minutes on two cores after installation.
set -euo pipefail
source "$(dirname "$0")/environment.sh" dev
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1

ruff check .
ruff format --check .
pyright
python -m pytest --numprocesses 2 --dist worksteal "$@"
