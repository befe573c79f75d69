package server

import (
	"context"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/coord"
	"github.com/eastguard/eastguard/internal/dataplane"
	"github.com/eastguard/eastguard/internal/meta"
	"github.com/eastguard/eastguard/internal/planner"
	"github.com/eastguard/eastguard/internal/task"
)

// The coordinators need the data plane, and the shards they coordinate lead before there is one: who leads is
// remembered until then.

// startPlane makes the node ready to be told what to lead.
func (s *Server) startPlane(ctx context.Context) error {
	s.plane = dataplane.New(dataplane.Options{
		Node: s.id.Node, Disk: s.id.Disk, Boot: s.id.Boot, Log: s.store,
		RequestRoll: s.requestRoll, LoadState: s.loadState, FetchTail: s.fetchTail, Links: s.peers,
		MaxBatchBytes:  int(s.maxBatchBytes()),
		ReplicaTimeout: s.cfg.ReplicaTimeout(),
		Replaceable: func(asg meta.Assignment, late []base.NodeID) bool {
			return planner.Replaceable(asg.Config, asg.Replicas, late, s.view())
		},
		SegmentIdle: s.cfg.SegmentIdle(),
		Logger:      s.deps.Logger, Metrics: s.registry, OnFatal: s.fail, OnRoll: s.onRoll, OnCopy: s.onCopy,
	})
	// Before the store, which calls the plane back; after the coordinators, which give it orders.
	s.undo.Push("data plane", s.plane.Close)
	if err := s.plane.Start(ctx); err != nil {
		return err
	}
	s.orders.plane.Store(s.plane)
	return nil
}

// viewChanged tells the coordinators that nodes have come, gone or started anew.
func (s *Server) viewChanged() {
	if c := s.coord.Load(); c != nil {
		c.ViewChanged()
	}
}

func (s *Server) startCoord(context.Context) error {
	c := coord.New(coord.Options{
		Shards: s.host, Nodes: nodes{s}, View: s.connected, Contacts: s.contacts,
		Limits: meta.Limits{SegmentBytes: s.cfg.SegmentSizeLimitBytes, SegmentAgeMs: s.cfg.MaxSegmentAge().Milliseconds()},
		Logger: s.deps.Logger,
	})
	// Before the data plane and the shards, both of which the loops use until they have ended.
	s.undo.Push("coordinators", c.Close)
	s.leads.Lock()
	defer s.leads.Unlock()
	s.coord.Store(c)
	for shard := range s.leads.shards {
		c.Lead(shard, true)
	}
	s.watchContacts(c)
	return nil
}

// watchContacts tells the coordinators what the connections know, which is seconds before it is rumoured.
func (s *Server) watchContacts(c *coord.Coord) {
	changed, unsubscribe := s.peers.Subscribe()
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-changed:
				c.ViewChanged()
			case <-stop:
				return
			}
		}
	})
	s.undo.Push("coordinators' contacts", func() error {
		unsubscribe()
		close(stop)
		watching.Wait()
		return nil
	})
}

// onLead hears that a shard serves here as leader, or no longer does.
func (s *Server) onLead(shard base.ShardID, leading bool, term uint64) {
	s.noteLead(shard, leading, term)
	s.leadChanged(shard, leading, term)
	s.leads.Lock()
	defer s.leads.Unlock()
	if leading {
		s.leads.shards[shard] = struct{}{}
	} else {
		delete(s.leads.shards, shard)
	}
	if c := s.coord.Load(); c != nil {
		c.Lead(shard, leading)
	}
}

const (
	ledLook  = 10 * time.Millisecond
	ledGiven = 500 * time.Millisecond // in which at least one more segment that is led here must have ended
)

// awaitNothingLed waits while the segments that this node leads go to others, at their coordinators' orders. What cannot
// go anywhere ends with the process, and is fenced.
func (s *Server) awaitNothingLed(ctx context.Context) {
	led, since := s.plane.Leads(), time.Now()
	for led > 0 && time.Since(since) < ledGiven && task.Pause(ctx, ledLook) {
		if now := s.plane.Leads(); now < led {
			led, since = now, time.Now()
		}
	}
}
