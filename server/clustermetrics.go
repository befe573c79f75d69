package server

import (
	"slices"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/gossip"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/telemetry"
	"github.com/eastguard/eastguard/internal/topology"
	"github.com/eastguard/eastguard/internal/wire"
)

// figuresAge is how old a figure that takes a walk to find may be: the gauges of one scrape share a walk.
const figuresAge = 500 * time.Millisecond

// figures keeps what a walk found for the metrics that are made of it.
type figures[T any] struct {
	look func() T

	mu    sync.Mutex
	at    time.Time
	found T
}

func (f *figures[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.at.IsZero() || now.Sub(f.at) >= figuresAge {
		f.found, f.at = f.look(), now
	}
	return f.found
}

// registerCluster counts what this node does with others. It comes when all parts are there.
func (s *Server) registerCluster() {
	s.registry.GaugeFunc("eastguard_ready", "Whether /readyz says that this node serves: 1 or 0.", func() float64 {
		if len(s.readiness()) > 0 {
			return 0
		}
		return 1
	})
	registerPeers(s.registry, s.peers)
	s.registry.CounterFunc("eastguard_silent_connections_closed_total", "Connections that were closed because they said nothing and others waited.", func() float64 {
		return float64(s.peers.Stats().ShownOut + s.demux.ShownOut() + s.dataDemux.ShownOut())
	}, "from", "nodes")
	registerMembers(s.registry, s.members.agent.Load, s.view)
	registerShards(s.registry, &figures[shardFigures]{look: s.lookAtShards})
	registerCoordinators(s.registry, &figures[coord.Status]{look: s.lookAtCoordinators})
}

// linkFigures are the connections to other nodes at one moment.
type linkFigures struct {
	peer.Stats
	status        map[peer.Status]int
	median, worst time.Duration // round trips
}

func lookAtLinks(h *peer.Host) linkFigures {
	f := linkFigures{Stats: h.Stats(), status: make(map[peer.Status]int)}
	var trips []time.Duration
	for _, state := range h.Liveness() {
		f.status[state.Status]++
		if state.Status == peer.Reachable && state.RTT > 0 {
			trips = append(trips, state.RTT)
		}
	}
	if len(trips) > 0 {
		slices.Sort(trips)
		f.median, f.worst = trips[len(trips)/2], trips[len(trips)-1]
	}
	return f
}

func registerPeers(r *telemetry.Registry, h *peer.Host) {
	f := &figures[linkFigures]{look: func() linkFigures { return lookAtLinks(h) }}
	for _, status := range []peer.Status{peer.Reachable, peer.Unreachable, peer.Refused} {
		r.GaugeFunc("eastguard_peers", "Other nodes that this one stays connected with, by what their connection says.",
			func() float64 { return float64(f.get().status[status]) }, "status", status.String())
	}
	r.GaugeFunc("eastguard_peer_connections", "Connections to other nodes.", func() float64 { return float64(f.get().Connections) })
	r.CounterFunc("eastguard_peer_frames_total", "Messages between nodes.", func() float64 { return float64(f.get().FramesIn) }, "direction", "in")
	r.CounterFunc("eastguard_peer_frames_total", "Messages between nodes.", func() float64 { return float64(f.get().FramesOut) }, "direction", "out")
	r.CounterFunc("eastguard_peer_bytes_total", "Bytes of messages between nodes.", func() float64 { return float64(f.get().BytesIn) }, "direction", "in")
	r.CounterFunc("eastguard_peer_bytes_total", "Bytes of messages between nodes.", func() float64 { return float64(f.get().BytesOut) }, "direction", "out")
	r.CounterFunc("eastguard_peer_busy_total", "Messages between nodes that were refused at a limit.", func() float64 { return float64(f.get().Busy) })
	r.CounterFunc("eastguard_peer_dials_total", "Attempts to connect to another node.", func() float64 { return float64(f.get().Dials) })
	r.CounterFunc("eastguard_peer_dial_failures_total", "Those that failed.", func() float64 { return float64(f.get().DialFailures) })
	r.CounterFunc("eastguard_peer_silences_total", "Times that another node became unreachable.", func() float64 { return float64(f.get().Silences) })
	r.GaugeFunc("eastguard_peer_rtt_seconds", "Last round trip to the other nodes, the median and the worst of them.", func() float64 { return f.get().median.Seconds() }, "stat", "median")
	r.GaugeFunc("eastguard_peer_rtt_seconds", "Last round trip to the other nodes, the median and the worst of them.", func() float64 { return f.get().worst.Seconds() }, "stat", "worst")
}

// registerMembers counts what the gossip believes and what it had to correct.
func registerMembers(r *telemetry.Registry, agent func() *gossip.Agent, view func() topology.View) {
	believed := &figures[map[topology.Liveness]int]{look: func() map[topology.Liveness]int {
		n := make(map[topology.Liveness]int)
		for _, node := range view().Nodes {
			n[node.Liveness]++
		}
		return n
	}}
	for _, l := range []topology.Liveness{topology.Alive, topology.Suspect, topology.Dead, topology.Left} {
		r.GaugeFunc("eastguard_members", "Nodes, this one included, by what it believes of them.",
			func() float64 { return float64(believed.get()[l]) }, "state", l.String())
	}
	stats := &figures[gossip.Stats]{look: func() gossip.Stats {
		if a := agent(); a != nil {
			return a.Stats()
		}
		return gossip.Stats{}
	}}
	r.GaugeFunc("eastguard_gossip_claims", "Shards whose leader is known by gossip.", func() float64 { return float64(stats.get().Claims) })
	r.GaugeFunc("eastguard_gossip_health", "How much this node doubts its own failure detector; 0 is best.", func() float64 { return float64(stats.get().Health) })
	r.CounterFunc("eastguard_gossip_vetoes_total", "Signs of life that were refused because that start of the node had been declared dead.", func() float64 { return float64(stats.get().Vetoes) })
	r.CounterFunc("eastguard_gossip_renames_total", "Times that this process came back after it had been declared dead by mistake.", func() float64 { return float64(stats.get().Renames) })
	r.CounterFunc("eastguard_gossip_dropped_total", "Packets and streams for which membership was too slow.", func() float64 { return float64(stats.get().Dropped) })
}

// shardFigures are the replicas here at one moment.
type shardFigures struct {
	total, led, following, leaderless int
	unapplied, trails                 uint64
	snapshots                         int64
	logBytes, logFiles                int64
}

func (s *Server) lookAtShards() shardFigures {
	log := s.host.LogStats()
	f := shardFigures{total: s.host.Shards(), logBytes: log.Bytes, logFiles: int64(log.Files)}
	for _, st := range s.host.Status() {
		switch st.Leader {
		case "":
			f.leaderless++
		case s.id.Node:
			f.led++
		default:
			f.following++
		}
		f.unapplied = max(f.unapplied, st.Commit-min(st.Applied, st.Commit))
		if d, err := s.host.Detail(st.ID); err == nil {
			f.snapshots += d.SnapshotBytes
			var seats wire.ShardStatus
			s.addSeats(&seats, d)
			f.trails = max(f.trails, seats.Trails)
		}
	}
	return f
}

func registerShards(r *telemetry.Registry, f *figures[shardFigures]) {
	r.GaugeFunc("eastguard_shards", "Shards of the cluster.", func() float64 { return float64(f.get().total) })
	r.GaugeFunc("eastguard_shard_replicas", "Replicas of shards on this node: led here, following another node, or without a leader.", func() float64 { return float64(f.get().led) }, "role", "leading")
	r.GaugeFunc("eastguard_shard_replicas", "Replicas of shards on this node: led here, following another node, or without a leader.", func() float64 { return float64(f.get().following) }, "role", "following")
	r.GaugeFunc("eastguard_shard_replicas", "Replicas of shards on this node: led here, following another node, or without a leader.", func() float64 { return float64(f.get().leaderless) }, "role", "leaderless")
	r.GaugeFunc("eastguard_shard_unapplied", "Committed commands that the slowest replica here has not applied.", func() float64 { return float64(f.get().unapplied) })
	r.GaugeFunc("eastguard_shard_trails", "Commands that the voter furthest behind lacks, in any shard led here.", func() float64 { return float64(f.get().trails) })
	r.GaugeFunc("eastguard_shard_snapshot_bytes", "Bytes of the newest snapshots of all replicas here.", func() float64 { return float64(f.get().snapshots) })
	r.GaugeFunc("eastguard_shard_log_bytes", "Bytes of the log that all replicas here share.", func() float64 { return float64(f.get().logBytes) })
	r.GaugeFunc("eastguard_shard_log_files", "Its files.", func() float64 { return float64(f.get().logFiles) })
}

// lookAtCoordinators adds up what the loops of the shards led here have to do.
func (s *Server) lookAtCoordinators() (sum coord.Status) {
	c := s.coord.Load()
	if c == nil {
		return sum
	}
	for _, st := range c.Status() {
		sum.Untold += st.Untold
		sum.Recoveries += st.Recoveries
		sum.Undecided += st.Undecided
		sum.Wishes += st.Wishes
		sum.Waiting += st.Waiting
	}
	return sum
}

func registerCoordinators(r *telemetry.Registry, f *figures[coord.Status]) {
	r.GaugeFunc("eastguard_coord_untold_orders", "Orders of the coordinators here that nodes have not confirmed yet.", func() float64 { return float64(f.get().Untold) })
	r.GaugeFunc("eastguard_coord_recoveries", "Segments that wait for the coordinators here to seal them.", func() float64 { return float64(f.get().Recoveries) })
	r.GaugeFunc("eastguard_coord_undecided", "Segments of which nobody can say yet how they end: they wait for a replica.", func() float64 { return float64(f.get().Undecided) })
	r.GaugeFunc("eastguard_coord_wishes", "Segments that are to end soon for the sake of their replicas, which are too few or are to move.", func() float64 { return float64(f.get().Wishes) })
	r.GaugeFunc("eastguard_coord_waiting_rolls", "Leaders of segments that wait for the coordinators here to decide on a successor.", func() float64 { return float64(f.get().Waiting) })
}
