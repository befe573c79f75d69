package sim

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eastguard/eastguard/internal/config"
	"github.com/eastguard/eastguard/internal/vfs"
	"github.com/eastguard/eastguard/sdk"
	"github.com/eastguard/eastguard/server"
)

// Node is a machine with a disk, on which a broker runs or not.
type Node struct {
	Name   string
	IP     string
	Config config.Config // of its next start

	index   int // counted from 1
	c       *Cluster
	disk    *vfs.Mem
	founder bool // its next start founds the cluster
	full    bool // its disk, on purpose
	ailing  bool // its process may end by itself, because of what was done to its disk
	harmed  bool // something was done to what its disk holds: that it finds damage, or has no copy, is no surprise
	starts  int
	client  *sdk.Client // that knows this node alone; made when it is needed
	proc    *process    // nil while nothing runs
}

// process is one start of a broker.
type process struct {
	machine *Machine
	disk    *vfs.Fault // the node's, as this process has it
	srv     *server.Server
	cancel  context.CancelFunc
	done    chan struct{} // closed when its start is over, and nobody watches it any more
	up      atomic.Bool   // serves

	released  chan struct{} // closed when hung syncs go on
	releasing sync.Once
	failed    chan struct{}         // closed when its disk has failed
	closed    chan struct{}         // closed when the server is
	end       atomic.Pointer[error] // why it ended by itself: it was refused at its start, or it said that it must stop
}

// Start starts a process and returns at once.
func (n *Node) Start() {
	n.c.T.Helper()
	if n.proc != nil {
		n.c.T.Fatalf("%s runs already", n.Name)
	}
	n.starts++
	n.ailing = n.full // which may not be enough to start on
	n.c.Trace.Logf("script", "start %s", n.Name)
	cfg := n.Config
	if n.founder {
		yes := true
		cfg.Bootstrap = &yes
		n.founder = false
	}
	p := &process{machine: n.c.Net.Machine(n.IP), disk: vfs.NewFault(n.seenDisk(), usualDisk)}
	srv, err := server.New(cfg, server.Deps{
		FS: p.disk, Logger: n.c.Trace.logger(fmt.Sprintf("%s#%d", n.Name, n.starts)), Version: "sim",
		Listen: p.machine.Listen, ListenPacket: p.machine.ListenPacket, Dial: p.machine.Dial,
	})
	if err != nil {
		n.c.T.Fatal(err)
	}
	// The context is the broker's for life.
	ctx, cancel := context.WithCancel(context.Background())
	p.srv, p.cancel, p.done, p.released = srv, cancel, make(chan struct{}), make(chan struct{})
	p.failed, p.closed = make(chan struct{}), make(chan struct{})
	n.proc = p
	n.c.ended.Go(func() { p.run(ctx, n) })
}

// seenDisk is the disk as the next process has it.
func (n *Node) seenDisk() vfs.FS {
	if n.c.options.Disk == nil {
		return n.disk
	}
	return n.c.options.Disk(n.index, n.disk)
}

// release lets hung syncs go on.
func (p *process) release() { p.releasing.Do(func() { close(p.released) }) }

// run starts the broker and watches whether it says that it must stop.
func (p *process) run(ctx context.Context, n *Node) {
	defer close(p.done)
	n.c.ended.Go(func() { p.watchDisk(n) })
	if err := p.srv.Start(ctx); err != nil {
		n.c.Trace.Logf(n.Name, "did not start: %v", err)
		p.end.Store(&err)
		return
	}
	n.c.Trace.Logf(n.Name, "serves")
	p.up.Store(true)
	select {
	case <-p.failed:
		p.up.Store(false)
	case err := <-p.srv.Stopped():
		p.mustStop(n, err)
	case <-ctx.Done():
	}
}

// watchDisk ends the process when its disk fails, as cmd/eastguard does: at once, also in the middle of its start, and
// without a graceful stop.
func (p *process) watchDisk(n *Node) {
	select {
	case err := <-p.srv.Fatal():
		p.machine.Kill()
		p.mustStop(n, err)
		close(p.failed)
	case <-p.closed:
	}
}

// mustStop notes why the broker ended by itself.
func (p *process) mustStop(n *Node, err error) {
	n.c.Trace.Logf(n.Name, "must stop: %v", err)
	p.up.Store(false)
	p.end.Store(&err)
}

// Serving reports whether the node's broker has started, and runs.
func (n *Node) Serving() bool { return n.proc != nil && n.proc.up.Load() }

// Ended is why the node's broker ended by itself; nil while it did not.
func (n *Node) Ended() error {
	if n.proc == nil {
		return nil
	}
	if err := n.proc.end.Load(); err != nil {
		return *err
	}
	return nil
}

// Kill ends the broker as kill -9 does: the disk has everything that was written.
func (n *Node) Kill() {
	n.c.Trace.Logf("script", "kill %s", n.Name)
	n.cutOff(func(disk *vfs.Mem) *vfs.Mem { return disk.Snapshot() })
}

// keepUnsynced is the part of the writes on their way to the disk that a crash leaves.
const keepUnsynced = 0.5

// Crash ends the broker as a loss of power does: of what was not synced a part is gone.
func (n *Node) Crash() {
	n.c.Trace.Logf("script", "crash %s", n.Name)
	rng := rand.New(rand.NewSource(n.c.Rand.Int64()))
	n.cutOff(func(disk *vfs.Mem) *vfs.Mem { return disk.CrashClone(rng, keepUnsynced) })
}

// cutOff makes the process harmless and its disk somebody else's, then closes it in its own time.
func (n *Node) cutOff(left func(*vfs.Mem) *vfs.Mem) {
	n.c.T.Helper()
	p := n.detach()
	p.machine.Kill()
	n.disk = left(n.disk)
	p.release()
	n.c.ended.Go(func() { n.end(p) })
	n.checkDisk(n.disk.Snapshot(), nil)
}

// Stop ends the broker in good order and waits for it.
func (n *Node) Stop() {
	n.c.T.Helper()
	n.c.Trace.Logf("script", "stop %s", n.Name)
	n.end(n.detach())
	n.c.Trace.Logf("script", "stopped %s", n.Name)
}

// Restart is Stop and Start.
func (n *Node) Restart() {
	n.Stop()
	n.Start()
}

func (n *Node) detach() *process {
	n.c.T.Helper()
	p := n.proc
	if p == nil {
		n.c.T.Fatalf("%s does not run", n.Name)
	}
	n.proc, n.ailing = nil, false
	return p
}

// haltedAfter is when a start whose disk failed, and that has not ended by itself, waits for the end of the process.
const haltedAfter = 5 * time.Second

// end closes a process, in the order in which cmd/eastguard does.
func (n *Node) end(p *process) {
	p.cancel()
	p.release()
	select {
	case <-p.done:
	case <-p.failed:
		select {
		case <-p.done:
		case <-time.After(haltedAfter):
		}
	}
	err := p.srv.Close()
	close(p.closed)
	<-p.done
	if err != nil && !p.machine.dead.Load() {
		n.c.Trace.Logf(n.Name, "close: %v", err)
		n.c.T.Errorf("close %s: %v", n.Name, err)
	}
}

// Disk is the node's disk. A broker that runs goes on writing to it.
func (n *Node) Disk() *vfs.Mem { return n.disk }

// SetDisk gives the node another disk: an empty one, or one kept earlier. It must not run.
func (n *Node) SetDisk(disk *vfs.Mem) {
	n.c.T.Helper()
	if n.proc != nil {
		n.c.T.Fatalf("%s runs", n.Name)
	}
	n.c.Trace.Logf("script", "another disk for %s", n.Name)
	n.disk = disk
}

// Wipe gives the node an empty disk.
func (n *Node) Wipe() { n.SetDisk(vfs.NewMem()) }

// admin asks this node.
func (n *Node) admin() *sdk.Admin {
	if n.client == nil {
		n.client = n.c.ClientOf(n)
	}
	return n.client.Admin()
}

// Inspect looks inside the node's broker.
func (n *Node) Inspect() server.Inside { return n.proc.srv.Inspect() }

// describe is the node on some lines, for traces.
func (n *Node) describe() string {
	if n.proc == nil {
		return n.Name + ": down"
	}
	var b strings.Builder
	in := n.Inspect()
	fmt.Fprintf(&b, "%s: serving=%t ended=%v boot=%d cluster=%s", n.Name, n.Serving(), n.Ended(), in.Boot, in.Cluster)
	for _, r := range in.Replicas {
		fmt.Fprintf(&b, "\n    shard %s %s leader=%s term=%d applied=%d index=%d voters=%v ready=%t topics=%d", r.ID, r.State, r.Leader, r.Term, r.Applied, r.Index, r.Voters, r.Ready, len(r.Topics))
	}
	for _, line := range n.describeCopies(n.c.streamed()) {
		b.WriteString("\n    " + line)
	}
	return b.String()
}
