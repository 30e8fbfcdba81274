"""Starts children until the process limit stops it: `fork-bomb.py [MOST]`, 500 unless given, so that it stays light.

Says how many it got and why it stopped; exits 0 only if a fork was refused.
"""

import errno
import os
import signal
import sys

most = int(sys.argv[1]) if len(sys.argv) > 1 else 500
children = []
refusal = None
while len(children) < most and refusal is None:
    try:
        child = os.fork()
    except OSError as error:
        refusal = errno.errorcode[error.errno]
        break
    if child == 0:
        signal.pause()
    children.append(child)
print(f"children: {len(children)}, refused: {refusal}", flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
sys.exit(0 if refusal else 1)
