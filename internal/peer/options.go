package peer

import (
	"cmp"
	"log/slog"
	"net"
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// Options are the settings of a Host; zero fields with a default in their comment get it.
type Options struct {
	Node     base.NodeID
	Boot     uint64
	Instance base.UUID // of this process
	// StartedMs is when this process started, for the case that it meets its double.
	StartedMs int64
	Cluster   base.ClusterID // zero while there is none; see SetCluster

	Listen  func(Tag) net.Listener                   // where TagMain, TagBulk, TagAsk and TagData arrive: Demux.Listener
	Resolve func(base.NodeID) (addr string, ok bool) // the address book; asked before every attempt, must not block

	// ResolveData is the address book of the data ports. nil: no data lanes, and nothing listens for them.
	ResolveData func(base.NodeID) (addr string, ok bool)
	OnLink      func(Link)   // a data lane came up or went down; in order for each node, must not block. none
	Dial        Dialer       // DialTCP
	Logger      *slog.Logger // none
	OnTwin      func(Twin)   // another process runs as this node; must not block. none

	PingAfter   time.Duration // of silence. 100 ms
	LostAfter   time.Duration // of silence: unreachable. 500 ms
	CutAfter    time.Duration // of silence: the connection is closed and dialled again. 5 s
	BulkIdle    time.Duration // after which a bulk lane is closed. 30 s
	DialTimeout time.Duration // of one attempt, hello included. 2 s
	RetryFirst  time.Duration // the first pause before a redial is up to this, doubling. 5 ms
	RetryMost   time.Duration // up to this. 1 s

	MaxPeers      int   // nodes connected or kept. 1,024
	MaxInFlight   int   // requests of one connection that wait for this node's answer; beyond it they are answered busy. 4,096
	InFlightBytes int64 // the same in bytes of messages; a data lane is not read from beyond it. 64 MiB
	QueueBytes    int64 // frames of one connection that the kernel has not taken; beyond it calls fail with CodeBusy. 64 MiB
}

func (o Options) withDefaults() Options {
	if o.Dial == nil {
		o.Dial = DialTCP
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnLink == nil {
		o.OnLink = func(Link) {}
	}
	if o.OnTwin == nil {
		o.OnTwin = func(Twin) {}
	}
	o.PingAfter = cmp.Or(o.PingAfter, 100*time.Millisecond)
	o.LostAfter = cmp.Or(o.LostAfter, 500*time.Millisecond)
	o.CutAfter = cmp.Or(o.CutAfter, 5*time.Second)
	o.BulkIdle = cmp.Or(o.BulkIdle, 30*time.Second)
	o.DialTimeout = cmp.Or(o.DialTimeout, 2*time.Second)
	o.RetryFirst = cmp.Or(o.RetryFirst, 5*time.Millisecond)
	o.RetryMost = cmp.Or(o.RetryMost, time.Second)
	o.MaxPeers = cmp.Or(o.MaxPeers, 1024)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 4096)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, 64<<20)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	return o
}
