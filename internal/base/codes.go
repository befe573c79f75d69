package base

import "fmt"

// Code is an error's identity on the wire. The numbers are append-only: a code may be added, never renumbered.
// A Code is itself an error, so that errors.Is(err, CodeNotLeader) reads well.
type Code uint16

// The codes, in the order of the table below.
const (
	CodeOK                 Code = 0
	CodeInternal           Code = 1
	CodeInvalidArgument    Code = 2
	CodeUnreachable        Code = 3
	CodeTimeout            Code = 4
	CodeCanceled           Code = 5
	CodeBusy               Code = 6
	CodeShuttingDown       Code = 7
	CodeUnknownKind        Code = 8
	CodeUnsupportedVersion Code = 9
	CodeCorruptFrame       Code = 10
	CodeDenied             Code = 11
	CodeTopicNotFound      Code = 20
	CodeTopicExists        Code = 21
	CodeInvalidTopicName   Code = 22
	CodeRangeNotFound      Code = 23
	CodeSegmentNotFound    Code = 24
	CodeNodeNotFound       Code = 25
	CodeShardNotFound      Code = 26
	CodeNotEnoughNodes     Code = 27
	CodePreconditionFailed Code = 28
	CodeTopicDeleting      Code = 29
	CodeNotLeader          Code = 40
	CodeNoLeader           Code = 41
	CodeNotReplica         Code = 42
	CodeBehind             Code = 43
	CodeOffsetOutOfRange   Code = 44
	CodeTruncated          Code = 45
	CodeRangeMoved         Code = 46
	CodeSegmentMoved       Code = 47
	CodeFenced             Code = 48
	CodeOutOfOrder         Code = 49
	CodeUnknownProducer    Code = 50
	CodeProducerFenced     Code = 51
	CodeRecordTooLarge     Code = 52
	CodeBatchTooLarge      Code = 53
	CodeCorruptBatch       Code = 54
	CodeCorruptData        Code = 55
	CodeDiskFull           Code = 56
	CodeNotAdmitted        Code = 57
	CodeUnhealthy          Code = 70
	CodeNotMet             Code = 71
	CodePartial            Code = 72
)

// ExitClass is the exit code of eg-cli for an error (OPERATOR.md 2.3 in the shared documents).
type ExitClass uint8

// The exit classes that errors map to; the rest of the table is in package cli.
const (
	ExitError          ExitClass = 1
	ExitUsage          ExitClass = 2
	ExitUnreachable    ExitClass = 3
	ExitNotFound       ExitClass = 4
	ExitConflict       ExitClass = 5
	ExitDenied         ExitClass = 6
	ExitUnknownOutcome ExitClass = 7
	ExitPartial        ExitClass = 8
	ExitIntegrity      ExitClass = 9
	ExitUnhealthy      ExitClass = 10
	ExitNotMet         ExitClass = 12
)

// CodeInfo is what the table knows of a code.
type CodeInfo struct {
	Name      string    // TOPIC_EXISTS
	Exit      ExitClass // eg-cli's exit code when nothing else decides
	Retryable bool      // the same request may succeed later, or elsewhere
	Summary   string    // one lower-case clause
	Hint      string    // the next step for a person
}

var codes = map[Code]CodeInfo{
	CodeOK:                 {"OK", 0, false, "done", "nothing to do"},
	CodeInternal:           {"INTERNAL", ExitError, false, "the server met something it did not expect", "the broker's log has the details; please report it"},
	CodeInvalidArgument:    {"INVALID_ARGUMENT", ExitUsage, false, "an argument is not valid", "see the command's help"},
	CodeUnreachable:        {"UNREACHABLE", ExitUnreachable, true, "no broker answered", "check that a broker runs at the given seeds (-s host:port)"},
	CodeTimeout:            {"TIMEOUT", ExitUnknownOutcome, true, "no answer came before the deadline", "check whether it took effect, then try again"},
	CodeCanceled:           {"CANCELED", ExitError, true, "the request was cancelled", "start it again when you want it"},
	CodeBusy:               {"BUSY", ExitError, true, "the broker is at a limit", "retry after a moment; a client that retries with backoff needs no change"},
	CodeShuttingDown:       {"SHUTTING_DOWN", ExitUnreachable, true, "the broker is stopping", "retry, or ask another broker"},
	CodeUnknownKind:        {"UNKNOWN_KIND", ExitError, false, "the broker does not know this kind of request", "compare the versions of client and broker: eg-cli version --cluster"},
	CodeUnsupportedVersion: {"UNSUPPORTED_VERSION", ExitError, false, "client and broker share no protocol version", "upgrade the older of the two"},
	CodeCorruptFrame:       {"CORRUPT_FRAME", ExitError, false, "the bytes received are not a frame of this protocol", "check that the port is a broker's client port"},
	CodeDenied:             {"DENIED", ExitDenied, false, "not permitted", "ask for the permission that the message names"},
	CodeTopicNotFound:      {"TOPIC_NOT_FOUND", ExitNotFound, false, "no such topic", "see what exists: eg-cli topic list"},
	CodeTopicExists:        {"TOPIC_EXISTS", ExitConflict, false, "the topic exists already", "pass --if-not-exists, or choose another name"},
	CodeInvalidTopicName:   {"INVALID_TOPIC_NAME", ExitUsage, false, "not a topic name", "use 1 to 249 letters, digits, '.', '_' and '-'"},
	CodeRangeNotFound:      {"RANGE_NOT_FOUND", ExitNotFound, false, "the topic has no such range", "see its ranges: eg-cli topic describe TOPIC"},
	CodeSegmentNotFound:    {"SEGMENT_NOT_FOUND", ExitNotFound, false, "no such segment", "it may have been deleted by retention; see: eg-cli topic describe TOPIC"},
	CodeNodeNotFound:       {"NODE_NOT_FOUND", ExitNotFound, false, "no such node", "see what is there: eg-cli cluster status"},
	CodeShardNotFound:      {"SHARD_NOT_FOUND", ExitNotFound, false, "no such shard", "see what is there: eg-cli cluster status"},
	CodeNotEnoughNodes:     {"NOT_ENOUGH_NODES", ExitConflict, false, "fewer nodes are alive than the replication factor asks for", "add nodes or lower the replication factor"},
	CodePreconditionFailed: {"PRECONDITION_FAILED", ExitConflict, false, "the object has changed since it was looked at", "look again, then repeat the command"},
	CodeTopicDeleting:      {"TOPIC_DELETING", ExitConflict, true, "a topic of this name is being deleted", "retry when its removal has finished"},
	CodeNotLeader:          {"NOT_LEADER", ExitUnreachable, true, "another node leads this", "clients follow the redirect by themselves"},
	CodeNoLeader:           {"NO_LEADER", ExitUnreachable, true, "nobody leads this at the moment", "a leader is being chosen; retry"},
	CodeNotReplica:         {"NOT_REPLICA", ExitUnreachable, true, "this node holds no copy of the range", "clients ask another replica by themselves"},
	CodeBehind:             {"BEHIND", ExitUnreachable, true, "this replica cannot prove the commit up to the offset asked for", "clients ask another replica by themselves"},
	CodeOffsetOutOfRange:   {"OFFSET_OUT_OF_RANGE", ExitNotFound, false, "the offset is not in the range's log", "read from earliest, or from an offset within the bounds given"},
	CodeTruncated:          {"TRUNCATED", ExitIntegrity, false, "the log was cut by an operator who accepted data loss", "continue from the end that the message names"},
	CodeRangeMoved:         {"RANGE_MOVED", ExitUnreachable, true, "the range was split or merged", "clients follow its successors by themselves"},
	CodeSegmentMoved:       {"SEGMENT_MOVED", ExitUnreachable, true, "the range's active segment has moved to another leader", "clients follow the redirect by themselves"},
	CodeFenced:             {"FENCED", ExitConflict, true, "a newer epoch has fenced this one", "clients renew their route by themselves"},
	CodeOutOfOrder:         {"OUT_OF_ORDER", ExitError, true, "an earlier batch of this producer is missing", "the SDK re-sends in order by itself"},
	CodeUnknownProducer:    {"UNKNOWN_PRODUCER", ExitUnknownOutcome, false, "the range has forgotten this producer", "the SDK continues under a new producer id; check what was in flight"},
	CodeProducerFenced:     {"PRODUCER_FENCED", ExitConflict, false, "a newer producer of the same name has taken over", "stop this one, or give it a name of its own"},
	CodeRecordTooLarge:     {"RECORD_TOO_LARGE", ExitUsage, false, "the record is larger than the broker accepts", "raise max_record_bytes on the brokers (64 MiB at most) or send less"},
	CodeBatchTooLarge:      {"BATCH_TOO_LARGE", ExitUsage, false, "the batch is larger than the broker accepts", "lower the producer's max batch bytes"},
	CodeCorruptBatch:       {"CORRUPT_BATCH", ExitIntegrity, false, "the batch does not match its checksum or its own header", "the bytes changed on the way, or the client builds batches wrongly"},
	CodeCorruptData:        {"CORRUPT_DATA", ExitIntegrity, false, "stored bytes do not match their checksum", "the damaged copy is kept aside; read another replica, or restore it"},
	CodeDiskFull:           {"DISK_FULL", ExitError, true, "the broker's disk is full", "free space or shorten retention; reads and deletes go on"},
	CodeNotAdmitted:        {"NOT_ADMITTED", ExitUnreachable, true, "the node has not been admitted to the cluster yet", "wait for it, or see the node's log for the reason"},
	CodeUnhealthy:          {"UNHEALTHY", ExitUnhealthy, false, "the cluster is not healthy", "see the failed checks above"},
	CodeNotMet:             {"NOT_MET", ExitNotMet, false, "the expectation was not met", "see the last observation above"},
	CodePartial:            {"PARTIAL", ExitPartial, false, "some items failed", "see the result of each item"},
}

// Info is the code's row of the table; a code from a newer peer gets a row of its own making.
func (c Code) Info() CodeInfo {
	if info, ok := codes[c]; ok {
		return info
	}
	return CodeInfo{Name: fmt.Sprintf("CODE_%d", uint16(c)), Exit: ExitError, Summary: "the peer reports a code that this version does not know", Hint: "upgrade the older of client and broker"}
}

// String prints the name, such as TOPIC_EXISTS.
func (c Code) String() string { return c.Info().Name }

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.Info().Summary }

// Codes lists every code of the table, unordered; for tests and documentation.
func Codes() map[Code]CodeInfo {
	m := make(map[Code]CodeInfo, len(codes))
	for c, info := range codes {
		m[c] = info
	}
	return m
}
