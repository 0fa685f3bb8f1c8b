#!/usr/bin/env python3
"""Runs of workflows under load, beside the least that any engine on this store must do. Prints one JSON document a line.

  workflows.py DUCTOR [--floor FLOOR] [--only chain,remote,idle,...] [--reps 3]

FLOOR is a program that does the same workloads over the same store with nothing around them (`FLOOR DIR PORT`); what it
does in the same minute, under the same client, is what the figures are divided by. The client and the workers are this
file too: one process of Python each, keep-alive connections, no library.

  chain    W1: 2,000 runs of three computed steps, 64 in flight; W2: 200 of them, one after the other; W3: 20 runs of one
           step, 100 branches and a gather
  remote   the same with a worker that takes tasks in batches over the bridge
  steady   half of the best rate of W1 for a minute, in an open loop: how long the slowest wait
  idle     1,000 schedules and 10,000 sleeping runs: memory and CPU
  kept     20,000 runs: memory, disk for each kept run
  start    from the start of the process to the first completed run; with `--big` beside 1,000,000 kept and 100,000 open runs
  timers   1,000 timers due each second, among 10,000 (`--big`: 1,000,000) that wait: memory, lateness
  long     a run of 100,000 steps: what the last thousand cost beside the first
  fair     100 keys, one of which floods: how long the others wait
  kills    `kill -9` at random moments, 200 times, while runs begin and a worker answers (`--seed`): what was acknowledged and is
           not there afterwards, what was done and is recorded twice
"""

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TICK = os.sysconf("SC_CLK_TCK")
FAN = 100


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part / 100))] if values else None


def ms(seconds):
    return None if seconds is None else round(seconds * 1e3, 2)


def spread(seconds):
    return {"p50_ms": ms(percentile(seconds, 50)), "p99_ms": ms(percentile(seconds, 99)), "max_ms": ms(max(seconds))}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return round(int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024, 1)


def probe(folder, seconds=0.7):
    """What the disk gives at this moment: appends of 4 KiB with one fdatasync each."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            os.write(file.fileno(), b"x" * 4096)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - begun)
    return percentile(taken, 50)


class Wire(asyncio.Protocol):
    """A keep-alive connection that carries one request after the other."""

    def __init__(self, port):
        self.host, self.buffer, self.waiting, self.length, self.status = f"127.0.0.1:{port}", b"", None, None, None

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, _):
        if self.waiting and not self.waiting.done():
            self.waiting.set_exception(ConnectionError("the connection was closed"))

    def data_received(self, data):
        self.buffer += data
        if self.length is None:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            self.status = int(head[9:12])
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            self.length, self.buffer = int(length[1]) if length else 0, rest
        if len(self.buffer) >= self.length:
            body, self.buffer = self.buffer[: self.length], self.buffer[self.length :]
            self.length = None
            waiting, self.waiting = self.waiting, None
            waiting.set_result((self.status, body))

    def ask(self, path, body=b"", more=""):
        if self.transport.is_closing():
            raise ConnectionError("the connection was closed")
        self.waiting = asyncio.get_running_loop().create_future()
        head = f"POST {path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: application/json\r\n{more}content-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        return self.waiting


async def wire(port):
    _, protocol = await asyncio.get_running_loop().create_connection(lambda: Wire(port), "127.0.0.1", port)
    return protocol


class Server:
    """A process that is measured."""

    def __init__(self, name, command, port):
        self.name, self.port = name, port
        begun = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open("/dev/stderr", "w"))
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            if self.process.poll() is not None or time.monotonic() - begun > 300:
                sys.exit(f"{name} did not start")
            time.sleep(0.002)
        self.start_s = time.monotonic() - begun

    def cpu(self):
        return cpu_of(self.process.pid)

    def rss(self):
        return rss_of(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.process.kill()
        self.process.wait()


class Floor(Server):
    def __init__(self, binary, folder):
        port = free_port()
        super().__init__("floor", [binary, folder, str(port)], port)
        self.requests = {"chain": ("/seq3", b""), "fan": ("/fan", b""), "remote": ("/rseq3", b"")}

    def commits(self):
        return None


def computed(ref):
    return {"ref": ref, "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"x": "1"}}}


def task(ref, queue="work"):
    return {"ref": ref, "type": "STEP_TYPE_TASK", "args": {"queue": queue, "task": "noop", "input": "1"}}


def edges(*refs):
    return [{"source_ref": one, "target_ref": two} for one, two in zip(refs, refs[1:])]


def fan_of(body):
    return [computed("first"),
            {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": f"lists.range({FAN})", "body": body}},
            {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}]


class Ductor(Server):
    def __init__(self, binary, folder, config="", state=None, port=None):
        port, self.folder = port or free_port(), folder
        path = os.path.join(folder, "ductor.yaml")
        with open(path, "w") as file:
            file.write(config or "jobs: []\n")
        self.state = state or os.path.join(folder, "state")
        command = [binary, "serve", "--config", path, "--state-dir", self.state, "--listen", f"127.0.0.1:{port}", "--log", "warn"]
        super().__init__("ductor", command, port)
        waited = json.dumps({"input": None, "wait": 60}).encode()
        self.requests = {name: (f"/api/workflows/{name}/runs", waited) for name in ("chain", "fan", "remote", "remote-fan")}

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method,
                                         headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.code} {error.read().decode()}")

    def publish(self, slug, steps, between=(), **more):
        document = {"family_slug": slug, "steps": steps, "edges": list(between), **more}
        self.ask("POST", "/api/workflows", document)
        self.ask("POST", f"/api/workflows/{slug}:publish")

    def publish_all(self):
        self.publish("chain", [computed(ref) for ref in "abc"], edges(*"abc"))
        self.publish("fan", fan_of(computed("one")), edges("first", "each", "all"))
        self.publish("remote", [task(ref) for ref in "abc"], edges(*"abc"))
        self.publish("remote-fan", fan_of(task("one")), edges("first", "each", "all"))

    def metric(self, name):
        text = self.ask("GET", "/metrics").decode()
        found = re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)", text, re.MULTILINE)
        return sum(float(value) for value in found)

    def commits(self):
        return self.metric("ductor_store_commit_seconds_count")


async def load(server, path, body, count, in_flight, ends=True):
    """So many requests, so many of them at a time: how long each took."""
    wires = [await wire(server.port) for _ in range(in_flight)]
    left, taken = iter(range(count)), []

    async def one(connection):
        for _ in left:
            begun = time.perf_counter()
            status, answer = await connection.ask(path, body)
            taken.append(time.perf_counter() - begun)
            if status not in (200, 201) or (ends and answer[:1] == b"{" and b'"succeeded"' not in answer):
                sys.exit(f"{server.name} {path}: {status} {answer[:300]}")

    begun = time.perf_counter()
    await asyncio.gather(*(one(connection) for connection in wires))
    whole = time.perf_counter() - begun
    for connection in wires:
        connection.transport.close()
    return whole, taken


def measure(server, what, name, count, in_flight, folder):
    disk, cpu, commits = probe(folder), server.cpu(), server.commits()
    path, body = server.requests[name]
    whole, taken = asyncio.run(load(server, path, body, count, in_flight))
    found = {"server": server.name, "what": what, "runs": count, "in_flight": in_flight, "runs_per_s": round(count / whole, 1),
             **spread(taken), "cpu_ms_per_run": round((server.cpu() - cpu) * 1e3 / count, 3), "rss_mib": server.rss(),
             "probe_sync_ms": ms(disk), "load1": os.getloadavg()[0]}
    if commits is not None:
        found["commits_per_run"] = round((server.commits() - commits) / count, 3)
    tell(found)
    return found


def tell(found):
    print(json.dumps(found), flush=True)


# --- workers -----------------------------------------------------------------------------------------------------------

async def work_for_ductor(port, queue, most):
    connection, items = await wire(port), []
    while True:
        asked = {"items": items, "poll": {"queue": queue, "worker": f"w-{os.getpid()}", "max": most, "wait_ms": 20000}}
        status, answer = await connection.ask("/api/bridge/complete-batch", json.dumps(asked).encode())
        if status != 200:
            sys.exit(f"worker: {status} {answer[:300]}")
        tasks = json.loads(answer)["data"]["tasks"]
        items = [{"token": each["token"], "output": 1} for each in tasks]


async def work_for_floor(port):
    connection, done = await wire(port), b""
    while True:
        _, done = await connection.ask("/work", done)


async def work(kind, port, loops):
    each = (work_for_floor(port) if kind == "floor" else work_for_ductor(port, "work", 64) for _ in range(loops))
    with contextlib.suppress(ConnectionError):
        await asyncio.gather(*each)


@contextlib.contextmanager
def worker(kind, port, loops=4):
    process = subprocess.Popen([sys.executable, __file__, "worker", kind, str(port), str(loops)])
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


# --- what is measured --------------------------------------------------------------------------------------------------

def chain(args, folder):
    """b1, b3, b4, c1, a2: in the engine."""
    for server in servers(args, folder):
        measure(server, "warm", "chain", 300, 16, folder)
        for _ in range(args.reps):
            measure(server, "W2", "chain", 200, 1, folder)
            measure(server, "W1", "chain", 2000, 64, folder)
            measure(server, "W3", "fan", 20, 1, folder)
        measure(server, "W1x10", "chain", 20000, 64, folder)


def remote(args, folder):
    """b2, b3, b4, c1, a2, a3: with a worker."""
    for server in servers(args, folder):
        with worker(server.name, server.port):
            measure(server, "warm-remote", "remote", 300, 16, folder)
            for _ in range(args.reps):
                measure(server, "W2-remote", "remote", 200, 1, folder)
                measure(server, "W1-remote", "remote", 2000, 64, folder)
                if server.name == "ductor":
                    measure(server, "W3-remote", "remote-fan", 20, 1, folder)


def servers(args, folder):
    """The floor first, then ductor, each alone."""
    for kind in ["floor", "ductor"]:
        if kind == "floor" and not args.floor:
            continue
        own = tempfile.mkdtemp(dir=folder)
        server = Floor(args.floor, own) if kind == "floor" else Ductor(args.binary, own)
        try:
            if kind == "ductor":
                server.publish_all()
            yield server
        finally:
            server.stop()
            shutil.rmtree(own, ignore_errors=True)


async def open_loop(port, path, body, rate, seconds, connections=256):
    """So many requests a second, whether or not the others were answered: from when each was due until its answer."""
    idle, taken = asyncio.Queue(), []
    for _ in range(connections):
        idle.put_nowait(await wire(port))
    begun, tasks = time.perf_counter(), set()

    async def one(due, connection):
        status, answer = await connection.ask(path, body)
        taken.append(time.perf_counter() - due)
        idle.put_nowait(connection)
        if status != 201:
            sys.exit(f"{path}: {status} {answer[:300]}")

    for number in range(int(rate * seconds)):
        due = begun + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        doing = asyncio.create_task(one(due, await idle.get()))
        tasks.add(doing)
        doing.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return taken


def steady(args, folder):
    """b5, with runs going as fast as they come: only 2,000 are kept."""
    with ductor(args, folder, "retention: {runs: 2000}\njobs: []\n") as server:
        measure(server, "warm", "chain", 300, 16, folder)
        rate = measure(server, "W1", "chain", 4000, 64, folder)["runs_per_s"] / 2
        disk, (path, body) = probe(folder), server.requests["chain"]
        taken = asyncio.run(open_loop(server.port, path, body, rate, args.seconds))
        file = os.path.getsize(os.path.join(server.state, "ductor.redb"))
        tell({"server": "ductor", "what": "steady", "rate_per_s": round(rate), "seconds": args.seconds, **spread(taken),
              "p99_against_sync": round(percentile(taken, 99) / disk, 1), "probe_sync_ms": ms(disk), "rss_mib": server.rss(),
              "file_mib": round(file / 2**20, 1)})


def starts(server, slug, many, value=None, in_flight=64):
    asyncio.run(load(server, f"/api/workflows/{slug}/runs", json.dumps({"input": value}).encode(), many, in_flight, ends=False))


def idle(args, folder):
    """c2."""
    jobs = "".join(f"  - {{name: j{n}, command: 'true', schedule: '{n % 60} {n % 24} 1 1 *'}}\n" for n in range(1000))
    with ductor(args, folder, f"jobs:\n{jobs}") as server:
        server.publish("sleep", [{"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "20d"}}])
        loaded = server.rss()
        starts(server, "sleep", 10_000)
    with ductor(args, folder, f"jobs:\n{jobs}", server.state) as server:
        time.sleep(5)
        cpu, begun = server.cpu(), time.monotonic()
        time.sleep(30)
        tell({"server": "ductor", "what": "idle", "schedules": 1000, "sleeping": 10_000, "rss_mib": server.rss(),
              "rss_before_load_mib": loaded, "cpu_percent": round((server.cpu() - cpu) / (time.monotonic() - begun) * 100, 2)})
    drop(server)


def kept(args, folder):
    """c3, c5."""
    with ductor(args, folder) as server:
        before = os.path.getsize(os.path.join(server.state, "ductor.redb"))
        measure(server, "W1x10", "chain", 20_000, 64, folder)
        grown = os.path.getsize(os.path.join(server.state, "ductor.redb")) - before
        live = server.metric("ductor_store_live_bytes") if args.big else None
        tell({"server": "ductor", "what": "kept", "runs": 20_000, "rss_mib": server.rss(),
              "file_bytes_per_run": round(grown / 20_000), "live_bytes": live})


def start(args, folder):
    """c4, c6."""
    binary = os.path.getsize(args.binary)
    state = None
    for kept_runs, open_runs in [(0, 0)] + ([(1_000_000, 100_000)] if args.big else [(20_000, 10_000)]):
        with ductor(args, folder, "retention: {runs: 1000000}\njobs: []\n") as server:
            server.publish("sleep", [{"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "20d"}}])
            if kept_runs:
                starts(server, "chain", kept_runs)
                starts(server, "sleep", open_runs)
        state = server.state
        size = os.path.getsize(os.path.join(state, "ductor.redb"))
        begun = time.monotonic()
        with ductor(args, folder, "retention: {runs: 1000000}\njobs: []\n", state) as server:
            path, body = server.requests["chain"]
            asyncio.run(load(server, path, body, 1, 1))
            tell({"server": "ductor", "what": "start", "kept": kept_runs, "open": open_runs, "binary_mb": round(binary / 1e6, 1),
                  "file_mib": round(size / 2**20),
                  "first_completed_s": round(time.monotonic() - begun, 3), "rss_mib": server.rss()})
        drop(server)


def timers(args, folder):
    """d2: how late a wait ends, told by the run itself: from when it was due until its end was written."""
    many = 1_000_000 if args.big else 10_000
    with ductor(args, folder, "retention: {runs: 100000}\njobs: []\n") as server:
        server.publish("sleep", [{"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "20d"}}])
        server.publish("due", [{"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"until": "timestamp(input)"}}])
        starts(server, "sleep", many)
        first, per_second, seconds = time.time() + 20, 1000, 10
        instants = [first + number / per_second for number in range(per_second * seconds)]
        stamps = [time.strftime("%FT%T", time.gmtime(at)) + f".{int(at % 1 * 1000):03}Z" for at in instants]
        bodies = [json.dumps({"input": stamp}).encode() for stamp in stamps]
        begun = asyncio.run(each_of(server.port, "/api/workflows/due/runs", bodies))
        if time.time() > first:
            sys.exit("the runs were not begun in time")
        cpu = server.cpu()
        time.sleep(max(0, first + seconds + 2 - time.time()))
        spent = server.cpu() - cpu
        late = [milliseconds(show(server, run)["ended_at"]) - milliseconds(json.loads(body)["input"]) for run, body in begun[::5]]
        tell({"server": "ductor", "what": "timers", "waiting": many, "due_per_s": per_second, "rss_mib": server.rss(),
              "late_p50_ms": percentile(late, 50), "late_p99_ms": percentile(late, 99), "late_max_ms": max(late),
              "cpu_percent": round(spent / seconds * 100, 1)})


async def each_of(port, path, bodies, in_flight=64):
    """Begins a run with each body: its id, and the body."""
    wires, left, begun = [await wire(port) for _ in range(in_flight)], iter(bodies), []

    async def some(connection):
        for body in left:
            status, answer = await connection.ask(path, body)
            if status != 201:
                sys.exit(f"{path}: {status} {answer[:300]}")
            begun.append((json.loads(answer)["data"]["id"], body))

    await asyncio.gather(*(some(connection) for connection in wires))
    return begun


def show(server, run):
    return json.loads(server.ask("GET", f"/api/runs/{run}"))["data"]


def show_or_none(server, run):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/api/runs/{run}", timeout=60) as answer:
            return json.loads(answer.read())["data"]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def milliseconds(stamp):
    return round(datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)


def long(args, folder):
    """d3: 100,000 branches of one run by a worker, at most 1,000 open."""
    many = 100_000 if args.big else 20_000
    with ductor(args, folder) as server:
        server.publish("long", [{"ref": "each", "type": "STEP_TYPE_SCATTER",
                                 "args": {"items": "input", "body": task("one"), "max_parallel": 256}}])
        run = json.loads(server.ask("POST", "/api/workflows/long/runs", {"input": list(range(many))}))["data"]["id"]
        parts = asyncio.run(drain(server, many))
        state = show(server, run)["state"]
        first, last = parts[1], parts[-2]
        tell({"server": "ductor", "what": "long", "steps": many, "state": state, "cpu_ms_per_step_first": round(first, 3),
              "cpu_ms_per_step_last": round(last, 3), "last_to_first": round(last / first, 2), "rss_mib": server.rss()})


async def drain(server, many, queue="work"):
    """Does all tasks of a queue; the CPU of the server for each, in twenty parts."""
    connection, items, done, parts, cpu, at = await wire(server.port), [], 0, [], server.cpu(), 0
    while done < many:
        asked = {"items": items, "poll": {"queue": queue, "worker": "w", "max": 64, "wait_ms": 2000}}
        status, answer = await connection.ask("/api/bridge/complete-batch", json.dumps(asked).encode())
        done += len(items)
        items = [{"token": each["token"], "output": 1} for each in json.loads(answer)["data"]["tasks"]]
        if done - at >= many // 20 or done == many:
            parts.append((server.cpu() - cpu) * 1e3 / (done - at))
            cpu, at = server.cpu(), done
    return parts


def fair(args, folder):
    """d4: 99 shares with ten tasks each, alone and beside one with 100,000 (a tenth without --big): tasks taken before theirs."""
    flood = 100_000 if args.big else 10_000
    found = {}
    for what, many in [("alone", 0), ("beside", flood)]:
        with ductor(args, folder) as server:
            server.publish("share", [task("one")], fairness={"key": "input.key"})
            starts(server, "share", many, {"key": "flood"})
            begun = time.monotonic()
            for number in range(99):
                starts(server, "share", 10, {"key": f"k{number}"}, 10)
            enqueued = time.monotonic() - begun
            found[what] = asyncio.run(waits(server, 990, enqueued))
    tell({"server": "ductor", "what": "fair", "flood": flood, "p99_alone_ms": ms(found["alone"]), "p99_beside_ms": ms(found["beside"]),
          "ratio": round(found["beside"] / found["alone"], 2)})


async def waits(server, many, _):
    """Serves the queue with one worker until the small shares are done: how long the slowest of them waited."""
    connection, items, waited, begun = await wire(server.port), [], [], time.perf_counter()
    while len(waited) < many:
        asked = {"items": items, "poll": {"queue": "work", "worker": "w", "max": 10, "wait_ms": 2000}}
        _, answer = await connection.ask("/api/bridge/complete-batch", json.dumps(asked).encode())
        tasks = json.loads(answer)["data"]["tasks"]
        small = [each for each in tasks if each["input"] != "flood"]
        waited += [time.perf_counter() - begun] * len(small)
        items = [{"token": each["token"], "output": 1} for each in tasks]
    return percentile(waited, 99)


@contextlib.contextmanager
def ductor(args, folder, config="", state=None):
    """A daemon with the workflows of this file; over the state of another one if that is given."""
    server = Ductor(args.binary, tempfile.mkdtemp(dir=folder), config, state)
    try:
        if state is None:
            server.publish_all()
        yield server
    finally:
        server.stop()


def drop(server):
    shutil.rmtree(server.state, ignore_errors=True)


class Loss:
    """What 200 kills may lose: every acknowledged start, by its key, and every answer of the worker that was taken."""

    def __init__(self, server):
        self.server, self.runs, self.taken, self.asked, self.over = server, {}, 0, 0, False

    async def insist(self, connection, path, body, head=""):
        """Asks until there is an answer: the daemon may be gone, and the answer lost."""
        while True:
            try:
                connection = connection or await wire(self.server.port)
                return connection, *await connection.ask(path, body, head)
            except OSError:
                connection = None
                await asyncio.sleep(0.01)

    async def begin(self, number, slug):
        connection, turn = None, 0
        while not self.over:
            key = f"{slug}-{number}-{turn}"
            turn, self.asked = turn + 1, self.asked + 1
            path = f"/api/workflows/{slug}/runs"
            connection, status, answer = await self.insist(connection, path, b'{"input": null}', f"idempotency-key: {key}\r\n")
            if status == 201:
                self.runs[key] = json.loads(answer)["data"]["id"]
            elif status not in (409, 503):
                sys.exit(f"{path}: {status} {answer[:300]}")
            await asyncio.sleep(0.02)

    async def serve(self):
        connection, items = None, []
        while True:
            asked = {"items": items, "poll": {"queue": "work", "worker": "w", "max": 64, "wait_ms": 1000}}
            connection, status, answer = await self.insist(connection, "/api/bridge/complete-batch", json.dumps(asked).encode())
            if status == 503:
                continue
            if status != 200:
                sys.exit(f"worker: {status} {answer[:300]}")
            self.taken += len(items)
            items = [{"token": each["token"], "output": 1} for each in json.loads(answer)["data"]["tasks"]]

    async def kill(self, args, folder, many, chance):
        for _ in range(many):
            await asyncio.sleep(chance.uniform(0.1, 0.8))
            self.server.process.kill()
            self.server.process.wait()
            self.server = await asyncio.to_thread(again, args, folder, self.server)
        self.over = True

    async def run(self, args, folder, many, chance):
        begins = [asyncio.create_task(self.begin(number, slug)) for number in range(8) for slug in ("chain", "remote")]
        workers = [asyncio.create_task(self.serve()) for _ in range(2)]
        await self.kill(args, folder, many, chance)
        await asyncio.gather(*begins)
        deadline = time.monotonic() + 120
        while open_runs(self.server) and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        for each in workers:
            each.cancel()


def again(args, folder, server):
    """The daemon once more, over the same files and at the same port."""
    return Ductor(args.binary, folder, "retention: {runs: 1000000}\njobs: []\n", server.state, server.port)


def open_runs(server):
    found = json.loads(server.ask("GET", "/api/runs?state=pending&state=running&pagination.page_size=1"))
    return found["data"]


def kills(args, folder):
    """d1: acknowledged facts that are lost, steps that are recorded twice."""
    many = args.kills
    chance = random.Random(args.seed)
    with ductor(args, folder, "retention: {runs: 1000000}\njobs: []\n") as server:
        loss = Loss(server)
        try:
            asyncio.run(loss.run(args, server.folder, many, chance))
            lost = twice = unended = recorded = 0
            for run in loss.runs.values():
                found = show_or_none(loss.server, run)
                lost += found is None
                unended += found is not None and found["state"] != "succeeded"
                for step in (found or {}).get("steps", []):
                    good = [each for each in step.get("attempts", []) if each["outcome"] == "succeeded"]
                    twice += len(good) > 1
                    recorded += len(good)
            known = len({*loss.runs.values()})
            rows = count_of(loss.server, "chain") + count_of(loss.server, "remote")
            tell({"server": "ductor", "what": "kills", "seed": args.seed, "kills": many, "acknowledged": known, "asked": loss.asked,
                  "answers_taken": loss.taken, "runs": rows, "lost": lost, "not_ended": unended, "recorded_once": recorded, "recorded_twice": twice,
                  "begun_twice": max(0, rows - loss.asked)})
        finally:
            loss.server.stop()
        checked = subprocess.run([args.binary, "doctor", "--store", "--config", os.path.join(server.folder, "ductor.yaml")],
                                 env={**os.environ, "DUCTOR_STATE_DIR": server.state}, capture_output=True, text=True)
        tell({"server": "ductor", "what": "kills", "doctor_exit": checked.returncode, "said": checked.stdout.splitlines()[-3:]})
        drop(server)


def count_of(server, slug):
    rows, cursor = 0, ""
    while True:
        page = json.loads(server.ask("GET", f"/api/runs?job={slug}&pagination.page_size=500{cursor}"))
        rows += len(page["data"])
        if "next_cursor" not in page["pagination"]:
            return rows
        cursor = "&pagination.cursor=" + page["pagination"]["next_cursor"]


PARTS = {"chain": chain, "remote": remote, "steady": steady, "idle": idle, "kept": kept, "start": start, "timers": timers,
         "long": long, "fair": fair, "kills": kills}


def main():
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--floor")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60, help="of the open loop")
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="of the kills")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        for part in args.only.split(","):
            PARTS[part](args, folder)


if __name__ == "__main__":
    main()
