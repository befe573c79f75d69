package screen

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Use is what the program took in a while.
type Use struct {
	Core  float64 // of a core: 0.05 is 5 %
	Bytes int     // to the terminal
}

// Watch lets the program be for a while, and tells what it took.
func (s *Screen) Watch(d time.Duration) (u Use, err error) {
	before, err := s.cpu()
	if err != nil {
		return u, err
	}
	began, written := time.Now(), s.written()
	time.Sleep(d)
	after, err := s.cpu()
	return Use{Core: float64(after-before) / float64(time.Since(began)), Bytes: s.written() - written}, err
}

func (s *Screen) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// tick is the kernel's unit of processor time.
const tick = 10 * time.Millisecond

// cpu is the processor time that the program has had.
func (s *Screen) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat is %q", stat)
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, err
}

// Memory is what of the program is in memory, and the most that ever was, in bytes.
func (s *Screen) Memory() (now, most int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		var to *int
		switch name {
		case "VmRSS":
			to = &now
		case "VmHWM":
			to = &most
		default:
			continue
		}
		if *to, err = strconv.Atoi(strings.Fields(value)[0]); err != nil {
			return 0, 0, err
		}
		*to <<= 10
	}
	return now, most, nil
}
