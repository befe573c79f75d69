package screen

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// patience bounds each wait; reaching it is an error, not a figure.
const patience = time.Minute

// perSecond is how often the screen may change by itself.
const perSecond = 4

// Figures are what a screen of 200 by 60 takes.
type Figures struct {
	Updating, Paused, Idle float64       // of a core, at four updates a second, and at none
	Update                 float64       // bytes to the terminal in one of them
	PausedBytes            int           // of a screen that stands still; one on which nothing changes writes none
	Memory                 int           // bytes
	Key                    time.Duration // from key to screen, all but the slowest of a hundred
}

// Length is how long a recording must be for Measure to take so long for each figure.
func Length(each time.Duration) time.Duration { return settling + each + 5*time.Second }

// settling is how long averages take to stand still.
const settling = 8 * time.Second

// Measure watches a recording of [Length] on a screen, each state of it for a while.
func Measure(program, recording string, each time.Duration) (f Figures, err error) {
	s, err := Start(200, 60, program, "--replay", recording)
	if err != nil {
		return f, err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	if _, _, err := s.Await("live 60/60", patience); err != nil {
		return f, err
	}
	time.Sleep(settling)
	updating, err := s.Watch(each)
	if err != nil {
		return f, err
	}
	f.Updating, f.Update = updating.Core, float64(updating.Bytes)/(perSecond*each.Seconds())
	if f.Key, err = s.keys(100); err != nil {
		return f, err
	}
	if err := s.Press("p"); err != nil {
		return f, err
	}
	if _, _, err := s.Await(" paused", patience); err != nil {
		return f, err
	}
	paused, err := s.Watch(each)
	if err != nil {
		return f, err
	}
	f.Paused, f.PausedBytes = paused.Core, paused.Bytes
	if err := s.Press("p"); err != nil { // the recording goes on, to its end
		return f, err
	}
	if f.Idle, err = s.idle(each); err != nil {
		return f, err
	}
	f.Memory, _, err = s.Memory()
	return f, err
}

// idle waits until the screen has stood still for a while, and tells what it took meanwhile.
func (s *Screen) idle(d time.Duration) (core float64, err error) {
	for began := time.Now(); ; {
		u, err := s.Watch(d)
		switch {
		case err != nil:
			return 0, err
		case u.Bytes == 0:
			return u.Core, nil
		case time.Since(began) > patience:
			return 0, fmt.Errorf("the screen does not come to rest:\n%s", s.Text())
		}
	}
}

// keys goes from view to view, and tells how long all but the slowest of n keys took to the screen.
func (s *Screen) keys(n int) (time.Duration, error) {
	var took []time.Duration
	for i := range n {
		view := 4 - i%2*3 // topics, overview: it ends where it began
		pressed := time.Now()
		if err := s.Press(strconv.Itoa(view)); err != nil {
			return 0, err
		}
		_, at, err := s.Await(fmt.Sprintf(`\[%d `, view), patience)
		if err != nil {
			return 0, err
		}
		took = append(took, at.Sub(pressed))
		time.Sleep(time.Duration(i%7) * 10 * time.Millisecond) // keys do not keep time with frames
	}
	slices.Sort(took)
	return took[max(n-2, 0)], nil
}
