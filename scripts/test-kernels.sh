#!/usr/bin/env bash
# Tests operations on the native engine with each kernel of products that this CPU has, or with those that are named:
#
#   bash scripts/test-kernels.sh
#   bash scripts/test-kernels.sh portable avx2
set -euo pipefail
cd "$(dirname "$0")/.."
kernels=("$@")
[ $# -gt 0 ] || kernels=(portable neon avx2 avx512 avx512bf16 amx)
for kernel in "${kernels[@]}"; do
  export LUTHIER_KERNEL="$kernel"
  # The library takes another one where it has none of the name.
  if ! measured="$(node src/tools/luthier.js cache measure)" || ! grep -q "\b$kernel (bfloat16" <<<"$measured"; then
    printf '\n== %s: not here\n' "$kernel"
    # One that is named must be.
    [ $# -eq 0 ] || exit 1
    continue
  fi
  printf '\n== %s\n%s\n' "$kernel" "$measured"
  npx vitest run test/compiler/ops test/compiler/native/sharedOperands.test.ts test/compiler/native/nativeProgram.test.ts
done
