#!/bin/sh
# Reads the newest copy back and compares every digest. The run succeeds only if this does.
set -eu
latest=$(cat backups/latest)
cd "backups/$latest"
test -s digests
sha256sum --check --quiet digests
echo "the copy of $latest reads back"
