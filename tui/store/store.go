package store

import "time"

// Options bound what a store keeps.
type Options struct {
	// History is how far back At goes; 0 means 15 minutes, less than 0 nothing.
	History time.Duration
	// HistoryBytes is the most that it keeps for that; 0 means 32 MB.
	HistoryBytes int
	// Events, LogLines and LogBytes are how many of each are kept; 0 means 10,000, 5,000 and 4 MB.
	Events, LogLines, LogBytes int
}

// Store takes messages and gives views. It belongs to one goroutine; its views belong to anybody.
type Store struct {
	opts Options
	view *View
}

// New makes an empty store.
func New(opts Options) *Store { return &Store{opts: opts, view: &View{}} }

// Apply takes one message in.
func (s *Store) Apply(m Message) { s.view = &View{Version: s.view.Version + 1, Time: m.Time} }

// View is all that is known at a time, which is not before that of the last message. It is the same as the last one if
// nothing has changed. It is never nil.
func (s *Store) View(now time.Time) *View { return s.view }

// At is the view as it was at a time, or at the oldest that is kept; ok is false when nothing is.
func (s *Store) At(t time.Time) (v *View, ok bool) { return nil, false }

// Oldest is how far back At goes; zero: nothing is kept.
func (s *Store) Oldest() time.Time { return time.Time{} }
