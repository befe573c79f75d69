package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

func newBenchCommand(a *app) *cobra.Command {
	return newGroup("bench", "Measure producing, consuming, and both with every record checked",
		newBenchProduceCommand(a),
		newBenchConsumeCommand(a),
		newBenchE2ECommand(a),
	)
}

// Defaults of bench. The rate is modest on purpose: an open loop above what the disk can do measures its own queue.
const (
	defaultBenchRate     = 10_000
	defaultBenchDuration = 10 * time.Second
	defaultBenchWarmup   = 2 * time.Second
	defaultBenchSize     = 1 << 10
	defaultE2EKeys       = 100
	maxBenchClients      = 1000
)

// benchFlags are the flags of bench produce and e2e as typed.
type benchFlags struct {
	rate, size, payload, dist, z, linger, batchBytes, warmup, duration, records string
	maxSpeed, sync                                                              bool
	clients                                                                     int
	keys                                                                        int
	gate                                                                        gateFlags
	topic                                                                       benchTopicFlags
}

// gateFlags turn a measurement into a verdict.
type gateFlags struct {
	report, hdr, compare, maxRegress, maxP99, minRate string
}

type benchTopicFlags struct {
	create, cleanup bool
	rf, ranges      int
}

func (b *benchFlags) register(f *pflag.FlagSet, e2e bool) {
	f.StringVar(&b.rate, "rate", "", "open loop: this many records a second, whatever the answers do (default `10k/s`)")
	f.BoolVar(&b.maxSpeed, "max", false, "as fast as the producer's buffer lets them in, instead of --rate")
	f.BoolVar(&b.sync, "sync", false, "one record at a time: each client waits for the ack before it sends the next")
	f.StringVar(&b.records, "records", "", "stop after `N` records")
	f.StringVar(&b.duration, "duration", "", "stop after this `DURATION` (default 10s, unless --records)")
	f.IntVar(&b.clients, "clients", 1, "`N` producers, each with a connection of its own")
	f.StringVar(&b.size, "size", "1KiB", "`SIZE` of a value")
	f.StringVar(&b.payload, "payload", "", "values are the content of `FILE` instead of random bytes")
	f.IntVar(&b.keys, "keys", 0, "`N` different keys (default none; 100 for e2e)")
	f.StringVar(&b.dist, "dist", "uniform", "how keys are chosen: `uniform` or zipf:1.1")
	f.StringVarP(&b.z, "compression", "z", "none", "`CODEC`: none, lz4 or zstd")
	f.StringVar(&b.linger, "linger", "", "producers wait this `DURATION` for more records (default 5ms)")
	f.StringVar(&b.batchBytes, "batch-bytes", "", "producers send a batch at this `SIZE` (default 1MiB)")
	if !e2e {
		f.StringVar(&b.warmup, "warmup", "", "do not count the first `DURATION` (default 2s, none with --records)")
	}
	b.gate.register(f)
	f.BoolVar(&b.topic.create, "create", false, "create the topic if it does not exist")
	f.IntVar(&b.topic.rf, "rf", 0, "with --create: replication factor `N`")
	f.IntVar(&b.topic.ranges, "ranges", 0, "with --create: `N` ranges")
	f.BoolVar(&b.topic.cleanup, "cleanup", false, "delete the topic at the end, if this run created it")
}

func (g *gateFlags) register(f *pflag.FlagSet) {
	f.StringVar(&g.report, "report", "", "write the result to `FILE` as JSON too")
	f.StringVar(&g.hdr, "hdr", "", "write the latency distribution to `FILE` in HdrHistogram's text form")
	f.StringVar(&g.compare, "compare", "", "compare with the --report `FILE` of an earlier run")
	f.StringVar(&g.maxRegress, "max-regress", "5%", "with --compare: exit 12 when rate or p99 is worse by more than this `SHARE`")
	f.StringVar(&g.maxP99, "max-p99", "", "exit 12 when p99 is above this `DURATION`")
	f.StringVar(&g.minRate, "min-rate", "", "exit 12 below this many records a second, as `50k/s`")
}

// benchPlan is what the flags mean.
type benchPlan struct {
	topic    string
	rate     float64 // 0 = as fast as possible
	sync     bool
	records  int64 // 0 = by duration
	duration time.Duration
	warmup   time.Duration
	clients  int
	payload  payload
	keys     int
	zipf     float64 // 0 = uniform
	codec    string
	producer []sdk.ProducerOption
	gate     gate
}

// gate is gateFlags parsed.
type gate struct {
	report, hdr string
	base        *baseReport
	maxRegress  float64
	maxP99      time.Duration
	minRate     float64
}

func (b *benchFlags) plan(topic string, changed func(string) bool, e2e bool) (p benchPlan, err error) {
	p = benchPlan{topic: topic, clients: b.clients, keys: b.keys, rate: defaultBenchRate, codec: b.z}
	if b.clients < 1 || b.clients > maxBenchClients {
		return p, usagef("--clients must be from 1 to %d", maxBenchClients)
	}
	if b.maxSpeed && b.rate != "" || b.sync && (b.rate != "" || b.maxSpeed) {
		return p, usagef("--rate, --max and --sync exclude each other")
	}
	if b.rate != "" {
		if p.rate, err = term.ParseRate(b.rate); err != nil {
			return p, flagValueError("rate", err)
		}
	}
	if b.maxSpeed || b.sync {
		p.rate, p.sync = 0, b.sync
	}
	if err := b.planLength(&p, e2e); err != nil {
		return p, err
	}
	if err := b.planKeys(&p, changed, e2e); err != nil {
		return p, err
	}
	if p.payload, err = newPayload(b.size, b.payload); err != nil {
		return p, err
	}
	linger := b.linger
	if linger == "" && b.sync {
		linger = "0" // nothing else will come to share the batch
	}
	if p.producer, err = producerOptions(b.z, linger, b.batchBytes); err != nil {
		return p, err
	}
	p.gate, err = b.gate.parse()
	return p, err
}

func (b *benchFlags) planLength(p *benchPlan, e2e bool) (err error) {
	if b.records != "" {
		if p.records, err = term.ParseCount(b.records); err != nil || p.records == 0 {
			return usagef("--records %q is not a number from 1", b.records)
		}
	}
	if b.duration != "" {
		if p.duration, err = term.ParseDuration(b.duration); err != nil || p.duration == 0 {
			return usagef("--duration %q is not a duration such as 30s", b.duration)
		}
	}
	if p.records == 0 && p.duration == 0 {
		p.duration = defaultBenchDuration
	}
	if p.records == 0 && !e2e {
		p.warmup = defaultBenchWarmup
	}
	if b.warmup != "" {
		if p.warmup, err = term.ParseDuration(b.warmup); err != nil {
			return flagValueError("warmup", err)
		}
	}
	return nil
}

func (b *benchFlags) planKeys(p *benchPlan, changed func(string) bool, e2e bool) (err error) {
	if e2e && !changed("keys") {
		p.keys = defaultE2EKeys
	}
	if p.keys < 0 || e2e && p.keys < 1 || p.keys > 10_000_000 {
		return usagef("--keys must be from 1 to 10000000")
	}
	switch skew, isZipf := strings.CutPrefix(b.dist, "zipf:"); {
	case b.dist == "uniform":
	case isZipf:
		if p.zipf, err = strconv.ParseFloat(skew, 64); err != nil || p.zipf <= 1 {
			return usagef("--dist %q: the exponent must be above 1, as in zipf:1.1", b.dist)
		}
		if p.keys == 0 {
			return usagef("--dist zipf needs --keys")
		}
	default:
		return usagef("--dist %q is not uniform or zipf:1.1", b.dist)
	}
	return nil
}

func (g *gateFlags) parse() (out gate, err error) {
	out.report, out.hdr = g.report, g.hdr
	if g.compare != "" {
		if out.base, err = readBaseReport(g.compare); err != nil {
			return out, err
		}
	}
	share, isPercent := strings.CutSuffix(g.maxRegress, "%")
	if out.maxRegress, err = strconv.ParseFloat(share, 64); err != nil || out.maxRegress < 0 {
		return out, usagef("--max-regress %q is not a share such as 5%%", g.maxRegress)
	}
	if isPercent {
		out.maxRegress /= 100
	}
	if g.maxP99 != "" {
		if out.maxP99, err = term.ParseDuration(g.maxP99); err != nil {
			return out, flagValueError("max-p99", err)
		}
	}
	if g.minRate != "" {
		if out.minRate, err = term.ParseRate(g.minRate); err != nil {
			return out, flagValueError("min-rate", err)
		}
	}
	return out, nil
}

// payload makes values. Random bytes come from one block, each value from another place in it: nothing is
// allocated and nothing compresses. The slices are shared, so nobody may write to them.
type payload struct {
	size  int
	block []byte
	fixed bool
}

const payloadBlock = 4 << 20

func newPayload(size, file string) (payload, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return payload{}, usagef("--payload: %v", err)
		}
		return payload{size: len(b), block: b, fixed: true}, nil
	}
	n, err := base.ParseSize(size)
	if err != nil {
		return payload{}, flagValueError("size", err)
	}
	if n > 64<<20 {
		return payload{}, usagef("--size is at most 64MiB")
	}
	block := make([]byte, payloadBlock+n)
	fillRandom(block)
	return payload{size: int(n), block: block}, nil
}

// value is the nth value.
func (p payload) value(n uint64) []byte {
	if p.fixed {
		return p.block
	}
	// A large odd step visits the whole block before it repeats.
	at := int(n * 0x9e3779b97f4a7c15 % payloadBlock)
	return p.block[at : at+p.size : at+p.size]
}

// benchTopic creates the topic when asked. The func returned deletes it again when that is asked too; it must be
// called with a context that is alive.
func (a *app) benchTopic(ctx context.Context, client Client, name string, f benchTopicFlags) (func(context.Context), error) {
	nothing := func(context.Context) {}
	if err := sdk.CheckTopicName(name); err != nil {
		return nothing, err
	}
	if !f.create {
		if f.rf != 0 || f.ranges != 0 || f.cleanup {
			return nothing, usagef("--rf, --ranges and --cleanup go with --create")
		}
		return nothing, a.reach(ctx, client.Admin(), name)
	}
	ctx, cancel := a.answerIn(ctx)
	defer cancel()
	request := sdk.CreateTopic{Name: name, Ranges: f.ranges}
	request.Config.ReplicationFactor = f.rf
	made, err := client.Admin().CreateTopic(ctx, request)
	if errors.Is(err, sdk.CodeTopicExists) {
		if f.cleanup {
			a.note("topic %s existed before, so it stays", name)
		}
		return nothing, nil
	}
	if err != nil || !f.cleanup {
		return nothing, err
	}
	id := made.Topic.Summary.ID
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, err := client.Admin().DeleteTopic(ctx, sdk.DeleteTopic{Name: name, ExpectTopic: id}); err != nil {
			a.note("topic %s could not be deleted: %s", name, describe(err).Message)
		}
	}, nil
}

// benchContext bounds a bench by -t, when it is given.
func (a *app) benchContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.timeoutGiven() && a.set.timeout > 0 {
		return context.WithTimeoutCause(ctx, a.set.timeout, errTimeUp)
	}
	return context.WithCancel(ctx)
}

// judge applies the gates to a result, printing each that is not met.
func (g gate) judge(rate float64, p99 time.Duration) error {
	var misses []string
	if g.minRate > 0 && rate < g.minRate {
		misses = append(misses, fmt.Sprintf("%.0f records/s, at least %.0f wanted", rate, g.minRate))
	}
	if g.maxP99 > 0 && p99 > g.maxP99 {
		misses = append(misses, fmt.Sprintf("p99 %s, at most %s wanted", term.FormatTook(p99), term.FormatTook(g.maxP99)))
	}
	if b := g.base; b != nil {
		if floor := b.Rate * (1 - g.maxRegress); rate < floor {
			misses = append(misses, fmt.Sprintf("%.0f records/s, %.1f%% below the %.0f of before", rate, 100*(1-rate/b.Rate), b.Rate))
		}
		if ceiling := float64(b.P99) * (1 + g.maxRegress); b.P99 > 0 && float64(p99.Microseconds()) > ceiling {
			misses = append(misses, fmt.Sprintf("p99 %s, %.1f%% above the %s of before", term.FormatTook(p99),
				100*(float64(p99.Microseconds())/float64(b.P99)-1), term.FormatTook(time.Duration(b.P99)*time.Microsecond)))
		}
	}
	if len(misses) == 0 {
		return nil
	}
	return errorf(sdk.CodeNotMet, "%s", strings.Join(misses, "; ")).WithHint("see the measurement above")
}
