package vfs

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// Op is a kind of operation that a Fault can act on; ops are bits, so that a rule can name several.
type Op uint32

// The operations. OpWrite covers WriteAt and WritevAt, OpRemove covers RemoveAll; Stat covers File.Size.
const (
	OpOpen Op = 1 << iota
	OpMkdir
	OpRemove
	OpRename
	OpReadDir
	OpStat
	OpSyncDir
	OpSyncFS
	OpLock
	OpFree
	OpRead
	OpWrite
	OpSync
	OpSyncData
	OpTruncate
	OpPreallocate
	OpStartWriteback
	OpSend
	OpClose

	// OpChanges are the operations after which a crash may leave something else than before.
	OpChanges = OpOpen | OpMkdir | OpRemove | OpRename | OpSyncDir | OpSyncFS | OpWrite | OpSync | OpSyncData | OpTruncate | OpPreallocate
	// OpSyncs are the operations that make something durable.
	OpSyncs = OpSyncDir | OpSyncFS | OpSync | OpSyncData
	// OpAll are all of them.
	OpAll = OpClose<<1 - 1
)

var opNames = [...]string{
	"open", "mkdir", "remove", "rename", "readdir", "stat", "syncdir", "syncfs", "lock", "free",
	"read", "write", "sync", "syncdata", "truncate", "preallocate", "startwriteback", "send", "close",
}

// String prints the names of the ops in o.
func (o Op) String() string {
	var names []string
	for i, name := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Call is one operation as hooks see it.
type Call struct {
	Op   Op
	Path string
	To   string // the new name of a rename
	Off  int64  // of reads, writes and sends
	Len  int64  // of reads, writes and sends
	Err  error  // in After: what the operation returned
}

// Rule acts on the operations that it matches. Its zero fields match everything and do nothing.
type Rule struct {
	Ops  Op     // zero means all
	Path string // a path.Match pattern for the base name, or for the whole name if it has a slash
	Nth  int    // the first matching operation it acts on, counted from 1; zero means 1
	// Times is how many matching operations it acts on; zero means all from Nth on.
	Times int

	Delay time.Duration // waits first
	// Err makes the operation fail without doing it, but for the first Short bytes of a write.
	Err   error
	Short int
	// Before and After are called around the operation, by its goroutine, one call at a time per Fault.
	Before, After func(Call)
}

func (r *Rule) matches(c Call) bool {
	if r.Ops != 0 && r.Ops&c.Op == 0 {
		return false
	}
	if r.Path == "" {
		return true
	}
	name := c.Path
	if !strings.Contains(r.Path, "/") {
		name = path.Base(name)
	}
	ok, err := path.Match(r.Path, name)
	return ok && err == nil
}

// Fault wraps an FS and lets rules act on its operations.
type Fault struct {
	fs FS

	mu     sync.Mutex
	rules  []*armed
	counts map[Op]int
	open   map[*faultFile]struct{}

	hooks chan struct{} // of capacity one; holds the right to run a hook
}

type armed struct {
	Rule
	seen int
}

// NewFault wraps fs. Rules are looked at in order and all that match act; the first with an Err decides.
func NewFault(fs FS, rules ...Rule) *Fault {
	f := &Fault{fs: fs, counts: map[Op]int{}, open: map[*faultFile]struct{}{}, hooks: make(chan struct{}, 1)}
	f.Add(rules...)
	return f
}

// Add adds rules; they count from now on.
func (f *Fault) Add(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rules {
		f.rules = append(f.rules, &armed{Rule: r})
	}
}

// Clear removes all rules.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Count is how often the operations in ops have been called.
func (f *Fault) Count(ops Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for op, c := range f.counts {
		if op&ops != 0 {
			n += c
		}
	}
	return n
}

// acting counts the call and returns the rules that act on it.
func (f *Fault) acting(c Call) []*armed {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[c.Op]++
	var list []*armed
	for _, r := range f.rules {
		if !r.matches(c) {
			continue
		}
		r.seen++
		first := max(r.Nth, 1)
		if r.seen >= first && (r.Times == 0 || r.seen < first+r.Times) {
			list = append(list, r)
		}
	}
	return list
}

// do runs one operation under the rules. do is given the number of bytes to write before failing, -1 for no failure.
func (f *Fault) do(c Call, op func() error, short func(n int)) error {
	rules := f.acting(c)
	var failing *armed
	for _, r := range rules {
		time.Sleep(r.Delay)
		f.hook(r.Before, c)
		if r.Err != nil && failing == nil {
			failing = r
		}
	}
	if failing == nil {
		c.Err = op()
	} else {
		if failing.Short > 0 && short != nil {
			short(failing.Short)
		}
		c.Err = &os.PathError{Op: c.Op.String(), Path: c.Path, Err: failing.Err}
	}
	for _, r := range rules {
		f.hook(r.After, c)
	}
	return c.Err
}

func (f *Fault) hook(h func(Call), c Call) {
	if h == nil {
		return
	}
	f.hooks <- struct{}{}
	defer func() { <-f.hooks }()
	h(c)
}

// OpenFile implements FS.
func (f *Fault) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	var file File
	err := f.do(Call{Op: OpOpen, Path: name}, func() (err error) {
		file, err = f.fs.OpenFile(name, flag, perm)
		return err
	}, nil)
	if err != nil {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
		return nil, err
	}
	x := &faultFile{f: f, file: file, name: name}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[x] = struct{}{}
	return x, nil
}

// MkdirAll implements FS.
func (f *Fault) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(Call{Op: OpMkdir, Path: dir}, func() error { return f.fs.MkdirAll(dir, perm) }, nil)
}

// Mkdir implements FS.
func (f *Fault) Mkdir(dir string, perm os.FileMode) error {
	return f.do(Call{Op: OpMkdir, Path: dir}, func() error { return f.fs.Mkdir(dir, perm) }, nil)
}

// Remove implements FS.
func (f *Fault) Remove(name string) error {
	return f.do(Call{Op: OpRemove, Path: name}, func() error { return f.fs.Remove(name) }, nil)
}

// RemoveAll implements FS.
func (f *Fault) RemoveAll(name string) error {
	return f.do(Call{Op: OpRemove, Path: name}, func() error { return f.fs.RemoveAll(name) }, nil)
}

// Rename implements FS.
func (f *Fault) Rename(oldName, newName string) error {
	return f.do(Call{Op: OpRename, Path: oldName, To: newName}, func() error {
		err := f.fs.Rename(oldName, newName)
		if err == nil {
			f.renamed(oldName, newName)
		}
		return err
	}, nil)
}

// renamed lets rules find open files under their present name.
func (f *Fault) renamed(oldName, newName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for x := range f.open {
		if path.Clean(x.name) == path.Clean(oldName) {
			x.name = newName
		}
	}
}

// ReadDir implements FS.
func (f *Fault) ReadDir(dir string) (list []DirEntry, err error) {
	err = f.do(Call{Op: OpReadDir, Path: dir}, func() (err error) {
		list, err = f.fs.ReadDir(dir)
		return err
	}, nil)
	return list, err
}

// Stat implements FS.
func (f *Fault) Stat(name string) (info FileInfo, err error) {
	err = f.do(Call{Op: OpStat, Path: name}, func() (err error) {
		info, err = f.fs.Stat(name)
		return err
	}, nil)
	return info, err
}

// SyncDir implements FS.
func (f *Fault) SyncDir(dir string) error {
	return f.do(Call{Op: OpSyncDir, Path: dir}, func() error { return f.fs.SyncDir(dir) }, nil)
}

// SyncFS implements FS.
func (f *Fault) SyncFS(dir string) error {
	return f.do(Call{Op: OpSyncFS, Path: dir}, func() error { return f.fs.SyncFS(dir) }, nil)
}

// Lock implements FS.
func (f *Fault) Lock(name string) (c io.Closer, err error) {
	err = f.do(Call{Op: OpLock, Path: name}, func() (err error) {
		c, err = f.fs.Lock(name)
		return err
	}, nil)
	return c, err
}

// Free implements FS.
func (f *Fault) Free(dir string) (free, total int64, err error) {
	err = f.do(Call{Op: OpFree, Path: dir}, func() (err error) {
		free, total, err = f.fs.Free(dir)
		return err
	}, nil)
	return free, total, err
}
