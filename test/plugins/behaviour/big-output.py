"""Writes a known pattern: `big-output.py BYTES [stdout|stderr]`; byte number n has the value n % 251."""

import os
import sys

PATTERN = bytes(range(251)) * 256
left = int(sys.argv[1])
descriptor = 2 if "stderr" in sys.argv[2:] else 1
position = 0
while left > 0:
    start = position % 251
    written = os.write(descriptor, PATTERN[start : start + left])
    position += written
    left -= written
