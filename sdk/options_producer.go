package sdk

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/header"
)

// Defaults of the producer's options.
const (
	DefaultMaxBatchBytes   = 1 << 20
	DefaultMaxBatchRecords = 1000
	DefaultLinger          = 5 * time.Millisecond
	DefaultMaxInFlight     = 5
	DefaultBufferBytes     = 64 << 20
	DefaultDeliveryTimeout = 30 * time.Second
)

// Compression is a batch's codec.
type Compression = header.Codec

// The codecs a producer may use.
const (
	CompressionNone = header.None
	CompressionLZ4  = header.LZ4
	CompressionZstd = header.Zstd
)

// ParseCompression reads none, lz4 or zstd; the empty string is none.
func ParseCompression(s string) (Compression, error) { return header.ParseCodec(s) }

// ProducerOption configures NewProducer.
type ProducerOption interface{ applyProducer(*producerConfig) }

type producerOption func(*producerConfig)

func (o producerOption) applyProducer(c *producerConfig) { o(c) }

type producerConfig struct {
	compression      Compression
	compressionSet   bool
	compressionLevel int
	linger           time.Duration
	maxBatchBytes    int
	maxBatchRecords  int
	maxInFlight      int
	bufferBytes      int64
	deliveryTimeout  time.Duration
	failWhenFull     bool
	idempotent       bool
	name             string
}

// WithCompression sets the codec of batches. Default: the topic's compression setting, none when it has none.
func WithCompression(c Compression) ProducerOption {
	return producerOption(func(p *producerConfig) { p.compression, p.compressionSet = c, true })
}

// WithCompressionLevel sets the codec's own level. Default: 0, the codec's default.
func WithCompressionLevel(level int) ProducerOption {
	return producerOption(func(p *producerConfig) { p.compressionLevel = level })
}

// WithLinger is how long a record may wait for others to share its batch. 0 sends at once; records still share
// batches while MaxInFlight batches of their range are on the way. Default: 5 ms.
func WithLinger(d time.Duration) ProducerOption {
	return producerOption(func(p *producerConfig) { p.linger = d })
}

// WithMaxBatchBytes is the size at which a batch is sent, before compression. A single larger record travels
// alone. Default: 1 MiB.
func WithMaxBatchBytes(n int) ProducerOption {
	return producerOption(func(p *producerConfig) { p.maxBatchBytes = n })
}

// WithMaxBatchRecords is the number of records at which a batch is sent. Default: 1,000.
func WithMaxBatchRecords(n int) ProducerOption {
	return producerOption(func(p *producerConfig) { p.maxBatchRecords = n })
}

// WithMaxInFlight is how many batches of one range may be on the way at once, 1 to 5: a broker remembers the last
// five of each producer, which is what makes a retry harmless. Default: 5; without idempotence 1, which alone
// keeps the order.
func WithMaxInFlight(n int) ProducerOption {
	return producerOption(func(p *producerConfig) { p.maxInFlight = n })
}

// WithBufferBytes bounds the memory of records that are not acknowledged yet. A full buffer makes Send and
// SendAsync wait (see WithFailWhenFull). Default: 64 MiB.
func WithBufferBytes(n int64) ProducerOption {
	return producerOption(func(p *producerConfig) { p.bufferBytes = n })
}

// WithFailWhenFull makes Send and SendAsync return CodeBusy at once when the buffer is full, in place of waiting
// for room until the delivery timeout.
func WithFailWhenFull() ProducerOption {
	return producerOption(func(p *producerConfig) { p.failWhenFull = true })
}

// WithDeliveryTimeout bounds the time from Send to the answer, retries and waiting for room included. A record
// that runs into it fails with CodeTimeout, and its outcome is not_applied if it never left the buffer and
// unknown if it did. Default: 30 s.
func WithDeliveryTimeout(d time.Duration) ProducerOption {
	return producerOption(func(p *producerConfig) { p.deliveryTimeout = d })
}

// WithProducerName gives the producer an identity that outlives the process: whoever opens the name later fences
// the earlier one, whose sends then fail with CodeProducerFenced. Default: no name, a random id.
func WithProducerName(name string) ProducerOption {
	return producerOption(func(p *producerConfig) { p.name = name })
}

// WithIdempotence turns the broker's recognition of retries on or off. Off, a batch whose answer was lost fails
// as unknown and is not sent again. Default: on.
func WithIdempotence(on bool) ProducerOption {
	return producerOption(func(p *producerConfig) { p.idempotent = on })
}

// newProducerConfig applies opts over the defaults and says what cannot be.
func newProducerConfig(opts []ProducerOption) (producerConfig, error) {
	p := producerConfig{
		linger: DefaultLinger, maxBatchBytes: DefaultMaxBatchBytes, maxBatchRecords: DefaultMaxBatchRecords,
		bufferBytes: DefaultBufferBytes, deliveryTimeout: DefaultDeliveryTimeout, idempotent: true,
	}
	for _, o := range opts {
		o.applyProducer(&p)
	}
	return p, p.validate()
}

func (p *producerConfig) validate() error {
	bad := func(format string, args ...any) error {
		return base.Errorf(base.CodeInvalidArgument, "new producer", format, args...)
	}
	if p.maxInFlight == 0 {
		p.maxInFlight = DefaultMaxInFlight
		if !p.idempotent {
			p.maxInFlight = 1
		}
	}
	switch {
	case p.compression != CompressionNone && p.compression != CompressionLZ4 && p.compression != CompressionZstd:
		return bad("compression must be none, lz4 or zstd, not %v", p.compression)
	case p.linger < 0:
		return bad("linger must not be negative, it is %v", p.linger)
	case p.maxBatchBytes < 1:
		return bad("max batch bytes must be positive, it is %d", p.maxBatchBytes)
	case p.maxBatchRecords < 1:
		return bad("max batch records must be positive, it is %d", p.maxBatchRecords)
	case p.maxInFlight < 1 || p.maxInFlight > DefaultMaxInFlight:
		return bad("max in flight must be 1 to %d, it is %d: a broker remembers that many batches of a producer", DefaultMaxInFlight, p.maxInFlight)
	case !p.idempotent && p.maxInFlight > 1:
		return bad("max in flight must be 1 without idempotence: a retry would overtake what follows it")
	case !p.idempotent && p.name != "":
		return bad("a producer name needs idempotence")
	case p.bufferBytes < 1:
		return bad("buffer bytes must be positive, it is %d", p.bufferBytes)
	case p.deliveryTimeout <= 0:
		return bad("the delivery timeout must be positive, it is %v", p.deliveryTimeout)
	}
	return nil
}
