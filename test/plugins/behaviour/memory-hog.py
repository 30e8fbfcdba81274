"""Takes and touches memory, one MiB after the other: `memory-hog.py [MIB]`, 1024 unless given.

It must be ended before it gets there: it exits 3 if nothing stopped it.
"""

import sys

MIB = 1 << 20
wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
held = []
for count in range(1, wanted + 1):
    held.append(bytearray(b"x" * MIB))
    if count % 32 == 0:
        print(f"holding {count} MiB", flush=True)
print("nothing stopped me")
sys.exit(3)
