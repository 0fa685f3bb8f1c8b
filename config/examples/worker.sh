#!/bin/sh
# A worker in shell: claims the tasks of one queue, one after the other, and runs a command for each. It needs curl and
# nothing else.
#
#   sh worker.sh http://127.0.0.1:8470 images ./resize.sh
#
# The command gets the task as JSON on its input (`input` is what the workflow gives it, `task` what is to be done) and
# prints its output as JSON; nothing is null. Another exit code than 0 is a failed attempt.
set -u
[ $# -ge 3 ] || { echo "usage: worker.sh URL QUEUE COMMAND [ARGUMENT...]" >&2; exit 2; }
url=$1 queue=$2
shift 2
work=$(mktemp -d) || exit 1
pid='' beat=''
end() {
    for process in $pid $beat; do kill "$process" 2>/dev/null; done
    rm -rf "$work"
}
trap end EXIT
trap 'exit 0' INT TERM

post() {
    curl -sS --fail -H 'Content-Type: application/json' --data-binary @- "$url/api/bridge/$1"
}

# A sign of life each 10 seconds; a task that is not wanted any more is ended.
beats() {
    trap 'kill $nap; exit 0' TERM
    while :; do
        sleep 10 & nap=$!
        wait $nap
        if echo '{}' | post "tasks/$token:heartbeat" | grep -q '"cancel":true'; then kill "$pid"; fi
    done
}

while :; do
    ask="{\"queue\":\"$queue\",\"worker\":\"$(uname -n)-$$\",\"wait_ms\":20000}"
    # In the background, so that a signal is heard at once.
    echo "$ask" | post poll > "$work/polled" & pid=$!
    wait $pid || { sleep 1; continue; }
    token=$(sed -n 's/.*"token":"\(tk_[0-9a-f]*\)".*/\1/p' "$work/polled")
    [ -n "$token" ] || continue
    sed 's/^{"data":{"tasks":\[//; s/\]}}$//' "$work/polled" > "$work/task"
    "$@" < "$work/task" > "$work/output" 2> "$work/errors" & pid=$!
    beats & beat=$!
    wait $pid
    code=$?
    kill $beat 2>/dev/null
    pid='' beat=''
    [ -s "$work/output" ] || echo null > "$work/output"
    if [ $code -eq 0 ]; then
        { printf '{"output":'; cat "$work/output"; printf '}'; } | post "tasks/$token:complete" && continue
        failure='{"code":"worker.output","message":"the output was not taken","retryable":false}'
    else
        said=$(tail -n 1 "$work/errors" | tr -d '"\\' | tr -d '[:cntrl:]')
        failure="{\"code\":\"exit_$code\",\"message\":\"exit code $code: $said\"}"
    fi
    echo "$failure" | post "tasks/$token:fail"
done
