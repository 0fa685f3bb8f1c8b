#!/usr/bin/env python3
"""Daemons that share one state directory and its unbound entries. Prints one JSON document.

  two_daemons.py DUCTOR [--jobs 1000] [--slots 8] [--daemons 2] [--sleep 0] [--kill]
  two_daemons.py DUCTOR --hand-over 100

JOBS jobs with the same `@every` instant and one slot pool fire while the slot pool is paused; then it is resumed, and the
time counts until the last one has ended. Each command writes a line, so that what ran is known without the store. `--kill`
ends one daemon by SIGKILL when a third of the work is done: nothing may be lost, and the time until the first of its claims
runs again is told. `--hand-over N` is another measurement: one slot, N entries bound to each of two daemons in turn; from the
end of a command in one daemon to the begin of the next one's in the other.
"""

import argparse
import collections
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Daemon:
    def __init__(self, binary, folder, config, name):
        self.name, self.port = name, free_port()
        log = open(os.path.join(folder, name + ".log"), "w")
        self.process = subprocess.Popen(
            [binary, "serve", "--config", config, "--state-dir", os.path.join(folder, "state"), "--node", name,
             "--listen", f"127.0.0.1:{self.port}", "--log", "warn"], stdout=log, stderr=log)
        until(lambda: self.get("/readyz") is not None, 60, "the daemon is ready")

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method,
                                         headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def get(self, path):
        try:
            return self.ask("GET", path)
        except OSError:
            return None


def until(probe, limit, what, pause=0.01):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = probe()
        if found:
            return found
        time.sleep(pause)
    sys.exit(f"waited in vain: {what}")


def lines(path):
    try:
        with open(path) as file:
            return [line.split() for line in file.read().splitlines()]
    except FileNotFoundError:
        return []


def hand_over(args, folder):
    ran, config = os.path.join(folder, "ran"), os.path.join(folder, "ductor.yaml")
    command = f"b=$(date +%s.%N); sleep 0.03; echo $DUCTOR_NODE $b $(date +%s.%N) >> {ran}"
    with open(config, "w") as file:
        file.write(f"pools: {{p: {{slots: 1, maxQueued: 10000}}}}\njobs:\n  - {{name: j, pool: p, command: '{command}'}}\n")
    daemons = [Daemon(args.binary, folder, config, name) for name in "ab"]
    daemons[0].ask("POST", "/pools/p/pause", {})
    for _ in range(args.hand_over):
        for daemon in daemons:
            daemon.ask("POST", "/jobs/j/start", {})
    daemons[0].ask("POST", "/pools/p/resume", {})
    until(lambda: len(lines(ran)) >= 2 * args.hand_over, 300, "all have run", 0.05)
    done = sorted(lines(ran), key=lambda line: float(line[1]))
    waits = [1000 * (float(after[1]) - float(before[2])) for before, after in zip(done, done[1:]) if before[0] != after[0]]
    own = [1000 * (float(after[1]) - float(before[2])) for before, after in zip(done, done[1:]) if before[0] == after[0]]
    waits.sort()
    for daemon in daemons:
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait()
    print(json.dumps({"bench": "hand_over", "hand_overs": len(waits), "own": len(own),
                      "p50_ms": round(waits[len(waits) // 2], 1), "p99_ms": round(waits[int(len(waits) * 0.99) - 1], 1),
                      "max_ms": round(waits[-1], 1), "folder": folder}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--daemons", type=int, default=2)
    parser.add_argument("--sleep", type=float, default=0)
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--hand-over", type=int, default=0)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="ductor-two-")
    if args.hand_over:
        return hand_over(args, folder)
    ran, config = os.path.join(folder, "ran"), os.path.join(folder, "ductor.yaml")
    nap = f"; sleep {args.sleep}" if args.sleep else ""
    # The instant costs a process, so it is written only where it is asked for.
    when = "$(date +%s.%N)" if args.kill else "-"
    command = f"echo $DUCTOR_JOB_NAME $DUCTOR_NODE $DUCTOR_FENCE $DUCTOR_SCHEDULED_AT {when} >> {ran}{nap}"
    with open(config, "w") as file:
        file.write(f"pools:\n  p: {{slots: {args.slots}, maxQueued: 10000}}\n")
        file.write("jobs:\n")
        for number in range(args.jobs):
            file.write(f"  - {{name: j{number}, pool: p, schedule: '@every {args.every}s', command: '{command}'}}\n")
    daemons = [Daemon(args.binary, folder, config, name) for name in "abcdefgh"[:args.daemons]]
    first = daemons[0]
    first.ask("POST", "/pools/p/pause", {})

    def queued():
        return json.loads(first.ask("GET", "/pools/p?entries=none"))["queued"]

    until(lambda: queued() >= args.jobs, args.every + 60, "all have fired", 0.1)
    began = time.time()
    first.ask("POST", "/pools/p/resume", {})
    killed_at, victim = None, None
    if args.kill:
        until(lambda: len(lines(ran)) >= args.jobs // 3, 300, "a third of the work is done")
        victim = daemons.pop()
        before = {line[2] for line in lines(ran)}
        victim.process.send_signal(signal.SIGKILL)
        victim.process.wait()
        killed_at = time.time()
    left = daemons[0]
    until(lambda: len({line[0] for line in lines(ran)}) >= args.jobs, 600, "all have run")

    def used():
        pool = json.loads(left.ask("GET", "/pools/p?entries=none"))
        return pool["used"] + pool["queued"]

    until(lambda: used() == 0, 120, "all have ended", 0.02)
    took = time.time() - began
    done = lines(ran)
    of_job = collections.Counter(line[0] for line in done)
    again = [line for line in done if of_job[line[0]] > 1]
    result = {
        "bench": "two_daemons", "daemons": args.daemons, "jobs": args.jobs, "slots": args.slots,
        "ran": len(of_job), "executions": len(done), "twice": sum(1 for count in of_job.values() if count > 1),
        "share": dict(collections.Counter(line[1] for line in done)),
        "jobs_per_s": round(args.jobs / took, 1), "took_s": round(took, 3),
        "distinct_fences": len({line[2] for line in done}),
    }
    if args.kill:
        others = sorted(float(line[4]) for line in done if line[2] not in before and line[1] != victim.name)
        seconds = collections.defaultdict(list)
        for line in again:
            seconds[line[0]].append(line)
        repeats = [float(sorted(runs, key=lambda run: int(run[2]))[-1][4]) for runs in seconds.values()]
        result["killed"] = victim.name
        result["first_other_after_kill_s"] = round(others[0] - killed_at, 3) if others else None
        result["last_rerun_after_kill_s"] = round(max(repeats) - killed_at, 3) if repeats else None
    for daemon in daemons:
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait()
    doctor = subprocess.run([args.binary, "doctor", "--store", "--config", config], capture_output=True, text=True,
                            env={**os.environ, "DUCTOR_STATE_DIR": os.path.join(folder, "state")})
    result["store"] = [line for line in doctor.stdout.splitlines() if " store:" in line]
    result["folder"] = folder
    print(json.dumps(result))
    return None


main()
