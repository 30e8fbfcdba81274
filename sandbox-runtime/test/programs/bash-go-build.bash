# The Go compiler itself, with its many threads and processes; GO is its path.
set -euo pipefail
export GOCACHE=/tmp/cache GOPATH=/tmp/path GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-p=2
cat > main.go << 'GO'
package main

func main() { println("built inside") }
GO
"$GO" build -o program main.go
./program 2>&1
