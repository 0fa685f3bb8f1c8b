#!/bin/sh
# Copies `data/` to `backups/DAY/` with a list of digests beside it: into a new folder first, then in place of the old
# one, so that a copy that was cut off is never taken for a whole one. It may be run again at any time.
set -eu
day=$(date -u +%Y-%m-%d)
part="backups/.part-${DUCTOR_FENCE:-0}"
mkdir -p data backups
[ -e data/README ] || echo "what is worth keeping" > data/README
rm -rf "$part"
mkdir "$part"
cp -Rp data "$part/data"
(cd "$part" && find data -type f -exec sha256sum {} + > digests)
rm -rf "backups/$day"
mv "$part" "backups/$day"
echo "$day" > backups/latest
echo "kept $(wc -l < "backups/$day/digests") files of $day"
