package server

import "context"

// sharesKey ends a start whose cluster key is not that of the others: it would be admitted and serve, while the gossip
// of the others buries it. One node that agrees is enough, and it takes most of the others to disagree, so that one that is
// wrong does not turn away those that are right.
func (s *Server) sharesKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whoWithin)
	defer cancel()
	asked := s.doors()
	asked = asked[:min(len(asked), askAtOnce)]
	answers := make(chan *whoAnswer, len(asked))
	for _, node := range asked {
		s.members.tasks.Go("cluster key", func(context.Context) error {
			a, err := callPeer[whoAnswer](ctx, s.peers, node, kindWho, whoMessage{})
			if err != nil || a.Cluster != s.id.Cluster {
				answers <- nil // it says nothing about the key
				return nil
			}
			answers <- &a
			return nil
		})
	}
	differ := 0
	var refused error
	for range asked {
		select {
		case a := <-answers:
			if a == nil {
				continue
			}
			err := s.checkKey(a)
			if err == nil {
				return nil
			}
			differ++
			refused = err
		case <-ctx.Done():
		}
	}
	if 2*differ > len(asked) {
		return refused
	}
	return nil
}
