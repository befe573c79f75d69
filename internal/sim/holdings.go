package sim

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
	"github.com/eastguard/eastguard/internal/record"
	"github.com/eastguard/eastguard/internal/sim/ledger"
	"github.com/eastguard/eastguard/internal/store"
	"github.com/eastguard/eastguard/internal/vfs"
)

// holdings are what a start of the broker finds on a disk.
type holdings struct {
	replica base.Replica // zero: nobody has ever started here
	copies  []ledger.Copy
	digest  string   // equal holdings, equal digests
	strange []string // what is damaged, or not known to the catalogue
}

// open recovers a disk's store and reads what it holds of some topics. The image is changed by that; killed is what a
// process that was killed right after its recovery would leave of it.
func (n *Node) open(image *vfs.Mem, topics []base.TopicID) (h holdings, killed *vfs.Mem, err error) {
	if _, err := image.Stat(path.Join(n.Config.DataDir, "identity")); errors.Is(err, fs.ErrNotExist) {
		return h, image, nil // ended before it was anybody
	}
	id, lock, err := store.OpenIdentity(image, n.Config.DataDir, n.Config.MetaDir, store.IdentityRequest{})
	if err != nil {
		return h, nil, fmt.Errorf("identity: %w", err)
	}
	h.replica = base.Replica{Node: id.Node, Disk: id.Disk}
	st, err := store.Open(store.Options{
		FS: image, DataDir: n.Config.DataDir, CacheBytes: n.Config.CacheBudgetBytes, ReserveBytes: -1,
		OnFatal: func(err error) { h.strange = append(h.strange, err.Error()) },
		OnEvent: func(e store.Event) {
			if e.Kind == store.EventDamage || e.Kind == store.EventQuarantined {
				h.strange = append(h.strange, fmt.Sprintf("%s: %s: %s", e.Kind, e.Path, e.Detail))
			}
		},
	}, *id)
	if err != nil {
		return h, nil, errors.Join(fmt.Errorf("store: %w", err), lock.Close())
	}
	killed = image.Snapshot()
	h.digest = digest(st)
	for _, info := range st.All() {
		if slices.Contains(topics, info.Ref.Topic) {
			end := info.DurableEnd
			if sealed, ok := n.c.facts.seals[info.Segment]; ok { // which this node may not have been told yet
				end = min(end, sealed.end)
			}
			c, readErr := readCopy(st, h.replica, info, end)
			h.copies = append(h.copies, c)
			if c.Damaged {
				h.strange = append(h.strange, fmt.Sprintf("segment %v is damaged", c.Segment))
			}
			err = errors.Join(err, readErr)
		}
	}
	return h, killed, errors.Join(err, st.Close(), lock.Close())
}

// digest is what a store holds, on a line a segment.
func digest(st *store.Store) string {
	var b strings.Builder
	for _, s := range st.All() {
		fmt.Fprintf(&b, "%v %v epoch %d base %d durable %d sealed %d bytes %d fenced %t damaged %t above %d boot %d", s.Ref, s.Segment, s.Epoch, s.Base, s.DurableEnd, s.SealedEnd, s.Bytes, s.Fenced, s.Damaged, s.DamagedAbove, s.Boot)
		if state, err := st.RangeState(s.Segment); err != nil {
			fmt.Fprintf(&b, " state %v", err)
		} else {
			state.Commit(state.End()) // the sum is of the committed part
			fmt.Fprintf(&b, " state %016x", state.Checksum())
		}
		fmt.Fprintf(&b, " trimmed %d\n", st.TrimmedTo(s.Ref))
	}
	return b.String()
}

// readCopy reads one segment up to an end from a store that nobody else uses. All that is durable is published first: the
// store of a dead broker proves nothing committed, and whoever judges knows better.
func readCopy(st *store.Store, replica base.Replica, info store.SegmentInfo, end int64) (ledger.Copy, error) {
	c := ledger.Copy{Replica: replica, Segment: info.Segment, Durable: info.DurableEnd, Damaged: info.Damaged}
	if info.SealedEnd >= 0 {
		end = min(end, info.SealedEnd)
	}
	st.Publish(info.Segment, end)
	sum := crc32.NewIEEE()
	for off := info.Base; off < end; {
		got, err := st.Read(info.Ref, off, 1<<20, nil)
		if err == nil && got.Segment == info.Segment && got.Next == off {
			err = errors.New("nothing there")
		}
		if err != nil {
			if c.Damaged = c.Damaged || base.CodeOf(err) == base.CodeCorruptData; c.Damaged {
				break
			}
			return c, fmt.Errorf("%s, segment %v, offset %d of %d: %w", replica.Node, info.Segment, off, end, err)
		}
		if got.Segment != info.Segment {
			got.Release()
			break // a successor that begins below the durable end of this one, whose seal is not known here
		}
		var batches bytes.Buffer
		for _, p := range got.Parts {
			_, _ = p.WriteTo(&batches)
			p.Release()
		}
		_, _ = sum.Write(batches.Bytes())
		if c.Records, err = appendRecords(c.Records, batches.Bytes()); err != nil {
			return c, fmt.Errorf("%s, segment %v, offset %d: %w", replica.Node, info.Segment, off, err)
		}
		off = got.Next
	}
	c.Sum = sum.Sum32()
	return c, nil
}

// appendRecords reads batches that lie back to back.
func appendRecords(to []ledger.Stored, batches []byte) ([]ledger.Stored, error) {
	r := record.NewReader(16 << 20)
	for len(batches) > 0 {
		h, err := header.Parse(batches)
		if err != nil {
			return to, err
		}
		if err := r.Reset(batches[:h.Size()]); err != nil {
			return to, err
		}
		for rec, ok := r.Next(); ok; rec, ok = r.Next() {
			to = append(to, ledger.Stored{Record: known(rec.Key, rec.Value), Offset: rec.Offset, Epoch: base.Epoch(h.Epoch)})
		}
		if err := r.Err(); err != nil {
			return to, err
		}
		batches = batches[h.Size():]
	}
	return to, nil
}
