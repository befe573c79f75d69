package term

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestKeys(t *testing.T) {
	ptm, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptm.Close()
	defer tty.Close()
	modes := func() uint32 {
		m, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return m.Lflag & (unix.ICANON | unix.ECHO | unix.ISIG)
	}
	before := modes()
	s := &IOStreams{In: tty}
	s.SetTTY(true, true, true)
	pressed := make(chan byte, 8)
	stop := Keys(context.Background(), s, func(key byte) bool {
		pressed <- key
		return key != 'q'
	})
	if got := modes(); got != unix.ISIG {
		t.Errorf("modes %x: keys come at once and unseen, and Ctrl-C stays a signal", got)
	}
	if _, err := ptm.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	for _, want := range "xq" {
		select {
		case got := <-pressed:
			if got != byte(want) {
				t.Errorf("key %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("key %q never came", want)
		}
	}
	stop()
	if got := modes(); got != before {
		t.Errorf("modes %x after, %x before", got, before)
	}

	// Without a key it ends when it is told to, and what is typed then is for the next reader.
	stop = Keys(context.Background(), s, func(byte) bool { t.Error("nobody pressed a key"); return false })
	stop()
	if _, err := ptm.WriteString("next\n"); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 16)
	if n, err := tty.Read(line); err != nil || string(line[:n]) != "next\n" {
		t.Errorf("%q, %v", line[:n], err)
	}
}

func TestKeysOfNoTerminal(t *testing.T) {
	for _, in := range []*IOStreams{{In: new(bytes.Buffer), inTTY: true}, {In: os.Stdin}} {
		Keys(context.Background(), in, func(byte) bool { t.Error("nothing is read"); return false })()
	}
}
