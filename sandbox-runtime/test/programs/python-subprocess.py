"""Child processes: pipes, a shell, exit codes, signals, a timeout, a new session, changed directory and environment."""

import os
import signal
import subprocess
import sys

shouted = subprocess.run(["tr", "a-z", "A-Z"], input="piped", capture_output=True, text=True, check=True).stdout
words = subprocess.check_output("printf 'b\\na\\n' | sort | head -n 1", shell=True, text=True).strip()
code = subprocess.run([sys.executable, "-c", "raise SystemExit(7)"]).returncode
killed = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(killed.pid, signal.SIGTERM)
try:
    subprocess.run(["sleep", "60"], timeout=0.05)
    late = "no timeout"
except subprocess.TimeoutExpired:
    late = "timeout"
place = subprocess.check_output("echo $PWD $MARK", shell=True, cwd="/tmp", env={"MARK": "here"}, text=True).strip()
leader = subprocess.check_output([sys.executable, "-c", "import os; print(os.getpgrp() == os.getpid())"],
                                 preexec_fn=os.setpgrp, text=True).strip()
spawned = os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)[1])
print(shouted, words, code, killed.wait(10), late, place, leader, spawned)
