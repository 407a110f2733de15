#!/bin/sh
# Make an environment in .venv and install into it what the arguments name, as pip would: `sh tools/venv.sh -e ".[test]"`.
# Debian and Ubuntu ship python3 without the venv module; there, and only there, it is installed first.
set -eu
if ! python3 -m venv .venv 2>/dev/null; then
  echo "python3 cannot make environments here: installing python3-venv with apt-get" >&2
  as_root=$(command -v sudo || true)
  $as_root apt-get update -q >&2
  $as_root apt-get install -y -q python3-venv >&2
  python3 -m venv --clear .venv
fi
.venv/bin/pip install -q --disable-pip-version-check "$@"
