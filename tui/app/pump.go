package app

import (
	"context"
	"time"

	"github.com/eastguard/eastguard/tui/store"
)

// viewMsg is a view to be shown, and the time that it is shown at.
type viewMsg struct {
	view *store.View
	now  time.Time
	over bool // a recording has come to its end
}

// pastMsg is the answer to a look at an earlier moment.
type pastMsg struct {
	view   *store.View
	at     time.Time
	oldest time.Time
	ok     bool
}

// maxBatch bounds how many messages are applied before anything else is looked at.
const maxBatch = 512

// pump owns the store. Everything that happens to it happens in run.
type pump struct {
	store *store.Store
	in    <-chan store.Message
	asks  chan func(*pump)
	show  func(any)
	slow  func() bool      // the terminal does not keep up
	now   func() time.Time // by the clock of the feed

	every time.Duration
	last  *store.View
	clock time.Time // as shown last, in whole seconds
	over  bool
	skip  bool
	told  bool // the end was shown
	news  bool // something has happened that was not shown yet
	count int  // of views shown
}

// opening is how many views are shown as soon as there are news: the screen fills as one node after the other answers.
const opening = 25

func newPump(in <-chan store.Message, every time.Duration, now func() time.Time, show func(any)) *pump {
	return &pump{
		store: store.New(store.Options{}), in: in, asks: make(chan func(*pump), 16), show: show, now: now, every: every,
		slow: func() bool { return false },
	}
}

// ask runs f between two messages. It reports false when too much was asked already.
func (p *pump) ask(f func(*pump)) bool {
	select {
	case p.asks <- f:
		return true
	default:
		return false
	}
}

// run applies messages and shows views until ctx ends.
func (p *pump) run(ctx context.Context) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	var soon <-chan time.Time // when news are shown that do not wait for the ticker
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-p.in:
			p.take(m, ok)
			switch {
			case p.last == nil || p.last.Nodes.Len() == 0:
				p.publish() // the first thing that is known is shown at once
			case p.news && soon == nil:
				soon = time.After(p.haste())
			}
		case <-soon:
			soon = nil
			if p.news {
				p.tick()
			}
		case f := <-p.asks:
			every := p.every
			f(p)
			if p.every != every {
				ticker.Reset(p.every)
			}
		case <-ticker.C:
			p.tick()
		}
	}
}

// haste is how long news wait for others, to be shown with them: 100 ms of the usual 250, and a frame while the screen
// fills. What happens at once on several nodes is told within that time, so it comes in one change of the screen. However
// seldom the screen changes, that all are lost is seen within two seconds.
func (p *pump) haste() time.Duration {
	if p.count < opening {
		return time.Second / framesPerSecond
	}
	return min(p.every*2/5, time.Second)
}

// isNews reports whether a message tells of something that happened, not of how much of something there is.
func isNews(m store.Message) bool {
	return m.Event != nil || m.State != nil || m.Stream != nil || m.Conn != nil
}

// take applies a message and those that wait behind it. What it has received it applies: the batch is full before the
// next is.
func (p *pump) take(m store.Message, ok bool) {
	for n := 1; ok; n++ {
		p.store.Apply(m)
		p.news = p.news || isNews(m)
		if n == maxBatch {
			return
		}
		select {
		case m, ok = <-p.in:
		default:
			return
		}
	}
	p.in, p.over = nil, true
	p.publish()
}

// tick shows what has changed, if the terminal has taken what was shown before.
func (p *pump) tick() {
	if p.skip = !p.skip && p.slow(); p.skip {
		return
	}
	p.publish()
}

// publish shows a view if it is another than the last, or if its clock is.
func (p *pump) publish() {
	p.news = false
	now := p.now()
	v := p.store.View(now)
	clock := now.Truncate(time.Second)
	if v == p.last && clock.Equal(p.clock) && !p.over || p.told {
		return
	}
	p.told = p.over // nothing changes any more
	p.last, p.clock = v, clock
	p.count++
	p.show(viewMsg{v, now, p.over})
}

// past looks at an earlier moment.
func (p *pump) past(at time.Time) {
	oldest := p.store.Oldest()
	if at.Before(oldest) {
		at = oldest
	}
	v, ok := p.store.At(at)
	p.show(pastMsg{v, at, oldest, ok})
}
