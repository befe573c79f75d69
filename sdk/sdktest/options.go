package sdktest

import (
	"log/slog"

	"github.com/eastguard/eastguard/internal/config"
)

// Option configures Start.
type Option func(*options)

type options struct {
	onDisk bool
	seed   uint64
	topics []topicOption
	logger *slog.Logger
	config []func(*config.Config)
}

type topicOption struct {
	name   string
	ranges int
}

// WithTopic makes a topic with so many ranges before Start returns. Several may be given.
func WithTopic(name string, ranges int) Option {
	return func(o *options) { o.topics = append(o.topics, topicOption{name, ranges}) }
}

// WithDisk keeps the data in a temporary directory on the machine's disk. Kill is not available then. Default: in
// memory.
func WithDisk() Option {
	return func(o *options) { o.onDisk = true }
}

// WithSegmentBytes makes segments end at this size, so that a test sees rolls. Default: 1 GiB.
func WithSegmentBytes(n int64) Option {
	return func(o *options) { o.config = append(o.config, func(c *config.Config) { c.SegmentSizeLimitBytes = n }) }
}

// WithMaxRecordBytes sets the largest record that the broker takes. Default: 1 MiB.
func WithMaxRecordBytes(n int64) Option {
	return func(o *options) { o.config = append(o.config, func(c *config.Config) { c.MaxRecordBytes = n }) }
}

// WithCacheBytes bounds the broker's memory for recent batches. Default: 8 MiB.
func WithCacheBytes(n int64) Option {
	return func(o *options) { o.config = append(o.config, func(c *config.Config) { c.CacheBudgetBytes = n }) }
}

// WithLogger sets where the broker logs. Default: warnings and errors, to the test's log.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}

// WithSeed fixes what Kill leaves of the writes that were on their way to the disk. Default: 1.
func WithSeed(seed uint64) Option {
	return func(o *options) { o.seed = seed }
}
