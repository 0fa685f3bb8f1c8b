#!/bin/sh
# The long crash test: 300 rounds with every planned fault (a debug build), on the disk of DIR and, where one can be mounted,
# on a small tmpfs that is filled. Usage: benches/torture.sh [ROUNDS | TIME] [SEED] [DIR]
#   benches/torture.sh                 300 rounds, a drawn seed, a folder under the target directory
#   benches/torture.sh 30m 42          half an hour, seed 42
#   PROFILE=release benches/torture.sh the binary that is shipped: kills, freezes, restarts, reloads, damage
set -eu
cd "$(dirname "$0")/.."
length=${1:-300}
seed=${2:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
dir=${3:-target/torture}
case $length in
*[!0-9]*) bound="--for $length" ;;
*) bound="--rounds $length" ;;
esac
profile=${PROFILE:-dev}
cargo build --quiet --locked --bin ductor --profile "$profile"
case $profile in
dev) program=target/debug/ductor ;;
*) program=target/$profile/ductor ;;
esac
program=$(pwd)/$program

echo "== on the disk of $dir"
# shellcheck disable=SC2086
"$program" torture --dir "$dir" $bound --seed "$seed"

small=$(mktemp -d)
trap 'rmdir "$small"' EXIT
if unshare --map-root-user --mount mount -t tmpfs full "$small" 2>/dev/null; then
  echo "== on a tmpfs of 64 MiB that is filled"
  # shellcheck disable=SC2016
  unshare --map-root-user --mount sh -c \
    'mount -t tmpfs -o size=64m full "$1" && exec "$2" torture --dir "$1" --rounds 24 --seed "$3"' \
    sh "$small" "$program" "$seed"
else
  echo "== not tried: no small file system can be mounted here"
fi
