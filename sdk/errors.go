package sdk

import "github.com/eastguard/eastguard/internal/base"

// Error is the one error shape of EastGuard: what was being done, the code, the next step for a person, and
// whether the request took effect. Every error this package returns is one, or wraps one, apart from the errors
// of a context the caller passed in and io.EOF.
//
//	Code      Code
//	Op        string // what was being done, lower case: "create topic"
//	Msg       string // for people, lower case, no period; empty = the code's own sentence
//	Hint      string // the next step; empty = the code's own hint
//	Outcome   Outcome
//	Redirect  base.Redirect
//	Node      NodeID // who answered; empty when it never left this process
//	RequestID base.RequestID
//	Err       error // the cause, not sent on the wire
type Error = base.Error

// Code is an error's identity. A Code is itself an error: errors.Is(err, sdk.CodeTopicNotFound).
type Code = base.Code

// Outcome says whether a failed request took effect; OutcomeUnknown is an answer of its own.
type Outcome = base.Outcome

// The outcomes.
const (
	OutcomeNotApplied = base.NotApplied
	OutcomeApplied    = base.Applied
	OutcomeUnknown    = base.Unknown
)

// CodeOf is the code of err; CodeInternal for an error that carries none.
func CodeOf(err error) Code { return base.CodeOf(err) }

// OutcomeOf is what err says of the request's effect; an error that is not an *Error says nothing, so unknown.
func OutcomeOf(err error) Outcome { return base.OutcomeOf(err) }

// The error codes, one table for broker, SDK and command line.
const (
	CodeOK                 = base.CodeOK
	CodeInternal           = base.CodeInternal
	CodeInvalidArgument    = base.CodeInvalidArgument
	CodeUnreachable        = base.CodeUnreachable
	CodeTimeout            = base.CodeTimeout
	CodeCanceled           = base.CodeCanceled
	CodeBusy               = base.CodeBusy
	CodeShuttingDown       = base.CodeShuttingDown
	CodeUnknownKind        = base.CodeUnknownKind
	CodeUnsupportedVersion = base.CodeUnsupportedVersion
	CodeCorruptFrame       = base.CodeCorruptFrame
	CodeDenied             = base.CodeDenied
	CodeTopicNotFound      = base.CodeTopicNotFound
	CodeTopicExists        = base.CodeTopicExists
	CodeInvalidTopicName   = base.CodeInvalidTopicName
	CodeRangeNotFound      = base.CodeRangeNotFound
	CodeSegmentNotFound    = base.CodeSegmentNotFound
	CodeNodeNotFound       = base.CodeNodeNotFound
	CodeShardNotFound      = base.CodeShardNotFound
	CodeNotEnoughNodes     = base.CodeNotEnoughNodes
	CodePreconditionFailed = base.CodePreconditionFailed
	CodeTopicDeleting      = base.CodeTopicDeleting
	CodeNotLeader          = base.CodeNotLeader
	CodeNoLeader           = base.CodeNoLeader
	CodeNotReplica         = base.CodeNotReplica
	CodeBehind             = base.CodeBehind
	CodeOffsetOutOfRange   = base.CodeOffsetOutOfRange
	CodeTruncated          = base.CodeTruncated
	CodeRangeMoved         = base.CodeRangeMoved
	CodeSegmentMoved       = base.CodeSegmentMoved
	CodeFenced             = base.CodeFenced
	CodeOutOfOrder         = base.CodeOutOfOrder
	CodeUnknownProducer    = base.CodeUnknownProducer
	CodeProducerFenced     = base.CodeProducerFenced
	CodeRecordTooLarge     = base.CodeRecordTooLarge
	CodeBatchTooLarge      = base.CodeBatchTooLarge
	CodeCorruptBatch       = base.CodeCorruptBatch
	CodeCorruptData        = base.CodeCorruptData
	CodeDiskFull           = base.CodeDiskFull
	CodeNotAdmitted        = base.CodeNotAdmitted
	CodeUnhealthy          = base.CodeUnhealthy
	CodeNotMet             = base.CodeNotMet
	CodePartial            = base.CodePartial
)
