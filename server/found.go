package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/peer"
	"github.com/eastguard/eastguard/internal/pledge"
)

// founding is this node's part in founding a cluster with others. See package pledge, which decides.
type founding struct {
	turn turn
	core *pledge.Core           // nil: it does not found with others
	why  atomic.Pointer[string] // what it does instead
}

// founder is this node as the others pledge to it.
func (s *Server) founder() pledge.Founder {
	return pledge.Founder{Node: s.id.Node, Disk: s.id.Disk, Addr: s.self.gossip.String()}
}

// plan resolves the names of the list. It fails as long as one of them has no address: a list that lacks somebody would
// be another list.
func (s *Server) plan(ctx context.Context, aliases map[string]bool) (pledge.Plan, error) {
	own := s.self.gossip.String()
	list := []string{own}
	for _, seed := range s.cfg.JoinSeedNodes {
		addrs, err := s.resolveSeed(ctx, seed)
		if err != nil {
			return pledge.Plan{}, base.Wrap(base.CodeUnreachable, "resolve "+seed, err)
		}
		for _, a := range addrs {
			if addr := a.String(); !aliases[addr] {
				list = append(list, addr)
			}
		}
	}
	slices.Sort(list)
	return pledge.Plan{List: slices.Compact(list), Expect: s.cfg.BootstrapExpect}, nil
}

// resolveSeed is every address behind a seed that this node's own family of addresses reaches.
func (s *Server) resolveSeed(ctx context.Context, seed string) ([]netip.AddrPort, error) {
	if ap, err := netip.ParseAddrPort(seed); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}, nil
	}
	host, port, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	ips, err := s.deps.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var near, far []netip.AddrPort
	for _, ip := range ips {
		ap := netip.AddrPortFrom(ip.Unmap(), uint16(n))
		if ap.Addr().Is4() == s.self.gossip.Addr().Is4() {
			near = append(near, ap)
		} else {
			far = append(far, ap)
		}
	}
	switch {
	case len(near) > 0:
		return near, nil
	case len(far) > 0:
		return far, nil
	}
	return nil, fmt.Errorf("%s has no address", host)
}

// foundTogether founds a cluster with the others of the list, or joins the one that they found.
func (s *Server) foundTogether(ctx context.Context) error {
	search := newSearch(s)
	for {
		met, err := search.round(ctx)
		if err != nil {
			return err
		}
		if met != nil {
			return s.adopt(ctx, met)
		}
		minted, err := s.pledgeRound(ctx, search)
		if minted || err != nil {
			return err
		}
		if err := search.pause(ctx); err != nil {
			return err
		}
	}
}

// pledgeRound does this node's part once and reports whether it has founded the cluster.
func (s *Server) pledgeRound(ctx context.Context, search *search) (minted bool, err error) {
	plan, err := s.plan(ctx, search.aliases)
	if err != nil {
		search.waitsFor(err.Error())
		return false, nil
	}
	if err := s.replan(ctx, plan); err != nil {
		return false, err
	}
	step, err := s.pledgeStep(ctx, (*pledge.Core).Tick)
	if err != nil {
		return false, err
	}
	for _, addr := range step.To {
		answer, err := s.askPledge(ctx, addr, step.Ask)
		if err != nil {
			search.note(addr, err)
			continue
		}
		next, err := s.pledgeStep(ctx, func(c *pledge.Core) pledge.Step { return c.OnAnswer(answer) })
		if err != nil {
			return false, err
		}
		step.Mint = step.Mint || next.Mint
	}
	if err := s.founding.turn.take(ctx); err != nil {
		return false, err
	}
	if core := s.founding.core; core != nil {
		search.waitsFor(core.Waiting())
	}
	s.founding.turn.give()
	if !step.Mint {
		return false, nil
	}
	return true, s.found(ctx)
}

// replan makes the core anew when the list has changed, as when a name has got another address.
func (s *Server) replan(ctx context.Context, plan pledge.Plan) error {
	if err := s.founding.turn.take(ctx); err != nil {
		return err
	}
	defer s.founding.turn.give()
	if c := s.founding.core; c != nil && c.PlannedAs(plan) {
		return nil
	}
	core, err := pledge.New(s.founder(), plan, s.id.Pledge)
	if err != nil {
		return err
	}
	s.founding.core = core
	return nil
}

// pledgeStep gives the core one thing to think about, and makes durable what must be before anything is said.
func (s *Server) pledgeStep(ctx context.Context, think func(*pledge.Core) pledge.Step) (pledge.Step, error) {
	if err := s.founding.turn.take(ctx); err != nil {
		return pledge.Step{}, err
	}
	defer s.founding.turn.give()
	if s.founding.core == nil {
		return pledge.Step{}, nil
	}
	step := think(s.founding.core)
	if step.Write == nil {
		return step, nil
	}
	if err := s.id.SetPledge(s.deps.FS, s.cfg.DataDir, *step.Write); err != nil {
		s.founding.core = nil // what it believes was not made true
		return pledge.Step{}, base.Wrap(base.CodeInternal, "write pledge", err)
	}
	s.deps.Logger.Info("pledged to found a cluster with another node", "minter", step.Write.Minter.String(), "founders", fmt.Sprint(step.Write.Founders))
	return step, nil
}

// neverPledge says that a cluster is known: from now on this node pledges to nobody.
func (s *Server) neverPledge(ctx context.Context, cluster base.ClusterID) error {
	if err := s.founding.turn.take(ctx); err != nil {
		return err
	}
	defer s.founding.turn.give()
	if s.founding.core != nil {
		s.founding.core.MintedOrJoined(cluster)
	}
	return nil
}

func (s *Server) askPledge(ctx context.Context, addr string, ask *pledge.Ask) (pledge.Answer, error) {
	_, answer, err := callAddr[pledge.Answer](ctx, s.peers, addr, kindPledge, ask)
	return answer, err
}

// servePledge answers a minter.
func (s *Server) servePledge(ctx context.Context, _ *peer.Request, ask pledge.Ask) (pledge.Answer, error) {
	if cluster := s.host.Cluster(); !cluster.IsZero() {
		return pledge.Answer{From: s.founder(), Cluster: cluster, Refusal: fmt.Sprintf("node %s belongs to cluster %s already: join it", s.id.Node, cluster)}, nil
	}
	step, err := s.pledgeStep(ctx, func(c *pledge.Core) pledge.Step { return c.OnAsk(ask) })
	switch {
	case err != nil:
		return pledge.Answer{}, err
	case step.Answer != nil:
		return *step.Answer, nil
	}
	why := "is starting"
	if w := s.founding.why.Load(); w != nil {
		why = *w
	}
	return pledge.Answer{From: s.founder(), Refusal: fmt.Sprintf("node %s %s", s.id.Node, why)}, nil
}

// found mints a cluster. It is never done twice: shard.Bootstrap writes the id down before it makes the first group.
func (s *Server) found(ctx context.Context) error {
	const op = "found cluster"
	cluster, err := base.NewUUID(s.deps.Rand)
	if err != nil {
		return base.Wrap(base.CodeInternal, op, err)
	}
	if err := s.host.Start(ctx); err != nil {
		return err
	}
	cluster, err = s.host.Bootstrap(ctx, cluster)
	if err != nil {
		return err
	}
	s.deps.Logger.Info("cluster founded", "cluster", cluster.String(), "shards", s.host.Shards())
	return s.settle()
}
