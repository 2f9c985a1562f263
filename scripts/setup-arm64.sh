#!/usr/bin/env bash
# Makes what the tests of ARM64 code need, in out/arm64: Debian's cross compiler in bin/aarch64-linux-gnu-gcc, and QEMU's
# user-mode emulator in bin/qemu-aarch64. Nothing is installed, and no rights are needed. It is made once. Where the
# packages cannot be had, says 'skipped' with the reason and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() {
  echo "skipped: $1"
  exit 0
}
[[ $(uname -s) == Linux ]] || skip "the packages are Debian's, and this is $(uname -s)"
if command -v aarch64-linux-gnu-gcc > /dev/null && command -v qemu-aarch64 > /dev/null; then
  echo "aarch64-linux-gnu-gcc and qemu-aarch64 are installed."
  exit 0
fi
folder=$PWD/out/arm64
if [[ -x $folder/bin/aarch64-linux-gnu-gcc && -x $folder/bin/qemu-aarch64 ]]; then
  echo "The ARM64 tools are in $folder."
  exit 0
fi
for tool in apt-get dpkg-deb; do
  command -v "$tool" > /dev/null || skip "there is no $tool: install aarch64-linux-gnu-gcc and qemu-aarch64 yourself"
done

mkdir -p out
made=$(mktemp -d "$PWD/out/arm64.XXXXXX")
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/lists/partial" "$made/debs/partial"
options=(-q -y -o "Dir::Cache::Archives=$made/debs" -o Debug::NoLocking=1 -o Acquire::Retries=1
  -o Acquire::http::Timeout=20 -o APT::Sandbox::User="$(id -un)")
packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
download() { timeout 120 apt-get "${options[@]}" --no-install-recommends --download-only install "${packages[@]}" "$@"; }
log=$made/log
if ! download > "$log" 2>&1; then
  # The system's lists of packages may be missing or old.
  options+=(-o "Dir::State::Lists=$made/lists")
  { timeout 120 apt-get "${options[@]}" update && download; } > "$log" 2>&1 || skip "apt-get: $(grep -m1 '^E:' "$log" || tail -n1 "$log")"
fi
for package in "$made"/debs/*.deb; do dpkg-deb -x "$package" "$made"; done
rm -rf "$made/debs" "$made/lists" "$log"
mkdir "$made/bin"
libraries=$folder/usr/lib/$(uname -m)-linux-gnu
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  [[ -e $made/usr/bin/$tool ]] || skip "the packages contain no $tool"
  printf '#!/bin/sh\nLD_LIBRARY_PATH="%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "%s" "$@"\n' "$libraries" \
    "$folder/usr/bin/$tool" > "$made/bin/$tool"
  chmod +x "$made/bin/$tool"
done
rm -rf "$folder"
chmod 755 "$made"
mv "$made" "$folder"
if ! "$folder/bin/qemu-aarch64" --version > /dev/null; then
  rm -rf "$folder"
  skip "qemu-aarch64 does not run here"
fi
echo "The ARM64 tools are in $folder."
