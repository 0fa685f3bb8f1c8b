#!/usr/bin/env python3
"""Decisions under load. Prints one JSON document a line.

  routing.py DUCTOR [--only callers,race,replays] [--seconds 10] [--callers 64] [--recipients 100] [--races 10000]
             [--decisions 10000] [--seed 1]

  callers  one caller after the other (each decision is a commit of its own), then 64 at the same time: decisions a second,
           p50 and p99 of each, and how many times as many the second gives
  race     two clients race for a recipient's last slot, 10,000 times: how often somebody was above capacity
  replays  10,000 random decisions by every strategy that the daemon knows, with ends of work among them, each replayed
           from what it was made from: how many differ, and what came of them

The daemon is started on a state directory of its own and ended by its process id; the client is this file: keep-alive
connections, no library.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part / 100))] if values else None


def spread(seconds):
    ms = lambda value: None if value is None else round(value * 1e3, 2)
    return {"p50_ms": ms(percentile(seconds, 50)), "p99_ms": ms(percentile(seconds, 99)), "max_ms": ms(max(seconds))}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Daemon:
    def __init__(self, ductor):
        self.folder = tempfile.mkdtemp(prefix="ductor-routing-")
        self.port = free_port()
        config = os.path.join(self.folder, "ductor.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("jobs: []\n")
        state = os.path.join(self.folder, "state")
        command = [ductor, "serve", "--config", config, "--state-dir", state, "--listen", f"127.0.0.1:{self.port}"]
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=1):
                    return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.end()
                    raise SystemExit("the daemon did not become ready")
                time.sleep(0.05)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Connection:
    """One keep-alive connection."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def ask(self, method, path, body=None):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/json\r\n"
        self.writer.write(f"{head}content-length: {len(text)}\r\n\r\n".encode() + text)
        status = int((await self.reader.readline()).split()[1])
        length = 0
        while (line := await self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                length = int(value)
        answer = await self.reader.readexactly(length)
        return status, json.loads(answer) if answer else None

    async def must(self, method, path, body=None):
        status, answer = await self.ask(method, path, body)
        if status not in (200, 201):
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return answer["data"]

    def close(self):
        if self.writer is not None:
            self.writer.close()


async def pool(connection, name, members, most, fallback="queue"):
    made = await connection.must("POST", "/api/pools", {"name": name, "config": {"fallback": fallback}})
    ids = []
    for number in range(members):
        body = {"name": f"{name}-{number}", "capacity": {"max_concurrent": most}}
        ids.append((await connection.must("POST", f"/api/pools/{made['id']}/recipients", body))["id"])
    return made["id"], ids


async def decide(port, body, until, taken):
    connection = Connection(port)
    while time.perf_counter() < until:
        began = time.perf_counter()
        data = await connection.must("POST", "/api/route", body)
        taken.append(time.perf_counter() - began)
        if data["outcome"] != "assigned":
            raise SystemExit(f"not assigned: {data['outcome']}: {data['summary']}")
    connection.close()


async def callers(port, arguments):
    connection = Connection(port)
    of, _ = await pool(connection, "load", arguments.recipients, 1_000_000)
    connection.close()
    body = {"work": {"kind": "ticket"}, "pool_id": of, "explain": "winners"}
    rates = {}
    for count in (1, arguments.callers):
        taken = []
        began = time.perf_counter()
        until = began + arguments.seconds
        await asyncio.gather(*(decide(port, body, until, taken) for _ in range(count)))
        rate = len(taken) / (time.perf_counter() - began)
        rates[count] = rate
        print(json.dumps({"what": "callers", "callers": count, "recipients": arguments.recipients,
                          "decisions_per_s": round(rate, 1), **spread(taken)}), flush=True)
    ratio = rates[arguments.callers] / rates[1]
    print(json.dumps({"what": "callers", "ratio_to_one_commit_per_decision": round(ratio, 2)}), flush=True)


async def race(port, arguments):
    one, two = Connection(port), Connection(port)
    of, ids = await pool(one, "race", 1, 1, "drop")
    body = {"work": {"kind": "ticket"}, "pool_id": of, "explain": "winners"}
    above, both, none = 0, 0, 0
    for _ in range(arguments.races):
        answers = await asyncio.gather(one.must("POST", "/api/route", body), two.must("POST", "/api/route", body))
        won = [answer for answer in answers if answer["outcome"] == "assigned"]
        both += len(won) == 2
        none += not won
        shown = await one.must("GET", f"/api/recipients/{ids[0]}?view=effective")
        above += shown["capacity"]["current"] > 1
        for answer in won:
            await one.must("POST", f"/api/assignments/{answer['winners'][0]['assignment_id']}:complete", {})
    print(json.dumps({"what": "race", "races": arguments.races, "above_capacity": above, "both_won": both,
                      "nobody_won": none}), flush=True)
    return 1 if above or both or none else 0


def shares(names):
    """Basis points, 10,000 in all."""
    each = {name: 10_000 // len(names) for name in names}
    each[names[0]] += 10_000 % len(names)
    return each


OPTIONS = {
    "sticky": lambda names: {"key": "work.attributes.customer"},
    "percentage_split": lambda names: {"shares": shares(names)},
    "quota_pacing": lambda names: {"quota": 50},
}


async def strategy_pool(connection, chance, key):
    """A pool of one strategy, with some members of every kind and a rule that takes some of them out."""
    names = [f"{key}-{number}" for number in range(chance.randint(1, 4) * 2)]
    body = {"name": f"of {key}", "strategy": key, "config": {"fallback": chance.choice(["queue", "drop"])}}
    if key in OPTIONS:
        body["config"]["strategy_options"] = {key: OPTIONS[key](names)}
    made = await connection.must("POST", "/api/pools", body)
    for name in names:
        await connection.must("POST", f"/api/pools/{made['id']}/recipients", {
            "name": name, "weight": chance.randint(1, 5), "capacity": {"max_concurrent": chance.randint(1, 6)},
            "attributes": {name: {"number_value": chance.randint(1, most)}
                           for name, most in (("level", 5), ("tier", 3), ("price", 90))},
            "location": {"latitude": chance.uniform(-60, 60), "longitude": chance.uniform(-170, 170)},
        })
    await connection.must("POST", "/api/rules", {
        "name": f"level of {key}", "pool_id": made["id"], "action": {"type": "filter"},
        "expression": "recipient.attributes.level >= work.attributes.level",
    })
    return made["id"]


async def replays(port, arguments):
    chance, connection = random.Random(arguments.seed), Connection(port)
    strategies = [one["key"] for one in await connection.must("GET", "/api/strategies")]
    pools = {key: await strategy_pool(connection, chance, key) for key in strategies}
    outcomes, decided, open_work = {}, [], []
    for number in range(arguments.decisions):
        key = strategies[number % len(strategies)]
        work = {
            "kind": chance.choice(["ticket", "lead"]), "priority": chance.randint(0, 9), "units": chance.randint(1, 2),
            "attributes": {"level": chance.randint(1, 4), "customer": f"c{chance.randint(1, 30)}"},
            "location": {"latitude": chance.uniform(-60, 60), "longitude": chance.uniform(-170, 170)},
        }
        data = await connection.must("POST", "/api/route", {"work": work, "pool_id": pools[key]})
        outcomes[data["outcome"]] = outcomes.get(data["outcome"], 0) + 1
        decided.append((key, data["id"]))
        open_work += [winner["assignment_id"] for winner in data["winners"]]
        while open_work and chance.random() < 0.6:
            ended = open_work.pop(chance.randrange(len(open_work)))
            await connection.ask("POST", f"/api/assignments/{ended}:complete", {"value": round(chance.random(), 3)})
    different = {}
    for key, id in decided:
        replayed = await connection.must("POST", f"/api/decisions/{id}:replay", {})
        if not replayed["identical"]:
            different.setdefault(key, []).append(id)
    print(json.dumps({"what": "replays", "strategies": len(strategies), "decisions": len(decided), "outcomes": outcomes,
                      "different": sum(map(len, different.values())), "of": different}), flush=True)
    connection.close()
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ductor")
    parser.add_argument("--only", default="callers,race")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--recipients", type=int, default=100)
    parser.add_argument("--races", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = 0
    for what in arguments.only.split(","):
        daemon = Daemon(arguments.ductor)
        try:
            work = {"callers": callers, "race": race, "replays": replays}[what]
            failed |= asyncio.run(work(daemon.port, arguments)) or 0
        finally:
            daemon.end()
    return failed


if __name__ == "__main__":
    sys.exit(main())
