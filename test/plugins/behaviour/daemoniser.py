"""Leaves a daemon behind and ends: `daemoniser.py MARK`. The daemon sleeps under the name MARK, holding the output open.

Double fork, a session of its own, signals ignored: whoever looks for MARK among the host's processes afterwards must
find nothing.
"""

import os
import signal
import sys

mark = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        os.execv("/bin/sleep", [mark, "1000"])
    os._exit(0)
os.wait()
print("daemon started", flush=True)
