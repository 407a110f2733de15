#!/bin/sh
# Make an environment in .venv and install into it what the arguments name, as pip would: `sh tools/venv.sh -e ".[test]"`.
# Debian and Ubuntu ship python3 without what makes environments; there, and only there, it is installed first.
set -eu
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "error: python3 is missing or older than 3.11: install Python 3.11 or newer, and put it first on PATH as python3" >&2
  exit 1
fi
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  if ! command -v apt-get >/dev/null; then
    echo "error: python3 cannot make environments: install its modules venv and ensurepip (the package python3-venv, where there is one)" >&2
    exit 1
  fi
  echo "python3 cannot make environments here: installing python3-venv with apt-get" >&2
  as_root=$(command -v sudo || true)
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q python3-venv >&2
fi
python3 -m venv .venv
.venv/bin/pip install -q --disable-pip-version-check "$@"
