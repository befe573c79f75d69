package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

type healthReader interface {
	ClusterHealth(ctx context.Context) (sdk.ClusterHealth, error)
}

type clusterHealthOptions struct {
	*app
	wait     bool
	minNodes int
	nagios   bool
	prom     bool
	warnExit bool
	poll     time.Duration
}

const (
	schemaClusterHealth = "cluster.health/1"
	healthWait          = 60 * time.Second
	healthPoll          = 200 * time.Millisecond
	healthAsk           = 5 * time.Second // one attempt while waiting
)

// healthDocument is the document of cluster health.
type healthDocument struct {
	Schema     string     `json:"schema"`
	Cluster    string     `json:"cluster"`
	Observer   string     `json:"observer"`
	ObservedAt term.Time  `json:"observed_at"`
	Result     string     `json:"result" doc:"PASS, WARN or FAIL"`
	Nodes      int        `json:"nodes"`
	Checks     []checkRow `json:"checks"`
}

type checkRow struct {
	ID     string `json:"id" col:"ID"`
	Name   string `json:"name" col:"CHECK,fold"`
	Result string `json:"result" col:"RESULT"`
	Detail string `json:"detail" col:"DETAIL,fold"`
	Next   string `json:"next" col:"NEXT,wide"`
}

func newClusterHealthCommand(a *app) *cobra.Command {
	o := &clusterHealthOptions{app: a, poll: healthPoll}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Every check with its verdict; exit 10 when the cluster is not healthy",
		Long: "Asks the cluster for its checks. Exit 0 is healthy, 10 is not healthy, 3 is nobody to ask.\n" +
			"--wait asks until the cluster is healthy, for 60 s unless --timeout says otherwise, and exits 12 when it never was.",
		Example: `  cluster health
  cluster health --wait --min-nodes 3 --timeout 2m
  cluster health --nagios
  cluster health --prometheus > /var/lib/node_exporter/eastguard.prom`,
		Args:        argsBetween(0, 0),
		Annotations: map[string]string{noteSchema: "cluster.health", noteExits: "10 11 12", noteDeadline: deadlineOwn},
	}
	f := cmd.Flags()
	f.BoolVar(&o.wait, "wait", false, "wait until healthy")
	f.IntVar(&o.minNodes, "min-nodes", 0, "unhealthy with fewer than `N` nodes alive")
	f.BoolVar(&o.nagios, "nagios", false, "one line and exit 0, 1, 2 or 3, as Nagios wants")
	f.BoolVar(&o.prom, "prometheus", false, "in Prometheus' text format, for a textfile collector")
	f.BoolVar(&o.warnExit, "warn-exit", false, "exit 11 when the worst verdict is WARN")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return runClusterHealth(cmd.Context(), o, admin)
	}
	return cmd
}

func runClusterHealth(ctx context.Context, o *clusterHealthOptions, admin healthReader) error {
	if o.minNodes < 0 {
		return usagef("--min-nodes cannot be negative")
	}
	if o.nagios && o.prom {
		return usagef("--nagios and --prometheus exclude each other")
	}
	doc, err := o.observe(ctx, admin)
	switch {
	case o.nagios:
		return o.printNagios(doc, err)
	case o.prom:
		return o.printPrometheus(doc, err)
	case err != nil:
		return err
	}
	if err := o.output().Object(doc, func(p *term.Page) { healthPage(p, doc) }); err != nil {
		return err
	}
	return o.verdict(doc)
}

// observe asks once, or with --wait until the answer is good or the time is up. While waiting, a broker that
// does not answer is not yet a failure.
func (o *clusterHealthOptions) observe(ctx context.Context, admin healthReader) (healthDocument, error) {
	limit := o.set.timeout
	if o.wait && !o.timeoutGiven() {
		limit = healthWait
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeUp)
		defer cancel()
	}
	if !o.wait {
		health, err := admin.ClusterHealth(ctx)
		return o.document(health), err
	}
	var last healthDocument
	var lastErr error
	for {
		once, cancel := context.WithTimeout(ctx, healthAsk)
		health, err := admin.ClusterHealth(once)
		cancel()
		if err == nil {
			last, lastErr = o.document(health), nil
			if last.Result == sdk.HealthPass.String() || last.Result == sdk.HealthWarn.String() {
				return last, nil
			}
		} else if lastErr = err; !worthWaiting(err) {
			return last, err
		}
		select {
		case <-time.After(o.poll):
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errTimeUp) {
				return last, context.Cause(ctx)
			}
			if last.Schema == "" {
				return last, lastErr
			}
			return last, nil
		}
	}
}

// worthWaiting reports whether a later attempt may do better.
func worthWaiting(err error) bool {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e.Code.Info().Retryable || e.Code == sdk.CodeTimeout
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func (o *clusterHealthOptions) document(h sdk.ClusterHealth) healthDocument {
	doc := healthDocument{
		Schema: schemaClusterHealth, Cluster: h.Cluster.String(), Observer: string(h.Observer), ObservedAt: timeOf(h.ObservedMs),
		Nodes: h.Nodes, Checks: []checkRow{},
	}
	worst := h.Worst()
	for _, c := range h.Checks {
		doc.Checks = append(doc.Checks, checkRow{ID: c.ID, Name: c.Name, Result: c.Result.String(), Detail: c.Detail, Next: c.Next})
	}
	if o.minNodes > 0 {
		row := checkRow{ID: "EG100", Name: "enough nodes", Result: sdk.HealthPass.String(), Detail: fmt.Sprintf("%d alive, at least %d wanted", h.Nodes, o.minNodes)}
		if h.Nodes < o.minNodes {
			row.Result, worst = sdk.HealthFail.String(), sdk.HealthFail
		}
		doc.Checks = append([]checkRow{row}, doc.Checks...)
	}
	doc.Result = worst.String()
	return doc
}

func healthPage(p *term.Page, doc healthDocument) {
	p.Table(doc.Checks)
	for _, c := range doc.Checks {
		if c.Result != sdk.HealthPass.String() && c.Next != "" {
			p.Line("%s next: %s", c.ID, c.Next)
		}
	}
	style, text := p.Style(), doc.Result
	switch doc.Result {
	case sdk.HealthPass.String():
		text = style.OK("healthy")
	case sdk.HealthWarn.String():
		text = style.Warn("healthy, with warnings")
	case sdk.HealthFail.String():
		text = style.Bad("not healthy")
	}
	p.Line("%s: %s alive, seen from %s", text, plural(int64(doc.Nodes), "node"), orDash(doc.Observer))
}

func (o *clusterHealthOptions) verdict(doc healthDocument) error {
	switch {
	case doc.Result == sdk.HealthFail.String() && o.wait:
		return quiet{errorf(sdk.CodeNotMet, "the cluster did not become healthy in time")}
	case doc.Result == sdk.HealthFail.String():
		return quiet{errorf(sdk.CodeUnhealthy, "the cluster is not healthy")}
	case doc.Result == sdk.HealthWarn.String() && o.warnExit:
		return quiet{&failure{name: nameWarn, exit: ExitWarn, msg: "the cluster is healthy, with warnings"}}
	}
	return nil
}

// printNagios prints STATUS - text and exits 0 ok, 1 warning, 2 critical, 3 unknown.
func (o *clusterHealthOptions) printNagios(doc healthDocument, err error) error {
	status, exit, text := "OK", 0, plural(int64(doc.Nodes), "node")+" alive"
	switch {
	case err != nil:
		status, exit, text = "UNKNOWN", 3, describe(err).Message
	case doc.Result == sdk.HealthFail.String():
		status, exit, text = "CRITICAL", 2, firstDetail(doc.Checks, doc.Result)
	case doc.Result == sdk.HealthWarn.String():
		status, exit, text = "WARNING", 1, firstDetail(doc.Checks, doc.Result)
	}
	fprintf(o.io.Out, "EASTGUARD %s - %s | nodes=%d\n", status, term.Escape(text), doc.Nodes)
	if exit == 0 {
		return nil
	}
	return quiet{&failure{name: status, exit: exit, msg: text}}
}

// printPrometheus prints the checks as gauges: 0 PASS, 1 WARN, 2 FAIL. That nobody answered is a figure too, so that an
// alert can rest on it; the exit code is that of the command without it.
func (o *clusterHealthOptions) printPrometheus(doc healthDocument, err error) error {
	var b strings.Builder
	up := 1
	if err != nil {
		up = 0
	}
	gauge := func(name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }
	gauge("eastguard_cluster_up", "Whether a broker answered.")
	fmt.Fprintf(&b, "eastguard_cluster_up %d\n", up)
	if err == nil {
		gauge("eastguard_cluster_nodes_alive", "Nodes believed to be alive.")
		fmt.Fprintf(&b, "eastguard_cluster_nodes_alive %d\n", doc.Nodes)
		gauge("eastguard_cluster_health", "The worst of the checks: 0 PASS, 1 WARN, 2 FAIL.")
		fmt.Fprintf(&b, "eastguard_cluster_health %d\n", resultNumber(doc.Result))
		gauge("eastguard_cluster_health_check", "One check: 0 PASS, 1 WARN, 2 FAIL.")
		for _, c := range doc.Checks {
			fmt.Fprintf(&b, "eastguard_cluster_health_check{id=%s,name=%s} %d\n", promLabel(c.ID), promLabel(c.Name), resultNumber(c.Result))
		}
	}
	if _, werr := o.io.Out.Write([]byte(b.String())); werr != nil {
		return werr
	}
	if err != nil {
		return err
	}
	return o.verdict(doc)
}

func resultNumber(result string) int {
	switch result {
	case sdk.HealthPass.String():
		return 0
	case sdk.HealthWarn.String():
		return 1
	}
	return 2
}

// promLabel quotes a label's value by the rules of the text format.
func promLabel(s string) string {
	return `"` + strings.NewReplacer("\\", `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func firstDetail(checks []checkRow, result string) string {
	for _, c := range checks {
		if c.Result == result {
			return c.ID + " " + c.Name + ": " + c.Detail
		}
	}
	return ""
}
