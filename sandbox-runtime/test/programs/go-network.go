// Goroutines, channels, timers, a local server over HTTP and TCP, child processes and signals.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func sum(workers int) int {
	numbers, sums := make(chan int), make(chan int)
	for range workers {
		go func() {
			total := 0
			for number := range numbers {
				total += number
			}
			sums <- total
		}()
	}
	for number := range 10_000 {
		numbers <- number
	}
	close(numbers)
	total := 0
	for range workers {
		total += <-sums
	}
	return total
}

func fetch(count int) int64 {
	listener, err := net.Listen("tcp", "localhost:0")
	check(err)
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	var read sync.WaitGroup
	sizes := make([]int64, count)
	for i := range count {
		read.Go(func() {
			response, err := http.Get("http://" + listener.Addr().String())
			check(err)
			sizes[i], err = io.Copy(io.Discard, response.Body)
			check(err)
		})
	}
	read.Wait()
	total := int64(0)
	for _, size := range sizes {
		total += size
	}
	return total
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	output, err := exec.Command("/bin/echo", "child").Output()
	check(err)
	<-time.After(time.Millisecond)
	runtime.GC()
	fmt.Println(sum(100), fetch(20), <-signals == syscall.SIGUSR1, string(output[:5]))
}
