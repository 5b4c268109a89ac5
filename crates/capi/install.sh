#!/bin/sh
# Install libflashatlas: install.sh BUILD-FOLDER PREFIX. This script compiles nothing.
set -eu
[ $# = 2 ] || { echo "usage: install.sh BUILT PREFIX" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
built=$1
mkdir -p "$2/lib/pkgconfig" "$2/include"
prefix=$(cd "$2" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
# The number in the name is the version of the C ABI (build.rs). Programs look for this name.
install -m 644 "$built/libflashatlas_capi.a" "$prefix/lib/libflashatlas.a"
if [ -f "$built/libflashatlas_capi.so" ]; then
  install -m 755 "$built/libflashatlas_capi.so" "$prefix/lib/libflashatlas.so.1"
  ln -sf libflashatlas.so.1 "$prefix/lib/libflashatlas.so"
elif [ -f "$built/libflashatlas_capi.dylib" ]; then
  install -m 755 "$built/libflashatlas_capi.dylib" "$prefix/lib/libflashatlas.dylib"
fi
install -m 644 "$here/include/flashatlas.h" "$here/include/flashatlas.hpp" "$prefix/include"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$here/flashatlas.pc.in" \
  > "$prefix/lib/pkgconfig/flashatlas.pc"
