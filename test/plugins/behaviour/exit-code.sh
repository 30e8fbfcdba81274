#!/bin/bash
# Ends as it is told: `exit-code.sh 7` exits 7, `exit-code.sh TERM` dies of SIGTERM.
case ${1:-0} in
  [0-9]*) exit "${1:-0}" ;;
  *) kill -s "$1" $$ ;;
esac
