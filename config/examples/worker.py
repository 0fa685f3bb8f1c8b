#!/usr/bin/env python3
"""A worker in Python: claims the tasks of one queue and says how they ended, ten in one request.

    python3 worker.py http://127.0.0.1:8470 images

Write a function for each `task` of your workflows into HANDLERS. It needs no library.
"""
import json
import os
import socket
import sys
import threading
import time
import urllib.request

URL, QUEUE = sys.argv[1].rstrip("/"), sys.argv[2]
WORKER = f"{socket.gethostname()}-{os.getpid()}"
HANDLERS = {"double": lambda task: {"doubled": task["input"]["number"] * 2}, "fail": lambda task: 1 / 0}


def post(path, body):
    request = urllib.request.Request(f"{URL}/api/bridge/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]


def beat(tasks, over):
    """A sign of life for each task, until all of them are done."""
    while not over.wait(10):
        for task in tasks:
            try:
                post(f"tasks/{task['token']}:heartbeat", {})
            except OSError as error:
                print(f"{task['step']}: {error}", file=sys.stderr)


def work(task):
    try:
        return {"token": task["token"], "output": HANDLERS[task["task"]](task)}
    except Exception as error:  # whatever it is, the workflow decides what follows
        return {"token": task["token"], "error": {"code": type(error).__name__, "message": str(error)}}


items = []
while True:
    try:
        # What is done goes in and what is next comes out, in one request.
        answer = post("complete-batch", {"items": items, "poll": {"queue": QUEUE, "worker": WORKER, "max": 10, "wait_ms": 20000}})
    except OSError as error:  # what is refused is not said again, what did not arrive is
        print(f"trying again: {error}", file=sys.stderr)
        items = items if getattr(error, "code", 500) >= 500 else []
        time.sleep(1)
        continue
    over = threading.Event()
    threading.Thread(target=beat, args=(answer["tasks"], over), daemon=True).start()
    items = [work(task) for task in answer["tasks"]]
    over.set()
