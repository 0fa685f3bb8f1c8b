#!/bin/sh
# Runs the configuration that a bench of another daemon wrote: turns its `web:` section into `server:` and becomes
# `ductor serve`. Usage: as_ductor.sh DUCTOR CONFIG
set -eu
ductor=$1
config=$2
own="$config.ductor.yaml"
awk '
  /^web:/ { next }
  /^  listen:/ { next }
  /^    - http:\/\// { sub(/^    - http:\/\//, ""); print "server:\n  listen: " $0; next }
  { print }
' "$config" > "$own"
exec "$ductor" serve --config "$own" --log warn
