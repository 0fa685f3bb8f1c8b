#!/usr/bin/env python3
"""Writes a small CSV as an export of a warehouse would: into a new file first, then in place of the old one.

It may be run again after a crash: the fence in the file name keeps two copies apart, and the newest wins.
"""
import csv
import os
import pathlib
import time

folder = pathlib.Path("exported")
folder.mkdir(exist_ok=True)
fence = os.environ.get("DUCTOR_FENCE", "0")
part = folder / f"part-{fence}.csv"

with part.open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["id", "square", "run"])
    for number in range(1000):
        rows.writerow([number, number * number, os.environ.get("DUCTOR_RUN_ID", "by hand")])
        if number % 250 == 0:
            print(f"{number} rows", flush=True)
            time.sleep(0.5)

part.replace(folder / "latest.csv")
print("1000 rows exported", flush=True)
