package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/wire"
)

// ListNodes lists every node of the cluster. What a node says of itself was asked of it just now; one that did not
// answer is shown as the others last heard of it, and named in Missing.
func (a *Admin) ListNodes(ctx context.Context) (NodeList, error) {
	var resp NodeList
	if err := a.do(ctx, wire.KindListNodes, wire.ListNodesRequest{}, &resp); err != nil {
		return resp, err
	}
	a.c.brokers.learn(addressesOf(resp.Nodes))
	return resp, nil
}

// NodeRing is the ring as one node has it, and what that node believes of the others; an empty id means whichever
// answers. With tokens, each member's places on the ring are listed. Errors: CodeNodeNotFound.
func (a *Admin) NodeRing(ctx context.Context, id NodeID, tokens bool) (NodeRing, error) {
	var resp NodeRing
	err := a.do(ctx, wire.KindNodeRing, wire.NodeRingRequest{Node: id, Tokens: tokens}, &resp)
	return resp, err
}

// Reach makes one node reach others and says how that went. Errors: CodeNodeNotFound; CodeUnreachable when this
// client cannot reach the node that is to do it.
func (a *Admin) Reach(ctx context.Context, r Reach) (Reached, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var resp Reached
	req := wire.ReachRequest{Nodes: r.Nodes, Count: r.Count}
	if r.From == "" {
		err := a.c.ask(ctx, wire.KindReach, req, &resp)
		return resp, err
	}
	err := a.c.askNode(ctx, r.From, wire.KindReach, req, &resp)
	return resp, err
}

// Ping asks one node for a sign of life, over this client's own connection to it, and returns how long that took. The
// first may include the time to connect. Errors: CodeNodeNotFound; CodeUnreachable.
func (a *Admin) Ping(ctx context.Context, id NodeID) (time.Duration, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	began := time.Now()
	var resp wire.PingResponse
	err := a.c.askNode(ctx, id, wire.KindPing, wire.PingRequest{}, &resp)
	return time.Since(began), err
}

// ChangeNode makes a node leave, forgets a dead one, or lets a node come back under its name with another disk.
//
// Errors: CodeNodeNotFound; CodePreconditionFailed for a node that is not in the state that the change is for.
func (a *Admin) ChangeNode(ctx context.Context, r ChangeNode) (ChangedNode, error) {
	var resp ChangedNode
	err := a.do(ctx, wire.KindChangeNode, wire.ChangeNodeRequest{
		RequestID: newRequestID(), Node: r.Node, Change: r.Change, Disk: r.Disk, DryRun: r.DryRun,
	}, &resp)
	return resp, err
}

// askNode asks one node and no other. Its address may have changed since it was learnt, so a node that is not there
// is looked up once more.
func (c *Client) askNode(ctx context.Context, id NodeID, kind wire.Kind, req, resp any) error {
	op := kindName(kind)
	addr := c.brokers.address(id)
	for looked := false; ; looked = true {
		var err error
		if addr != "" {
			if err = c.askAt(ctx, addr, kind, req, resp); err == nil || !errors.Is(err, CodeUnreachable) {
				return err
			}
		}
		if looked {
			return err
		}
		before := addr
		if addr, err = c.lookUp(ctx, id, err); err != nil {
			return about(op, err)
		}
		if addr == before {
			return base.Errorf(base.CodeUnreachable, op, "node %s cannot be reached at %s", id, addr)
		}
	}
}

// askAt sends one request to one address, once.
func (c *Client) askAt(ctx context.Context, addr string, kind wire.Kind, req, resp any) error {
	op := kindName(kind)
	b := c.brokers.at(addr)
	conn, err := b.connect(ctx)
	if err != nil {
		return about(op, err)
	}
	answer, err := conn.Call(ctx, kind, wire.Encode(req), nil)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			b.suspect(conn)
		}
		return about(op, err)
	}
	if err := wire.Decode(answer.Message, resp); err != nil {
		return about(op, err)
	}
	return nil
}

// lookUp asks the cluster for a node's address. cause is why the one that was known does not do.
func (c *Client) lookUp(ctx context.Context, id NodeID, cause error) (string, error) {
	var list wire.ListNodesResponse
	if err := c.ask(ctx, wire.KindListNodes, wire.ListNodesRequest{}, &list); err != nil {
		if cause != nil {
			return "", cause
		}
		return "", err
	}
	c.brokers.learn(addressesOf(list.Nodes))
	for _, n := range list.Nodes {
		if n.ID == id {
			if n.Address == "" {
				return "", base.Errorf(base.CodeUnreachable, "find node", "node %s has no address", id)
			}
			return n.Address, nil
		}
	}
	return "", base.Errorf(base.CodeNodeNotFound, "find node", "node %s not found", id)
}

func addressesOf(nodes []NodeStatus) []NodeAddress {
	all := make([]NodeAddress, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, NodeAddress{ID: n.ID, Address: n.Address, Rack: n.Rack})
	}
	return all
}
