package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

const schemaNodeVerify = "node.verify/1"

// verifyDocument is the document of node ring --verify: the believes matrix, a row an observer.
type verifyDocument struct {
	Schema    string        `json:"schema"`
	Agree     bool          `json:"agree"`
	Observers []observerRow `json:"observers"`
	Problems  []string      `json:"problems"`
}

type observerRow struct {
	Node     string            `json:"id"`
	State    string            `json:"state" doc:"as the node that was asked for the list has it"`
	Answered bool              `json:"answered"`
	Error    string            `json:"error,omitempty"`
	Hash     term.Hash         `json:"ring_hash"`
	Version  uint64            `json:"ring_version"`
	Believes map[string]string `json:"believes" doc:"state of each member, by id"`
}

const (
	// observersAtOnce bounds the nodes asked at the same time.
	observersAtOnce = 16
	// nodePatience is how long one node of many gets, so that one that is stopped does not cost the others' answers.
	nodePatience = 3 * time.Second
)

func runRingVerify(ctx context.Context, a *app, admin interface {
	ringReader
	nodeLister
},
) error {
	list, err := admin.ListNodes(ctx)
	if err != nil {
		return err
	}
	doc := verifyDocument{Schema: schemaNodeVerify, Observers: make([]observerRow, len(list.Nodes))}
	slices.SortFunc(list.Nodes, func(x, y sdk.NodeStatus) int { return strings.Compare(string(x.ID), string(y.ID)) })
	slots := make(chan struct{}, observersAtOnce)
	var asked sync.WaitGroup
	for i, n := range list.Nodes {
		row := &doc.Observers[i]
		*row = observerRow{Node: string(n.ID), State: n.State, Believes: map[string]string{}}
		if n.State == "dead" || n.State == "left" {
			continue // there is nobody to ask
		}
		asked.Go(a.Guard.Func(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, nodePatience)
			defer cancel()
			ring, err := admin.NodeRing(ctx, sdk.NodeID(row.Node), false)
			row.fill(ring, err)
		}))
	}
	asked.Wait()
	silent := doc.judge()
	if err := a.output().Object(doc, func(p *term.Page) { verifyPage(p, doc) }); err != nil {
		return err
	}
	switch {
	case !doc.Agree:
		return notMet("the nodes' views differ")
	case silent > 0:
		return errorf(sdk.CodePartial, "%s did not answer; those that did agree", plural(int64(silent), "node")).WithHint("see: eg-cli node ping --indirect")
	}
	return nil
}

func (r *observerRow) fill(ring sdk.NodeRing, err error) {
	if err != nil {
		r.Error = describe(err).Message
		return
	}
	r.Answered, r.Hash, r.Version = true, term.Hash(ring.Hash), ring.Version
	for _, m := range ring.Members {
		r.Believes[string(m.Node)] = m.State
	}
}

// judge compares the observers that answered, and counts those that should have and did not.
func (d *verifyDocument) judge() (silent int) {
	d.Problems = []string{}
	var first *observerRow
	for i := range d.Observers {
		o := &d.Observers[i]
		switch {
		case !o.Answered && o.Error != "":
			silent++
			d.Problems = append(d.Problems, o.Node+" did not answer: "+o.Error)
		case !o.Answered:
		case first == nil:
			first = o
		default:
			d.Problems = append(d.Problems, differences(first, o)...)
		}
	}
	d.Agree = len(d.Problems) == silent
	return silent
}

func differences(a, b *observerRow) []string {
	var found []string
	if a.Hash != b.Hash || a.Version != b.Version {
		found = append(found, fmt.Sprintf("%s has ring %s, version %d; %s has ring %s, version %d", a.Node, a.Hash, a.Version, b.Node, b.Hash, b.Version))
	}
	for _, m := range membersOf([]observerRow{*a, *b}) {
		if x, y := believed(a, m), believed(b, m); x != y {
			found = append(found, fmt.Sprintf("%s believes that %s is %s; %s that it is %s", a.Node, m, x, b.Node, y))
		}
	}
	return found
}

func believed(o *observerRow, member string) string {
	if s := o.Believes[member]; s != "" {
		return s
	}
	return "unknown"
}

func membersOf(observers []observerRow) []string {
	var all []string
	for _, o := range observers {
		for m := range o.Believes {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	slices.Sort(all)
	return all
}

// verifyPage prints the matrix: rows are observers, columns are members, a cell is what the one believes of the other.
func verifyPage(p *term.Page, doc verifyDocument) {
	members := membersOf(doc.Observers)
	grid := [][]string{append([]string{"BELIEVES"}, append(slices.Clone(members), "RING", "VERSION")...)}
	for _, o := range doc.Observers {
		line := []string{o.Node}
		for _, m := range members {
			line = append(line, believesLetter(o, m))
		}
		hash, version := "-", "-"
		if o.Answered {
			hash, version = o.Hash.String(), fmt.Sprint(o.Version)
		}
		grid = append(grid, append(line, hash, version))
	}
	widths := make([]int, len(grid[0]))
	for _, line := range grid {
		for i := range line {
			line[i] = term.Escape(line[i])
			widths[i] = max(widths[i], term.Width(line[i]))
		}
	}
	for i, line := range grid {
		for j := range line {
			line[j] = term.Pad(line[j], widths[j], false)
		}
		text := strings.TrimRight(strings.Join(line, "  "), " ")
		if i == 0 {
			text = p.Style().Bold(text)
		}
		p.Line("%s", text)
	}
	if len(doc.Problems) == 0 {
		p.Line("%s: every node that lives has the same ring and believes the same", p.Style().OK("agreed"))
		return
	}
	for _, problem := range doc.Problems {
		p.Line("%s", p.Style().Bad(term.Escape(problem)))
	}
}

// believesLetter is A, S, D or L; ? for a member that the observer does not know, - where nobody answered.
func believesLetter(o observerRow, member string) string {
	if !o.Answered {
		return "-"
	}
	return stateLetters(believed(&o, member), "")[:1]
}
