package wire

import "github.com/eastguard/eastguard/internal/base"

// Features are optional abilities; each side states its own, what both have may be used.
type Features uint64

// FeatureForward: the node relays requests that carry FlagForward.
const FeatureForward Features = 1 << 0

// HelloRequest is the first frame on every connection.
type HelloRequest struct {
	ClientName    string         `cbor:"1,keyasint,omitempty"` // "eg-cli", or what the application calls itself
	ClientVersion string         `cbor:"2,keyasint,omitempty"`
	MinVersion    uint8          `cbor:"3,keyasint"` // protocol versions the client speaks
	MaxVersion    uint8          `cbor:"4,keyasint"`
	Features      Features       `cbor:"5,keyasint,omitempty"`
	Cluster       base.ClusterID `cbor:"6,keyasint,omitempty"` // refuse me unless you are of this cluster; zero = any
	Rack          string         `cbor:"7,keyasint,omitempty"`
	// 16 to 23 are kept for authentication: mechanism, initial response.
}

// HelloResponse says who answered and what it accepts.
type HelloResponse struct {
	Cluster          base.ClusterID `cbor:"1,keyasint"`
	Node             base.NodeID    `cbor:"2,keyasint"`
	Version          string         `cbor:"3,keyasint"` // of the broker
	ProtocolVersion  uint8          `cbor:"4,keyasint"` // chosen for this connection
	Features         Features       `cbor:"5,keyasint,omitempty"`
	MaxRecordBytes   int64          `cbor:"6,keyasint"`
	MaxBatchBytes    int64          `cbor:"7,keyasint"`
	MaxInFlight      int            `cbor:"8,keyasint"` // requests of one connection; beyond it the server stops reading
	MaxInFlightBytes int64          `cbor:"9,keyasint,omitempty"`
	Boot             uint64         `cbor:"10,keyasint,omitempty"`
	Address          string         `cbor:"11,keyasint,omitempty"` // advertised host:port of the client port
	TimeMs           int64          `cbor:"12,keyasint,omitempty"` // the broker's clock, for skew
	Rack             string         `cbor:"13,keyasint,omitempty"`
	// 16 to 23 are kept for authentication: challenge, mechanisms offered.
}

// PingRequest measures a round trip through the broker's request path.
type PingRequest struct{}

// PingResponse answers it.
type PingResponse struct {
	Node   base.NodeID `cbor:"1,keyasint"`
	TimeMs int64       `cbor:"2,keyasint"`
	Boot   uint64      `cbor:"3,keyasint,omitempty"`
}
