#!/usr/bin/env bash
# Prints the compiler flags of benchmarks. They name a profile, recorded while an instrumented build
# ran packaging/train.py. Without llvm-profdata no flags are printed, and standard error explains why.
set -euo pipefail
cd "$(dirname "$0")/.."
work="${CARGO_TARGET_DIR:-$PWD/target}/profiled"

# Only the LLVM version of the compiler can read its profiles.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
host=$(rustc -vV | sed -n 's/^host: //p')
merge=
for found in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" llvm-profdata; do
  if command -v "$found" > /dev/null && "$found" merge --version | grep "LLVM version $llvm\." > /dev/null; then
    merge=$found
    break
  fi
done
if [ -z "$merge" ]; then
  echo "llvm-profdata of LLVM $llvm is missing, so this build has no profile and is up to a fifth slower. Install it with" \
    "rustup component add llvm-tools, or (Debian and Ubuntu) apt install llvm-$llvm." >&2
  exit 0
fi

rm -rf "$work/counts" "$work"/*.profdata
RUSTFLAGS="-Cprofile-generate=$work/counts" cargo build --profile dist --quiet -p flashatlas-module \
  --target-dir "$work"
rm -rf "$work/python"
mkdir "$work/python"
cp -r python/flashatlas "$work/python/"
cp "$work/dist/lib_core.so" "$work/python/flashatlas/_core.abi3.so"
PYTHONPATH="$work/python" .venv/bin/python packaging/train.py "$work/python" >&2
"$merge" merge --output "$work/all.profdata" "$work/counts"
# Cargo compares flags, not the content of the file: each profile needs its own name.
name="$work/$(sha256sum "$work/all.profdata" | head -c 16).profdata"
mv "$work/all.profdata" "$name"
echo "-Cprofile-use=$name"
