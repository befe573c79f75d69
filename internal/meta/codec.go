package meta

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/eastguard/eastguard/internal/base"
)

// Commands, snapshots and whatever else this package stores are CBOR in the core deterministic form, so that equal
// values are equal bytes. A reader skips keys it does not know, so a field may be added, never renumbered.
var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   16,
		MaxArrayElements:  1 << 21,
		MaxMapPairs:       1 << 16,
		ExtraReturnErrors: cbor.ExtraDecErrorNone,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Errorf("meta: cbor options: %w", err))
	}
	return v
}

// EncodeCommand is the command's form in the log.
func EncodeCommand(cmd *Command) ([]byte, error) { return encoding.Marshal(cmd) }

// DecodeCommand is the inverse of EncodeCommand.
func DecodeCommand(b []byte) (Command, error) {
	var cmd Command
	if err := decoding.Unmarshal(b, &cmd); err != nil {
		return Command{}, base.Wrap(base.CodeCorruptData, "decode command", err)
	}
	return cmd, nil
}

func asError(err error) *base.Error {
	var e *base.Error
	if errors.As(err, &e) {
		return e
	}
	return base.Wrap(base.CodeInternal, "", err)
}
