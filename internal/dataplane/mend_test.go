package dataplane

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/store"
)

// donor is another replica of a segment, which has batches of one record and 1 KiB at each offset.
type donor struct {
	mu     sync.Mutex
	asked  []TailRequest
	fail   error
	left   int64                // beyond what it gives
	change func(*store.Batch)   // of what it gives
	copies []CopyChange         // what the asker's node said
	nodes  map[base.NodeID]bool // whom it was asked for
	slow   time.Duration
	atOnce int
	most   int
}

func (d *donor) fetch(ctx context.Context, from base.Replica, q TailRequest) (t store.Tail, err error) {
	d.mu.Lock()
	d.asked = append(d.asked, q)
	d.nodes[from.Node] = true
	d.atOnce++
	d.most = max(d.most, d.atOnce)
	fail, slow := d.fail, d.slow
	d.mu.Unlock()
	time.Sleep(slow)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.atOnce--
	if fail != nil {
		return t, fail
	}
	t.Left = d.left
	for at := q.From; at < q.End; at++ {
		b := makeBatch(1, header.NoProducer, -1, 1024)
		header.Patch(b, at, 1)
		s := store.Batch{Bytes: b}
		if d.change != nil {
			d.change(&s)
		}
		t.Left += int64(len(b))
		if len(t.Batches) == 0 || (len(t.Batches)+1)*len(b) <= q.MaxBytes {
			t.Batches = append(t.Batches, s)
		}
	}
	return t, nil
}

func (d *donor) said() []CopyChange {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]CopyChange(nil), d.copies...)
}

func mendBubble(t *testing.T, run func(t *testing.T, r *followRig, d *donor)) {
	d := &donor{nodes: map[base.NodeID]bool{}}
	followBubble(t, func(o *Options) {
		o.FetchTail = d.fetch
		o.OnCopy = func(c CopyChange) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.copies = append(d.copies, c)
		}
	}, func(t *testing.T, r *followRig) { run(t, r, d) })
}

// shortOf is a segment's end that this node holds nothing of.
func shortOf(seg base.SegmentID, end int64) meta.Assignment {
	a := followedBy(seg, 1, 0, 0)
	a.Ref.Range = base.RangeID(seg)
	a.State, a.End, a.Version = base.StateSealed, end, 2
	a.Replicas = append(a.Replicas, base.Replica{Node: "n3"})
	return a
}

func TestAShortTailIsCopied(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		a := shortOf(1, 3000)
		require.Equal(t, meta.StatusShort, r.assign(a).Status)
		require.Equal(t, meta.StatusShort, r.assign(a).Status, "told again")
		time.Sleep(time.Second)
		synctest.Wait()
		info, _ := r.log.Info(1)
		require.EqualValues(t, 3000, info.DurableEnd)
		require.Equal(t, []CopyChange{
			{Ref: a.Ref, Topic: "t", Segment: 1, End: 3000},
			{Ref: a.Ref, Topic: "t", Segment: 1, Has: 3000, End: 3000, Mended: true},
		}, d.said())
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		require.Len(t, d.asked, 4, "in pieces of a megabyte")
		require.False(t, d.nodes[here.Node])
	})
}

func TestALongTailIsLeftToRepair(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		d.left = maxMendBytes
		require.Equal(t, meta.StatusShort, r.assign(shortOf(1, 3)).Status)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, d.asked, 1)
		require.Len(t, d.said(), 1)
	})
}

// Whoever cannot be asked now is asked later, less and less often; the next replica is asked at once.
func TestATailIsAskedForAgain(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		d.fail = base.Errorf(base.CodeUnreachable, "fetch", "gone")
		require.Equal(t, meta.StatusShort, r.assign(shortOf(1, 3)).Status)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		d.mu.Lock()
		require.True(t, d.nodes["n2"] && d.nodes["n3"])
		require.Less(t, len(d.asked), 40)
		d.fail = nil
		d.mu.Unlock()
		time.Sleep(time.Minute + 2*sweepEvery)
		said := d.said()
		require.True(t, said[len(said)-1].Mended)
	})
}

func TestNothingIsBelievedOfATailButItself(t *testing.T) {
	for name, change := range map[string]func(*store.Batch){
		"damaged":     func(b *store.Batch) { b.Bytes[len(b.Bytes)-1] ^= 1 },
		"a gap":       func(b *store.Batch) { header.Patch(b.Bytes, 1, 1) },
		"of an epoch": func(b *store.Batch) { header.Patch(b.Bytes, 0, 2) },
		"cut":         func(b *store.Batch) { b.Bytes = b.Bytes[:len(b.Bytes)-1] },
		"no batch":    func(b *store.Batch) { b.Bytes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
				d.change = change
				require.Equal(t, meta.StatusShort, r.assign(shortOf(1, 3)).Status)
				time.Sleep(time.Minute)
				synctest.Wait()
				info, _ := r.log.Info(1)
				require.Zero(t, info.DurableEnd)
			})
		})
	}
}

func TestATailIsOfItsSegment(t *testing.T) {
	asg := shortOf(1, 3)
	tail := func(first int64, epoch int32, records int) *store.Tail {
		b := makeBatch(records, header.NoProducer, -1, 10)
		header.Patch(b, first, epoch)
		return &store.Tail{Batches: []store.Batch{{Bytes: b}}}
	}
	require.NoError(t, checkTail(tail(1, 1, 2), &asg, 1))
	require.ErrorIs(t, checkTail(tail(1, 1, 3), &asg, 1), base.CodeCorruptBatch, "behind the end")
	require.ErrorIs(t, checkTail(tail(1, 2, 2), &asg, 1), base.CodeCorruptBatch, "of another epoch")
	require.ErrorIs(t, checkTail(tail(0, 1, 2), &asg, 1), base.CodeCorruptBatch, "not what was asked for")
	require.ErrorIs(t, checkTail(&store.Tail{}, &asg, 1), base.CodeBehind)
}

// Of a segment that ended without a record nothing is held, whoever is told of its end.
func TestAnEmptySegmentNeedsNoCopy(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		a := shortOf(1, 0)
		require.Equal(t, meta.StatusHeld, r.assign(a).Status)
		a.Replicas = []base.Replica{leaderNode}
		a.Version++
		require.Equal(t, meta.StatusHeld, r.assign(a).Status, "also where it never had a replica")
		require.Empty(t, r.log.segments)
		require.Empty(t, d.said())
	})
}

func TestFewCopiesAreMendedAtOnce(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		d.slow = 100 * time.Millisecond
		for i := range base.SegmentID(20) {
			require.Equal(t, meta.StatusShort, r.assign(shortOf(i+1, 1000)).Status)
		}
		d.awaitMended(r, 20)
		require.Equal(t, maxMends, d.most)
	})
}

// awaitMended waits until the segments from 1 on have all been mended.
func (d *donor) awaitMended(r *followRig, segments base.SegmentID) {
	for seg := base.SegmentID(1); seg <= segments; {
		if info, _ := r.log.Info(seg); info.DurableEnd == 1000 {
			seg++
			continue
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What is copied over the whole node takes as long as its rate says, however fast it is given.
func TestMendingIsPaced(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		const segments = 100
		bytes := segments * 1000 * len(makeBatch(1, header.NoProducer, -1, 1024))
		began := time.Now()
		for i := range base.SegmentID(segments) {
			require.Equal(t, meta.StatusShort, r.assign(shortOf(i+1, 1000)).Status)
		}
		d.awaitMended(r, segments)
		least := time.Duration(bytes-maxMends*mendPiece) * time.Second / mendRate
		require.GreaterOrEqual(t, time.Since(began), least)
		require.Less(t, time.Since(began), 3*least)
	})
}

func TestMendingEndsWithThePlane(t *testing.T) {
	mendBubble(t, func(t *testing.T, r *followRig, d *donor) {
		d.fail = base.Errorf(base.CodeUnreachable, "fetch", "gone")
		d.slow = time.Hour
		require.Equal(t, meta.StatusShort, r.assign(shortOf(1, 3)).Status)
		synctest.Wait()
	})
}
