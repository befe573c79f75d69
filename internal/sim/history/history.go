package history

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// Kind is what was asked.
type Kind uint8

// The kinds.
const (
	Create Kind = iota
	Describe
	Alter
	Delete
)

// String prints create, describe, alter or delete.
func (k Kind) String() string { return [...]string{"create", "describe", "alter", "delete"}[k] }

// Answer is what came back.
type Answer uint8

// The answers.
const (
	Done     Answer = iota // applied, or found
	NotFound               // the topic did not exist
	Exists                 // it did
	Unknown                // it may have been applied, or will be
	Failed                 // certainly not applied, and nothing learnt
)

// String prints done, not found, exists, unknown or failed.
func (a Answer) String() string {
	return [...]string{"done", "not found", "exists", "unknown", "failed"}[a]
}

// Op is one operation on a topic.
type Op struct {
	Client       int
	Topic        string
	Kind         Kind
	Value        string // that a create or an alter writes
	Call, Return int64  // in nanoseconds of one clock
	Answer       Answer
	ID           base.TopicID // of a topic made or found; zero where the answer has none
	Seen         string       // the value of a topic found
	Err          error        // as it came; for people
}

// String is the operation on one line.
func (o Op) String() string {
	s := fmt.Sprintf("client %d %s %s", o.Client, o.Kind, o.Topic)
	if o.Value != "" {
		s += " = " + o.Value
	}
	s += " -> " + o.Answer.String()
	if o.Answer == Done && !o.ID.IsZero() {
		s += " " + o.ID.String()[:8]
	}
	if o.Seen != "" {
		s += " = " + o.Seen
	}
	if o.Err != nil {
		s += fmt.Sprintf(" (%v)", o.Err)
	}
	return s
}

const label = "v"

// Recorder carries operations out and keeps them. Its methods may be called by any number of goroutines.
type Recorder struct {
	now func() int64
	see func(Op) // hears each operation when it is over; may be nil

	mu  sync.Mutex
	ops []Op
}

// NewRecorder makes a recorder on the clock of this process.
func NewRecorder(see func(Op)) *Recorder {
	began := time.Now()
	return &Recorder{now: func() int64 { return int64(time.Since(began)) }, see: see}
}

// Ops are the operations that are over, in the order of their ends.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Op(nil), r.ops...)
}

// Do asks an admin for one operation, waits for its end and keeps it.
func (r *Recorder) Do(ctx context.Context, admin *sdk.Admin, op Op) Op {
	op.Call = r.now()
	var err error
	switch op.Kind {
	case Create:
		var made sdk.CreatedTopic
		made, err = admin.CreateTopic(ctx, sdk.CreateTopic{
			Name: op.Topic, Config: sdk.TopicConfig{ReplicationFactor: 1, Labels: map[string]string{label: op.Value}},
		})
		op.ID = made.Topic.Summary.ID
	case Describe:
		var found sdk.TopicDetail
		found, err = admin.DescribeTopic(ctx, op.Topic)
		op.ID, op.Seen = found.Summary.ID, found.Config.Labels[label]
	case Alter:
		var changed sdk.AlteredTopic
		changed, err = admin.AlterTopic(ctx, sdk.AlterTopic{Name: op.Topic, Set: map[string]string{base.LabelPrefix + label: op.Value}})
		op.ID = changed.Topic
	case Delete:
		var gone sdk.DeletedTopic
		gone, err = admin.DeleteTopic(ctx, sdk.DeleteTopic{Name: op.Topic})
		op.ID = gone.Topic
	}
	op.Return, op.Err = r.now(), err
	op.Answer = judge(op.Kind, err)
	r.mu.Lock()
	r.ops = append(r.ops, op)
	r.mu.Unlock()
	if r.see != nil {
		r.see(op)
	}
	return op
}

// judge turns an error into an answer.
func judge(kind Kind, err error) Answer {
	switch code := sdk.CodeOf(err); {
	case err == nil:
		return Done
	case kind == Describe && code == base.CodeTopicNotFound:
		return NotFound
	case kind == Describe:
		return Failed
	case sdk.OutcomeOf(err) != base.NotApplied:
		return Unknown
	case code == base.CodeTopicNotFound:
		return NotFound
	case code == base.CodeTopicExists:
		return Exists
	}
	return Failed
}
