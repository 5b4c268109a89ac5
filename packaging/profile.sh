#!/usr/bin/env bash
# The flags with which what is shipped is compiled, on standard output: the compiler is told what a build that counts
# was doing most in packaging/train.py. Arguments: for which target, if it is to be named.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${1:-}"
work="${CARGO_TARGET_DIR:-$PWD/target}/profiled${target:+/$target}"

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
  echo "llvm-profdata of LLVM $llvm is missing: install it with rustup component add llvm-tools, or (Debian and" \
    "Ubuntu) apt install llvm-$llvm; or leave the profile out with PROFILE=off." >&2
  exit 1
fi

# Counts are kept by the names of functions, and those depend on how cargo tells the target from the host: as
# cargo-zigbuild has it, which builds what is shipped for a target and cannot link what counts.
if [ -n "$target" ]; then
  export CARGO_TARGET_APPLIES_TO_HOST=false CARGO_UNSTABLE_TARGET_APPLIES_TO_HOST=true \
    __CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS=nightly
fi
rm -rf "$work/counts" "$work"/*.profdata
RUSTFLAGS="-Cprofile-generate=$work/counts" cargo build --profile dist --quiet -p flashatlas-module \
  ${target:+--target "$target"} --target-dir "$work"
rm -rf "$work/python"
mkdir "$work/python"
cp -r python/flashatlas "$work/python/"
cp "$work/${target:+$target/}dist/lib_core.so" "$work/python/flashatlas/_core.abi3.so"
PYTHONPATH="$work/python" .venv/bin/python packaging/train.py "$work/python" >&2
"$merge" merge --output "$work/all.profdata" "$work/counts"
# Cargo looks at the flags, not at the file: another profile has another name.
name="$work/$(sha256sum "$work/all.profdata" | head -c 16).profdata"
mv "$work/all.profdata" "$name"
echo "-Cprofile-use=$name"
