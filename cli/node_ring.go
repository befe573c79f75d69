package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type ringReader interface {
	NodeRing(ctx context.Context, id sdk.NodeID, tokens bool) (sdk.NodeRing, error)
}

const schemaNodeRing = "node.ring/1"

// ringDocument is the document of node ring.
type ringDocument struct {
	Schema     string      `json:"schema"`
	Observer   string      `json:"observer"`
	ObservedAt term.Time   `json:"observed_at"`
	Hash       term.Hash   `json:"ring_hash" doc:"of the members and their tokens; equal on nodes with the same ring"`
	Version    uint64      `json:"ring_version" doc:"of the node table that the ring was made of"`
	Members    []memberRow `json:"members"`
}

type memberRow struct {
	Node   string      `json:"id" col:"NODE"`
	State  string      `json:"state" col:"BELIEVED" doc:"what the observer believes: alive, suspect, dead, left, unknown"`
	Status string      `json:"status" col:"STATUS"`
	Rack   string      `json:"rack" col:"RACK"`
	Boot   uint64      `json:"boot" col:"BOOT"`
	Vnodes int         `json:"vnodes" col:"TOKENS" doc:"0: not on the ring"`
	Owns   float64     `json:"owns_percent"`
	Share  string      `json:"-"`
	Since  term.Time   `json:"state_since" col:"SINCE" as:"age"`
	Tokens []term.Hash `json:"tokens,omitempty"`
}

// tokenRow is one line of node ring --tokens.
type tokenRow struct {
	Token string `json:"token" col:"TOKEN"`
	Node  string `json:"node" col:"NODE"`
	Span  string `json:"span" col:"SPAN"`
}

type nodeRingOptions struct {
	*app
	tokens   bool
	observer string
	verify   bool
}

func newNodeRingCommand(a *app) *cobra.Command {
	o := &nodeRingOptions{app: a}
	cmd := &cobra.Command{
		Use:   "ring",
		Short: "The hash ring, and what a node believes of the others; --verify compares all nodes",
		Long: "Shows the ring as one node has it. Placement follows the ring, so all nodes must have the same one: --verify asks\n" +
			"each for its own and prints who believes what of whom. It exits 12 when two differ; just after a change that is\n" +
			"normal for some seconds.",
		Example: `  node ring
  node ring --observer n2 --tokens
  node ring --verify
  node ring -o dot | dot -Tsvg > ring.svg`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "node.ring", noteExits: "4 8 12", noteDot: "yes"},
	}
	f := cmd.Flags()
	f.BoolVar(&o.tokens, "tokens", false, "list each node's places on the ring")
	f.StringVar(&o.observer, "observer", "", "the ring as this `NODE` has it")
	f.BoolVar(&o.verify, "verify", false, "ask every node and compare; exit 12 when views differ")
	completeWith(cmd, "observer", a.completeNode)
	o.watchable(cmd, func(ctx context.Context, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		if o.verify {
			if o.tokens || o.observer != "" || o.set.dot {
				return usagef("--verify asks every node and compares rings; --tokens, --observer and -o dot do not go with it")
			}
			return runRingVerify(ctx, a, admin)
		}
		return runNodeRing(ctx, o, admin)
	})
	return cmd
}

func runNodeRing(ctx context.Context, o *nodeRingOptions, admin interface {
	ringReader
	nodeLister
},
) error {
	ring, err := admin.NodeRing(ctx, sdk.NodeID(o.observer), o.tokens || o.set.dot)
	if err != nil {
		return o.suggestNode(ctx, admin, o.observer, err)
	}
	if o.set.dot {
		return o.printDot(ring)
	}
	doc := newRingDocument(ring)
	return o.output().Object(doc, func(p *term.Page) {
		if o.tokens {
			p.Table(tokenRows(ring))
		} else {
			ringPage(p, doc)
		}
		p.Line("ring %s, version %d, as %s has it", doc.Hash, doc.Version, orDash(doc.Observer))
	})
}

func newRingDocument(ring sdk.NodeRing) ringDocument {
	doc := ringDocument{
		Schema: schemaNodeRing, Observer: string(ring.Observer), ObservedAt: timeOf(ring.ObservedMs), Hash: term.Hash(ring.Hash),
		Version: ring.Version, Members: []memberRow{},
	}
	for _, m := range ring.Members {
		row := memberRow{
			Node: string(m.Node), State: m.State, Status: m.Status, Rack: m.Rack, Boot: m.Boot, Vnodes: m.Vnodes,
			Owns: float64(m.OwnsPerMillion) / 1e4, Since: timeOf(m.SinceMs),
		}
		for _, t := range m.Tokens {
			row.Tokens = append(row.Tokens, term.Hash(t))
		}
		doc.Members = append(doc.Members, row)
	}
	slices.SortFunc(doc.Members, func(a, b memberRow) int { return cmp.Compare(a.Node, b.Node) })
	return doc
}

// ringPage prints the members with a bar of what each owns, since the tokens themselves are too many to draw.
func ringPage(p *term.Page, doc ringDocument) {
	p.Table(doc.Members)
	p.Line("")
	width := 0
	for _, m := range doc.Members {
		width = max(width, term.Width(term.Escape(m.Node)))
	}
	cells := max(10, min(p.Width(), 100)-width-len("  99.9%  "))
	fill := "█"
	if p.ASCII() {
		fill = "#"
	}
	most := 0.0
	for _, m := range doc.Members {
		most = max(most, m.Owns)
	}
	for _, m := range doc.Members {
		bar := ""
		if most > 0 {
			bar = strings.Repeat(fill, int(m.Owns/most*float64(cells)+0.5))
		}
		p.Line("%s", strings.TrimRight(fmt.Sprintf("%s  %5.1f%%  %s", term.Pad(term.Escape(m.Node), width, false), m.Owns, bar), " "))
	}
}

// ringToken is one place on the ring.
type ringToken struct {
	at   uint64
	node string
}

func sortedTokens(ring sdk.NodeRing) []ringToken {
	var all []ringToken
	for _, m := range ring.Members {
		for _, t := range m.Tokens {
			all = append(all, ringToken{t, string(m.Node)})
		}
	}
	slices.SortFunc(all, func(a, b ringToken) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
	return all
}

// tokenRows lists the tokens around the ring. A token owns what lies between the one before it and itself.
func tokenRows(ring sdk.NodeRing) []tokenRow {
	tokens := sortedTokens(ring)
	rows := make([]tokenRow, len(tokens))
	for i, t := range tokens {
		before := tokens[(i+len(tokens)-1)%len(tokens)].at
		rows[i] = tokenRow{Token: term.Hash(t.at).String(), Node: t.node, Span: fmt.Sprintf("%.4f%%", float64(t.at-before)/(1<<32)/(1<<32)*100)}
	}
	return rows
}

// printDot draws the ring for Graphviz: runs of tokens of one node are one vertex, in order around the circle.
func (o *nodeRingOptions) printDot(ring sdk.NodeRing) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph ring {\n  layout=circo;\n  label=%q;\n", fmt.Sprintf("ring %s, version %d, as %s has it", term.Hash(ring.Hash), ring.Version, ring.Observer))
	var runs []ringToken
	for _, t := range sortedTokens(ring) {
		if n := len(runs); n > 0 && runs[n-1].node == t.node {
			runs[n-1] = t
			continue
		}
		runs = append(runs, t)
	}
	for i, t := range runs {
		fmt.Fprintf(&b, "  t%d [label=%q];\n", i, t.node+"\n"+term.Hash(t.at).String())
	}
	for i := range runs {
		if len(runs) > 1 {
			fmt.Fprintf(&b, "  t%d -> t%d;\n", i, (i+1)%len(runs))
		}
	}
	b.WriteString("}\n")
	_, err := o.io.Out.Write([]byte(b.String()))
	return err
}
