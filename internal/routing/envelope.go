package routing

import (
	"context"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/wire"
)

// KindForward is the kind of message that carries a client's request from node to node.
const KindForward = peer.Control + 1

// MaxHops is how many times a request changes nodes at most.
const MaxHops = 3

// envelope is a client's request on its way between nodes. The message is the client's own bytes.
type envelope struct {
	Kind     wire.Kind     `cbor:"1,keyasint"`
	Shard    base.ShardID  `cbor:"2,keyasint"`
	Path     []base.NodeID `cbor:"3,keyasint"` // the nodes it has left, the first that the client asked
	BudgetMs uint32        `cbor:"4,keyasint"` // of its time
	Message  []byte        `cbor:"5,keyasint"`
}

// reply is the answer on its way back, and who gave it.
type reply struct {
	Leader     base.NodeID `cbor:"1,keyasint"`
	Term       uint64      `cbor:"2,keyasint,omitempty"`
	Generation uint64      `cbor:"3,keyasint,omitempty"`
	Message    []byte      `cbor:"4,keyasint"`
}

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxArrayElements: 1 << 16, MaxNestedLevels: 8,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, ExtraReturnErrors: cbor.ExtraDecErrorNone,
	}.DecMode())
)

func must[M any](mode M, err error) M {
	if err != nil {
		panic(err) // options are constants of this package
	}
	return mode
}

func encode(m any) []byte {
	b, err := encoding.Marshal(m)
	if err != nil {
		panic(err) // only a type that is none of this package
	}
	return b
}

func decode(b []byte, m any) error {
	if err := decoding.Unmarshal(b, m); err != nil {
		return base.Errorf(base.CodeCorruptFrame, "decode forwarded request", "%w", err)
	}
	return nil
}

// budget is what is left of a deadline, as an envelope says it: a little less, so that what the leader has to say when
// the time is up arrives before ours is.
func budget(ctx context.Context) uint32 {
	deadline, has := ctx.Deadline()
	if !has {
		return uint32(defaultBudget.Milliseconds())
	}
	left := time.Until(deadline)
	left -= min(left/20, wayBack)
	return uint32(max(left, time.Millisecond).Milliseconds())
}

// wayBack is the most that is kept for the answer's way.
const wayBack = 250 * time.Millisecond

// defaultBudget is the time of a request that came without a deadline, and most is what a peer may ask for.
const (
	defaultBudget = 10 * time.Second
	mostBudget    = time.Minute
)

// Receive takes requests that other nodes forward; it is the handler of KindForward.
func (r *Router) Receive(ctx context.Context, pr *peer.Request) {
	e, req, err := r.open(pr.Body)
	if err == nil {
		err = r.Spawn(req.Shard, func() {
			b, err := r.serve(ctx, e, req)
			if err != nil {
				pr.Fail(err)
				return
			}
			pr.Reply(b)
		})
	}
	if err != nil {
		pr.Fail(err)
	}
}

// open reads a forwarded request.
func (r *Router) open(body []byte) (envelope, Request, error) {
	var e envelope
	if err := decode(body, &e); err != nil {
		return e, Request{}, err
	}
	if len(e.Path) == 0 || len(e.Path) > MaxHops {
		return e, Request{}, base.Errorf(base.CodeInvalidArgument, "forward", "the request has passed %d nodes, at most %d are allowed", len(e.Path), MaxHops)
	}
	req, err := r.o.Prepare(e.Kind, e.Message, e.Shard)
	return e, req, err
}

func (r *Router) serve(ctx context.Context, e envelope, req Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(e.BudgetMs)*time.Millisecond, mostBudget))
	defer cancel()
	a, err := r.pass(ctx, req, e.Path)
	r.metrics.received[len(e.Path)-1][resultOf(err)].Inc()
	if err != nil {
		return nil, err
	}
	return encode(a), nil
}
