package seal

// net is what was ever sent about one segment; but for fences, which a coordinator may have sent at any time. Nothing is ever taken out: a message may arrive at any time after it was
// sent, again and again, or never.
type net struct {
	opened  bool            // the leader's open, to all followers
	batches uint16          // bit an (offset, payload): an append, to all followers
	commit  uint8           // the highest that the leader has told of, to all followers
	acks    [replicas]uint8 // the highest end that was acked to the leader, +1; 0 is none
	lost    uint8           // bit a node: it told the leader that it will never ack again
	asks    uint8           // bit an end: the leader asks for a roll there
	answers [replicas][2]answer
}

func batchBit(offset, payload int) uint16 { return 1 << (offset*4 + payload - 1) }

// answer is a replica's answer to a fence; 0 is none.
type answer uint8

const (
	answered  answer = 1 << 7
	unbroken  answer = 1 << 6
	unlisted  answer = 1 << 5
	damaged   answer = 1 << 4
	otherDisk answer = 1 << 3
)

func (a answer) end() int { return int(a & 7) }

// say files an answer, unless it was given before.
func (m *net) say(from int, a answer) {
	for i := range m.answers[from] {
		switch m.answers[from][i] {
		case a:
			return
		case 0:
			m.answers[from][i] = a
			return
		}
	}
}
