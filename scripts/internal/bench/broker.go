package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/eastguard/eastguard/sdk"
)

// broker is a running broker process with a client to it.
type broker struct {
	cmd    *exec.Cmd
	dir    string
	addr   string
	client *sdk.Client
}

// startBroker starts a broker with empty data and default settings.
func startBroker(o options, args ...string) (*broker, error) {
	dir, err := os.MkdirTemp(o.dir, "broker")
	if err != nil {
		return nil, err
	}
	return startBrokerIn(o, dir, args...)
}

// startBrokerIn starts a broker on the data of dir.
func startBrokerIn(o options, dir string, args ...string) (*broker, error) {
	cmd := exec.Command(o.broker, append([]string{
		"--host", "127.0.0.1", "--client-port", "0", "--cluster-port", "0", "--data-port", "0", "--admin-port", "0",
		"--data-dir", filepath.Join(dir, "data"), "--meta-dir", filepath.Join(dir, "meta"), "--log-format", "json",
	}, args...)...)
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &broker{cmd: cmd, dir: dir}
	if b.addr, err = readyAddress(stderr); err != nil {
		_ = cmd.Process.Kill()
		return nil, err
	}
	b.client, err = sdk.NewClient(sdk.WithSeeds(b.addr))
	return b, err
}

// readyAddress waits for the log line that says where clients connect, and goes on reading so that the broker
// never blocks on its log.
func readyAddress(stderr io.Reader) (string, error) {
	found := make(chan string, 1)
	last := make(chan string, 1)
	go func() {
		var line string
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			line = lines.Text()
			var l struct {
				Msg           string `json:"msg"`
				ClientAddress string `json:"client_address"`
			}
			if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "ready" {
				found <- l.ClientAddress
			}
		}
		last <- line
	}()
	select {
	case addr := <-found:
		return addr, nil
	case line := <-last:
		return "", fmt.Errorf("the broker did not start: %s", line)
	case <-time.After(30 * time.Second):
		return "", fmt.Errorf("the broker was not ready within 30 s")
	}
}

// stop ends the broker gracefully and removes its data.
func (b *broker) stop() error {
	_ = b.client.Close()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := b.cmd.Wait(); err != nil {
		return fmt.Errorf("the broker's end: %w", err)
	}
	return os.RemoveAll(b.dir)
}

func (b *broker) createTopic(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := b.client.Admin().CreateTopic(ctx, sdk.CreateTopic{Name: name, Config: sdk.TopicConfig{ReplicationFactor: 1}})
	return err
}

// rss is the broker's resident memory in bytes.
func (b *broker) rss() (float64, error) {
	status, err := os.ReadFile(b.proc("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in %s", b.proc("status"))
}

// cpu is the processor time that the broker has used.
func (b *broker) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(b.proc("stat"))
	if err != nil {
		return 0, err
	}
	// The command's name, in parentheses, may hold anything; utime and stime are the 12th and 13th after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	utime, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	stime, err := strconv.ParseInt(fields[12], 10, 64)
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return time.Duration(utime+stime) * time.Second / ticksPerSecond, err
}

// openFiles counts the broker's file descriptors.
func (b *broker) openFiles() (float64, error) {
	entries, err := os.ReadDir(b.proc("fd"))
	return float64(len(entries)), err
}

func (b *broker) proc(file string) string {
	return filepath.Join("/proc", strconv.Itoa(b.cmd.Process.Pid), file)
}
