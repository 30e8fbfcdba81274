// Says hello from Go: the same lines as every other hello plugin.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
)

// A chain of goroutines, one for each prime found, so that the runtime's threads run under the filter too.
func primesBelow(limit int) int {
	all := make(chan int)
	go func() {
		for n := 2; n < limit; n++ {
			all <- n
		}
		close(all)
	}()
	count := 0
	numbers := all
	for {
		prime, more := <-numbers
		if !more {
			return count
		}
		count++
		numbers = withoutMultiples(numbers, prime)
	}
}

func withoutMultiples(numbers <-chan int, prime int) chan int {
	rest := make(chan int)
	go func() {
		for n := range numbers {
			if n%prime != 0 {
				rest <- n
			}
		}
		close(rest)
	}()
	return rest
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	greeting := "hello from Go " + strings.TrimPrefix(runtime.Version(), "go")
	fmt.Println(greeting)
	for _, argument := range os.Args[1:] {
		fmt.Println("argument:", argument)
	}
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // an error here only means that the input ended
	line = strings.TrimRight(line, "\n")
	if line == "" {
		line = "(empty)"
	}
	fmt.Println("standard input:", line)
	directory, err := os.Getwd()
	must(err)
	fmt.Println("directory:", directory)
	fmt.Println("primes below 1000:", primesBelow(1000))
	must(os.MkdirAll("out", 0o755))
	must(os.WriteFile("out/hello.txt", []byte(greeting+"\n"), 0o644))
	fmt.Println("wrote: out/hello.txt")
}
