// Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh).
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

var names = map[syscall.Errno]string{1: "EPERM", 2: "ENOENT", 3: "ESRCH", 11: "EAGAIN", 13: "EACCES", 17: "EEXIST", 18: "EXDEV",
	22: "EINVAL", 24: "EMFILE", 28: "ENOSPC", 30: "EROFS", 38: "ENOSYS", 97: "EAFNOSUPPORT", 111: "ECONNREFUSED"}

func number(word string) int {
	value, _ := strconv.ParseInt(word, 0, 64)
	return int(value)
}

// systemCall passes what is no number as a pointer to a string.
func systemCall(words ...string) error {
	var arguments [7]uintptr
	for i, word := range words {
		if value, err := strconv.ParseInt(word, 0, 64); err == nil {
			arguments[i] = uintptr(value)
		} else {
			text, _ := syscall.BytePtrFromString(word)
			arguments[i] = uintptr(unsafe.Pointer(text))
		}
	}
	_, _, failure := syscall.RawSyscall6(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6])
	if failure != 0 {
		return failure
	}
	return nil
}

func open(path string, flags int) error {
	file, err := os.OpenFile(path, flags, 0o644)
	if err == nil {
		file.Close()
	}
	return err
}

func read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	if status, _ := file.Stat(); status.IsDir() {
		return nil
	}
	if _, err = file.Read(make([]byte, 1)); err == io.EOF {
		return nil
	}
	return err
}

func foreign() string {
	entries, _ := os.ReadDir("/proc/self/fd")
	count := 0
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		own := strings.HasPrefix(target, "/dev/") || strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/")
		if strings.HasPrefix(target, "/") && !own {
			count++
		}
	}
	return strconv.Itoa(count)
}

func fill(path string) error {
	file, err := os.Create(path)
	for err == nil {
		_, err = file.Write(make([]byte, 65536))
	}
	return err
}

func openMany(count int) error {
	for i := 0; i < count; i++ {
		if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
			return err
		}
	}
	return nil
}

func sparse(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return file.Truncate(1 << 40)
}

func start(detached bool) error {
	command := exec.Command("sleep", "1000")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: detached}
	return command.Start()
}

// endless are the verbs that something else has to end.
func endless(verb string) {
	var kept [][]byte
	for {
		switch verb {
		case "sleep":
			time.Sleep(1000 * time.Second)
		case "hog":
			block := make([]byte, 1000000)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
		case "flood":
			fmt.Print(strings.Repeat("y", 4096))
		case "bomb":
			if start(false) != nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// act returns what was found, or the error.
func act(verb string, words []string) (string, error) {
	switch verb {
	case "read":
		return "ok", read(words[0])
	case "write":
		return "ok", open(words[0], os.O_WRONLY)
	case "create":
		return "ok", open(words[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	case "chmod":
		return "ok", os.Chmod(words[0], 0o777)
	case "remove":
		return "ok", syscall.Unlink(words[0])
	case "rename":
		return "ok", os.Rename(words[0], words[1])
	case "link":
		return "ok", os.Link(words[0], words[1])
	case "symlink":
		return "ok", os.Symlink(words[0], words[1])
	case "fifo":
		return "ok", syscall.Mkfifo(words[0], 0o644)
	case "sparse":
		return "ok", sparse(words[0])
	case "kill":
		return "ok", syscall.Kill(number(words[0]), syscall.Signal(number(words[1])))
	case "limit":
		limit := syscall.Rlimit{}
		_, _, failure := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(number(words[0])), syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
		if failure != 0 {
			return "", failure
		}
		return "ok", nil
	case "syscall":
		return "ok", systemCall(words...)
	case "setuid":
		return "ok", syscall.Setuid(number(words[0]))
	case "spawn":
		output, _ := exec.Command(words[0], words[1:]...).Output()
		return strings.TrimSpace(string(output)), nil
	case "environment":
		if value, set := os.LookupEnv(words[0]); set {
			return value, nil
		}
		return "unset", nil
	case "foreign":
		return foreign(), nil
	case "connect":
		_, err := net.Dial("unix", "@"+words[0])
		return "ok", err
	case "open-many":
		return "ok", openMany(number(words[0]))
	case "fill":
		return "ok", fill(words[0])
	case "exit":
		os.Exit(number(words[0]))
	case "die":
		syscall.Kill(os.Getpid(), syscall.Signal(number(words[0])))
		time.Sleep(5 * time.Second)
	case "daemon":
		return "ok", start(true)
	default:
		endless(verb)
	}
	return "ok", nil
}

func main() {
	for _, action := range strings.Split(strings.Join(os.Args[1:], " "), " , ") {
		words := strings.Fields(action)
		found, err := act(words[0], words[1:])
		var failure syscall.Errno
		if errors.As(err, &failure) {
			found = names[failure]
		} else if err != nil {
			found = err.Error()
		}
		fmt.Println(found)
	}
}
