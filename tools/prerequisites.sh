#!/bin/sh
# Names everything that is missing before anything is built: cargo, a linker, Python with venv.
python=${1:-python3}
missing=0

need() {
  missing=1
  printf 'missing: %s\n    %s\n' "$1" "$2" >&2
}

command -v cargo >/dev/null 2>&1 ||
  need 'cargo (Rust)' 'install rustup (https://rustup.rs); cargo then installs the toolchain that rust-toolchain.toml names'
command -v cc >/dev/null 2>&1 ||
  need 'cc (a C linker for Rust)' 'apt-get install gcc libc6-dev'
if ! command -v "$python" >/dev/null 2>&1; then
  need "$python (Python 3.11 or later)" 'apt-get install python3 python3-venv'
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  need "Python 3.11 or later ($python is $("$python" -V 2>&1))" 'say which one with: make PYTHON=python3.11'
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  need "the venv module of $python" 'apt-get install python3-venv'
fi
exit $missing
