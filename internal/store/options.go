package store

import (
	"cmp"
	"log/slog"

	"github.com/eastguard/eastguard/internal/vfs"
)

// ensureDefaults fills what is zero; each default is named at its field.
func (o *Options) ensureDefaults() {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnFatal == nil {
		o.OnFatal = func(error) {}
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.MaxOpenFiles <= 0 {
		o.MaxOpenFiles = 512
	}
	o.MaxOpenFiles = max(o.MaxOpenFiles, minOpenFiles)
	o.syncFSAboveForTesting = cmp.Or(o.syncFSAboveForTesting, syncFSAbove)
	o.CacheBytes = cmp.Or(o.CacheBytes, 64<<20)
	o.ReserveBytes = cmp.Or(o.ReserveBytes, 64<<20)
	o.WAL.FileBytes = cmp.Or(o.WAL.FileBytes, 64<<20)
	o.WALBytes = cmp.Or(o.WALBytes, 8*o.WAL.FileBytes)
	o.CheckpointBytes = cmp.Or(o.CheckpointBytes, 2*o.WAL.FileBytes)
	o.DirtyBytes = cmp.Or(o.DirtyBytes, 128<<20)
	o.FlushBytes = cmp.Or(o.FlushBytes, 8<<20)
	o.WritebackBytes = cmp.Or(o.WritebackBytes, 8<<20)
	// What is dirty cannot be evicted: a small cache needs an early flush.
	o.FlushBytes = min(o.FlushBytes, max(o.CacheBytes/2, 256<<10))
}
