#!/usr/bin/env bash
# Installs the wheel in a Debian root without a compiler and without this tree, and tries runs, power
# failures and a comparison. Needs root, mmdebstrap and the wheel (make wheel).
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(ls dist/*.whl)
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
mmdebstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$root"
for file in /etc/resolv.conf /etc/hosts; do cp "$file" "$root$file"; done
cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
cp "$wheel" "$root/root/"
cat > "$root/root/try.sh" <<'EOF'
set -euo pipefail
cd /root
if command -v cargo rustc cc; then exit 1; fi
python3 -m venv env
env/bin/pip install --quiet "$(ls ./*.whl)[report]"
PATH="$PWD/env/bin:$PATH"
flashatlas --version
flashatlas trace fetch demo --to .
flashatlas run --trace demo.fatr --fit compact -d tlc-small --precondition fill --out out -q
flashatlas rerun out --check -q
flashatlas crash --scheme page --store dftl --one-in 50
flashatlas compare --vary ftl.victim=greedy,fifo -w uniform:requests=2000,size=2KiB --out study -q
flashatlas figure study --x ftl.victim --kind bar -o figure.pdf
EOF
chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 \
  PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash /root/try.sh
