"""Prints the environment that the process was started with, as it is: NAME=value, one a line, sorted."""

import sys

with open("/proc/self/environ", "rb") as file:
    entries = [entry for entry in file.read().split(b"\0") if entry]
sys.stdout.buffer.write(b"".join(entry + b"\n" for entry in sorted(entries)))
