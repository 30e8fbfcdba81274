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
	for i := 0; i < workers; i++ {
		go func() {
			total := 0
			for number := range numbers {
				total += number
			}
			sums <- total
		}()
	}
	for number := 0; number < 10000; number++ {
		numbers <- number
	}
	close(numbers)
	total := 0
	for i := 0; i < workers; i++ {
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
	for i := 0; i < count; i++ {
		read.Add(1)
		go func(size *int64) {
			defer read.Done()
			response, err := http.Get("http://" + listener.Addr().String())
			check(err)
			*size, err = io.Copy(io.Discard, response.Body)
			check(err)
		}(&sizes[i])
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
