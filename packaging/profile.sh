#!/usr/bin/env bash
# Prints the flags that benchmarks are compiled with: they tell the compiler what a build that counts did most in
# packaging/train.py. Without llvm-profdata there are none, and standard error says so.
set -euo pipefail
cd "$(dirname "$0")/.."
work="${CARGO_TARGET_DIR:-$PWD/target}/profiled"

# Profiles are read by the LLVM of the compiler, and of no other version.
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
# Cargo looks at the flags, not at the file: another profile has another name.
name="$work/$(sha256sum "$work/all.profdata" | head -c 16).profdata"
mv "$work/all.profdata" "$name"
echo "-Cprofile-use=$name"
