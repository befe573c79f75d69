package seal

import "fmt"

// step is one thing that may happen next.
type step struct {
	kind stepKind
	at   uint8
	seg  uint8
	a, b uint8
}

type stepKind uint8

const (
	produceStep stepKind = iota + 1
	fsyncStep
	openStep
	batchStep
	commitStep
	ackStep
	lostStep
	freezeStep
	drainStep
	thawStep
	retireStep
	resumeStep
	fenceStep
	toldStep
	sealedStep
	crashStep
	rotStep
	wipeStep
	fileStep
	askedStep
	answersStep
	staleStep
	commitStaleStep
)

func (s step) String() string {
	at, seg := string(nodeName(int(s.at))), fmt.Sprintf("s%d", s.seg+1)
	switch s.kind {
	case produceStep:
		return fmt.Sprintf("%s appends p%d to %s and sends it", at, s.a, seg)
	case fsyncStep:
		return at + " syncs its log"
	case openStep:
		return fmt.Sprintf("%s hears that %s is open", at, seg)
	case batchStep:
		return fmt.Sprintf("%s gets p%d at offset %d of %s", at, s.b, s.a, seg)
	case commitStep:
		return fmt.Sprintf("%s hears the commit of %s", at, seg)
	case ackStep:
		return fmt.Sprintf("%s, leading %s, gets the ack of %s", at, seg, nodeName(int(s.a)))
	case lostStep:
		return fmt.Sprintf("%s, leading %s, hears that %s is lost", at, seg, nodeName(int(s.a)))
	case freezeStep:
		return fmt.Sprintf("%s freezes %s and asks for a roll", at, seg)
	case drainStep:
		return fmt.Sprintf("%s drains %s", at, seg)
	case thawStep:
		return fmt.Sprintf("%s thaws %s", at, seg)
	case retireStep:
		return fmt.Sprintf("%s lets its idle leader of %s go", at, seg)
	case resumeStep:
		return fmt.Sprintf("%s makes its leader of %s again", at, seg)
	case fenceStep:
		return fmt.Sprintf("%s gets the fence of %s", at, seg)
	case toldStep:
		return fmt.Sprintf("%s is told to lead %s", at, seg)
	case sealedStep:
		return fmt.Sprintf("%s is told where %s ended", at, seg)
	case crashStep:
		if s.a == 1 {
			return at + " is killed and restarts with all that it wrote"
		}
		return at + " is killed and restarts with what it synced"
	case rotStep:
		return fmt.Sprintf("%s is killed and restarts, %d durable records silently gone", at, s.a)
	case wipeStep:
		return at + " restarts with an empty disk"
	case fileStep:
		return fmt.Sprintf("%s loses its file of %s", at, seg)
	case askedStep:
		return fmt.Sprintf("a coordinator commits the roll of %s at %d that its leader asked for", seg, s.a)
	case answersStep:
		return fmt.Sprintf("a coordinator commits the seal of %s by the answers to its fences", seg)
	case staleStep:
		return fmt.Sprintf("another coordinator plans the end of %s as well", seg)
	case commitStaleStep:
		return "what the other coordinator planned is committed"
	}
	return "?"
}
