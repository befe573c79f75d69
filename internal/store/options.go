package store

import (
	"log/slog"

	"github.com/eastguard/eastguard/internal/vfs"
)

// ensureDefaults fills what is zero; each default is named at its field.
func (o *Options) ensureDefaults() {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
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
	if o.syncFSAboveForTesting == 0 {
		o.syncFSAboveForTesting = syncFSAbove
	}
	def(&o.CacheBytes, 64<<20)
	def(&o.ReserveBytes, 64<<20)
	def(&o.WAL.FileBytes, 64<<20)
	def(&o.WALBytes, 8*o.WAL.FileBytes)
	def(&o.CheckpointBytes, 2*o.WAL.FileBytes)
	def(&o.DirtyBytes, 128<<20)
	def(&o.FlushBytes, 8<<20)
	def(&o.WritebackBytes, 8<<20)
	// What is dirty cannot be evicted: a small cache needs an early flush.
	o.FlushBytes = min(o.FlushBytes, max(o.CacheBytes/2, 256<<10))
}
