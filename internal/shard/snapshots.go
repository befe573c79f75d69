package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/hashicorp/raft"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/internal/vfs"
)

// A snapshot is one file, written under another name, synced and renamed:
//
//	"EGSNAP1\n" | body | header (CBOR, snapshotMeta) | header length u32 | CRC32C of all before u32     big-endian
//
// The header is a trailer, since raft tells the size last. The file's name is <index>-<term>, 16 hex digits each, so
// that names sort by age.
const (
	snapshotMagic   = "EGSNAP1\n"
	snapshotSuffix  = ".snap"
	snapshotTemp    = ".tmp"
	snapshotDamaged = ".damaged"
	snapshotsKept   = 2
	snapshotTrailer = 8
)

// snapshotMeta is raft's SnapshotMeta in a form of our own.
type snapshotMeta struct {
	Index              uint64           `cbor:"1,keyasint"`
	Term               uint64           `cbor:"2,keyasint"`
	ConfigurationIndex uint64           `cbor:"3,keyasint"`
	Servers            []snapshotServer `cbor:"4,keyasint"`
	Body               int64            `cbor:"5,keyasint"` // length
}

type snapshotServer struct {
	ID      string `cbor:"1,keyasint"`
	Address string `cbor:"2,keyasint"`
	Voter   bool   `cbor:"3,keyasint,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshotStore is the raft.SnapshotStore of one group: its last two snapshots.
type snapshotStore struct {
	fs     vfs.FS
	dir    string
	logger *slog.Logger

	mu        sync.Mutex
	metas     []snapshotMeta // newest first
	older     func(index uint64)
	continues func(index uint64) bool // whether the log goes on from a snapshot that ends there
	fatal     func(error)             // a sync, rename or close has failed
}

// openSnapshotStore reads every snapshot through. One that does not match its checksum is set aside, loudly: raft must
// not find out when it needs it, and must not take an older one without anybody knowing.
func openSnapshotStore(fsys vfs.FS, dir string, logger *slog.Logger) (*snapshotStore, error) {
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &snapshotStore{fs: fsys, dir: dir, logger: logger, older: func(uint64) {}, continues: func(uint64) bool { return false }, fatal: func(error) {}}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(entries) {
		name := filepath.Join(dir, e.Name)
		switch {
		case strings.HasSuffix(e.Name, snapshotTemp): // of a crash while it was written
			if err := fsys.Remove(name); err != nil {
				return nil, err
			}
		case strings.HasSuffix(e.Name, snapshotSuffix):
			if err := s.check(name); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *snapshotStore) check(name string) error {
	m, _, err := s.read(name)
	if err == nil {
		s.metas = append(s.metas, m)
		return nil
	}
	if !errors.Is(err, base.CodeCorruptData) {
		return err
	}
	s.logger.Error("metadata snapshot is damaged, set aside", "file", name, "error", err)
	if err := s.fs.Rename(name, name+snapshotDamaged); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// read loads a snapshot and proves it whole.
func (s *snapshotStore) read(name string) (snapshotMeta, []byte, error) {
	var m snapshotMeta
	damaged := func(why string) (snapshotMeta, []byte, error) {
		return m, nil, base.Errorf(base.CodeCorruptData, "read snapshot", "%s %s", name, why)
	}
	b, err := vfs.ReadFile(s.fs, name)
	if err != nil {
		return m, nil, err
	}
	if len(b) < len(snapshotMagic)+snapshotTrailer || string(b[:len(snapshotMagic)]) != snapshotMagic {
		return damaged("is not a snapshot")
	}
	if sum := binary.BigEndian.Uint32(b[len(b)-4:]); sum != crc32.Checksum(b[:len(b)-4], castagnoli) {
		return damaged("does not match its checksum")
	}
	rest := b[len(snapshotMagic) : len(b)-snapshotTrailer]
	header := int64(binary.BigEndian.Uint32(b[len(b)-snapshotTrailer:]))
	if header > int64(len(rest)) {
		return damaged("has a header longer than itself")
	}
	body := rest[:int64(len(rest))-header]
	if err := cbor.Unmarshal(rest[len(body):], &m); err != nil || m.Body != int64(len(body)) {
		return damaged("has a header that does not parse")
	}
	if snapshotName(m.Index, m.Term) != filepath.Base(name) {
		return damaged("carries the name of another snapshot")
	}
	return m, body, nil
}

func snapshotName(index, term uint64) string {
	return fmt.Sprintf("%016x-%016x%s", index, term, snapshotSuffix)
}

// snapshotDir is where a group's snapshots lie.
func snapshotDir(metaDir string, shard base.ShardID) string {
	return filepath.Join(metaDir, "snapshots", shard.String())
}

// newest is what the newest snapshot ends with.
func (s *snapshotStore) newest() (index, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.metas) == 0 {
		return 0, 0
	}
	return s.metas[0].Index, s.metas[0].Term
}

func (s *snapshotStore) newestIndex() uint64 { return s.indexOf(0) }

// olderIndex is where the log must begin so that the older snapshot is of use: 0 as long as there is none, so that the
// whole log is.
func (s *snapshotStore) olderIndex() uint64 { return s.indexOf(snapshotsKept - 1) }

func (s *snapshotStore) indexOf(i int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.metas) {
		return 0
	}
	return s.metas[i].Index
}

func (s *snapshotStore) newestSize() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.metas) == 0 {
		return 0
	}
	return s.metas[0].Body
}

// List lists the snapshots, newest first.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*raft.SnapshotMeta, len(s.metas))
	for i, m := range s.metas {
		list[i] = m.raft()
	}
	return list, nil
}

func (m snapshotMeta) raft() *raft.SnapshotMeta {
	c := raft.Configuration{}
	for _, server := range m.Servers {
		suffrage := raft.Nonvoter
		if server.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(server.ID), Address: raft.ServerAddress(server.Address)})
	}
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: snapshotName(m.Index, m.Term), Index: m.Index, Term: m.Term,
		Configuration: c, ConfigurationIndex: m.ConfigurationIndex, Size: m.Body,
	}
}

// Open reads a snapshot whole, so that nothing of it is used before all of it was checked. One that is damaged is set
// aside if the log goes back to the older one, which the next try finds.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	name := filepath.Join(s.dir, filepath.Base(id))
	m, body, err := s.read(name)
	if errors.Is(err, base.CodeCorruptData) && s.continues(s.olderIndex()) {
		s.logger.Error("metadata snapshot is damaged, set aside", "file", name, "error", err)
		err = errors.Join(err, s.fs.Rename(name, name+snapshotDamaged), s.fs.SyncDir(s.dir))
		s.mu.Lock()
		s.metas = slices.DeleteFunc(s.metas, func(m snapshotMeta) bool { return snapshotName(m.Index, m.Term) == filepath.Base(id) })
		s.mu.Unlock()
	}
	if err != nil {
		return nil, nil, err
	}
	return m.raft(), io.NopCloser(bytes.NewReader(body)), nil
}

// Create begins a snapshot.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	m := snapshotMeta{Index: index, Term: term, ConfigurationIndex: configurationIndex}
	for _, server := range configuration.Servers {
		m.Servers = append(m.Servers, snapshotServer{ID: string(server.ID), Address: string(server.Address), Voter: server.Suffrage == raft.Voter})
	}
	name := filepath.Join(s.dir, snapshotName(index, term))
	f, err := s.fs.OpenFile(name+snapshotTemp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	sink := &snapshotSink{store: s, meta: m, name: name, file: f}
	if err := sink.write([]byte(snapshotMagic)); err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return sink, nil
}

// snapshotSink writes one snapshot. It becomes one by Close, whole and durable, or never.
type snapshotSink struct {
	store *snapshotStore
	meta  snapshotMeta
	name  string
	file  vfs.File
	off   int64
	crc   uint32
	ended bool
}

// ID is the snapshot's file name.
func (k *snapshotSink) ID() string { return filepath.Base(k.name) }

// Write appends to the body.
func (k *snapshotSink) Write(p []byte) (int, error) {
	if err := k.write(p); err != nil {
		return 0, err
	}
	k.meta.Body += int64(len(p))
	return len(p), nil
}

func (k *snapshotSink) write(p []byte) error {
	if _, err := k.file.WriteAt(p, k.off); err != nil {
		return err
	}
	k.off += int64(len(p))
	k.crc = crc32.Update(k.crc, castagnoli, p)
	return nil
}

// Close completes the snapshot and retires all but the last two.
func (k *snapshotSink) Close() error {
	if k.ended {
		return nil
	}
	k.ended = true
	if err := k.settle(); err != nil {
		var lost *vfs.SyncError
		if errors.As(err, &lost) { // raft would only log it
			k.store.fatal(err)
		}
		return err
	}
	return k.store.added(k.meta)
}

// settle makes the snapshot whole and durable under its name.
func (k *snapshotSink) settle() error {
	err := k.finish()
	if err = errors.Join(err, vfs.Synced(k.file.Close())); err != nil {
		return errors.Join(err, k.discard())
	}
	if err := k.store.fs.Rename(k.name+snapshotTemp, k.name); err != nil {
		return vfs.Synced(err)
	}
	return vfs.Synced(k.store.fs.SyncDir(k.store.dir))
}

func (k *snapshotSink) finish() error {
	header, err := cbor.Marshal(&k.meta)
	if err != nil {
		return err
	}
	if err := k.write(binary.BigEndian.AppendUint32(header, uint32(len(header)))); err != nil {
		return err
	}
	if err := k.write(binary.BigEndian.AppendUint32(nil, k.crc)); err != nil {
		return err
	}
	return vfs.Synced(k.file.Sync())
}

// Cancel gives the snapshot up.
func (k *snapshotSink) Cancel() error {
	if k.ended {
		return nil
	}
	k.ended = true
	return errors.Join(k.file.Close(), k.discard())
}

func (k *snapshotSink) discard() error {
	if err := k.store.fs.Remove(k.name + snapshotTemp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// added makes the new snapshot known and removes those that are not kept. Raft compacts the log right after, down to
// what the older of the two needs.
func (s *snapshotStore) added(m snapshotMeta) error {
	s.mu.Lock()
	same := func(o snapshotMeta) bool { return o.Index == m.Index && o.Term == m.Term }
	s.metas = append([]snapshotMeta{m}, slices.DeleteFunc(slices.Clone(s.metas), same)...)
	var retired []snapshotMeta
	if len(s.metas) > snapshotsKept {
		retired = slices.Clone(s.metas[snapshotsKept:])
		s.metas = s.metas[:snapshotsKept]
	}
	s.mu.Unlock()
	for _, r := range retired {
		if err := s.fs.Remove(filepath.Join(s.dir, snapshotName(r.Index, r.Term))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.older(s.olderIndex())
	return nil
}
