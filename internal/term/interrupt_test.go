package term

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

func TestInterruptibleGivesUpAReadThatHasNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	in := Interruptible(ctx, r)

	if _, err := w.WriteString("typed"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if n, err := in.Read(b); err != nil || string(b[:n]) != "typed" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
	done := make(chan error, 1)
	go func() { _, err := in.Read(b); done <- err }()
	cancel(stop)
	select {
	case err := <-done:
		if !errors.Is(err, stop) {
			t.Errorf("err = %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the read did not end")
	}
	// What is typed later belongs to the next reader.
	if _, err := w.WriteString("next"); err != nil {
		t.Fatal(err)
	}
	if n, err := Interruptible(context.Background(), r).Read(b); err != nil || string(b[:n]) != "next" {
		t.Errorf("read %q, %v", b[:n], err)
	}
}
