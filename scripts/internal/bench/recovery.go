package main

import (
	"syscall"
	"time"
)

// measureRecovery kills a broker right after it has taken more than a whole file of log, and measures how long the
// next start takes until it serves.
func measureRecovery(o options, r *report) error {
	const logFile = 64 << 20
	var took []float64
	for range o.rounds {
		b, err := startBroker(o)
		if err != nil {
			return err
		}
		if _, err := b.produce("t", 1024, func(sent int) bool { return sent*1024 < 2*logFile }); err != nil {
			return err
		}
		if err := b.kill(); err != nil {
			return err
		}
		began := time.Now()
		again, err := startBrokerIn(o, b.dir)
		if err != nil {
			return err
		}
		took = append(took, ms(time.Since(began)))
		if err := again.stop(); err != nil {
			return err
		}
	}
	r.add("restart after kill -9 under load", "%.0f ms", median(took), "").goal("≤ 2,000 ms", median(took) <= 2000)
	return nil
}

func (b *broker) kill() error {
	_ = b.client.Close()
	if err := b.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = b.cmd.Wait() // its error is the signal
	return nil
}
