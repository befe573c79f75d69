package app

import (
	"context"
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// mailbox is what the model is to be told by others. Nothing in it is lost when the screen ends that it was posted to: the
// next one takes it. While there is no screen whoever posts waits, so that a cluster that says much does not fill it.
type mailbox struct {
	mu    sync.Mutex
	msgs  []tea.Msg
	ready chan struct{} // closed while there is a screen
}

// mailMsg says that there is mail.
type mailMsg struct{}

// open lets others post. hold makes them wait.
func (m *mailbox) open() { close(m.wait()) }

func (m *mailbox) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = nil
}

func (m *mailbox) wait() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready == nil {
		m.ready = make(chan struct{})
	}
	return m.ready
}

// put reports false when ctx has ended before there was a screen.
func (m *mailbox) put(ctx context.Context, msg tea.Msg) bool {
	select {
	case <-m.wait():
	case <-ctx.Done():
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.msgs = append(m.msgs, msg)
	return true
}

// take empties it.
func (m *mailbox) take() []tea.Msg {
	m.mu.Lock()
	defer m.mu.Unlock()
	msgs := slices.Clone(m.msgs)
	clear(m.msgs)
	m.msgs = m.msgs[:0]
	return msgs
}

// deliver hands the model a message, and waits until the screen knows of it, or has ended.
func (s *session) deliver(ctx context.Context, msg tea.Msg) {
	if s.mail.put(ctx, msg) {
		s.program.Load().Send(mailMsg{})
	}
}
