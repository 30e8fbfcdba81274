#!/bin/bash
# Says that it runs, then sleeps: sleeper.sh SECONDS
echo sleeping
exec sleep "${1:-1000}"
