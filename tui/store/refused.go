package store

import "time"

// Refused is an answer that no broker gives. Nothing of it is shown.
type Refused struct {
	What string `json:"what"` // was asked for
	Why  string `json:"why"`
}

// refusedEvery is how often it is told that the same is refused.
const refusedEvery = time.Minute

// refusal is what was refused last.
type refusal struct {
	what string
	at   time.Time
}

// refused tells of an answer that was refused; once in a while, if it is the same again and again.
func (s *Store) refused(at time.Time, r *Refused) {
	if r.What != s.refusal.what || at.Sub(s.refusal.at) >= refusedEvery {
		s.refusal = refusal{r.What, at}
		s.local(at, "CLIENT_REFUSED", "", r.What+": "+r.Why)
	}
}
