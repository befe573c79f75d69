package wire

import "github.com/eastguard/eastguard/internal/base"

// OpenProducerRequest asks the topic's coordinator for the next epoch of a named producer.
type OpenProducerRequest struct {
	RequestID base.RequestID `cbor:"1,keyasint"`
	Topic     base.TopicID   `cbor:"2,keyasint"`
	Name      string         `cbor:"3,keyasint"`
	Fence     bool           `cbor:"4,keyasint,omitempty"` // write the new epoch to every range before answering
	TopicName string         `cbor:"5,keyasint,omitempty"` // where the asker knows it: spares a search
}

// OpenProducerResponse is the identity to put into batches; sequences begin at 0 in every range.
type OpenProducerResponse struct {
	ProducerID int64 `cbor:"1,keyasint"`
	Epoch      int16 `cbor:"2,keyasint,omitempty"`
}

// ProducerStateRequest asks a range's leader, or any replica of a sealed range, what it has of a producer.
type ProducerStateRequest struct {
	Ref        base.RangeRef `cbor:"1,keyasint"`
	ProducerID int64         `cbor:"2,keyasint"`
}

// ProducerStateResponse is what the range remembers. Known false means nothing, not that nothing was appended.
type ProducerStateResponse struct {
	Known   bool            `cbor:"1,keyasint,omitempty"`
	Epoch   int16           `cbor:"2,keyasint,omitempty"`
	Batches []ProducerBatch `cbor:"3,keyasint,omitempty"` // the last 5, oldest first, committed ones only
	Commit  int64           `cbor:"4,keyasint,omitempty"`
	Sealed  bool            `cbor:"5,keyasint,omitempty"`
}

// ProducerBatch is one appended batch of a producer.
type ProducerBatch struct {
	BaseSequence int32 `cbor:"1,keyasint,omitempty"`
	LastSequence int32 `cbor:"2,keyasint,omitempty"`
	Base         int64 `cbor:"3,keyasint,omitempty"`
}
