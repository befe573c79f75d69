package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/eastguard/eastguard/internal/store"
)

// checkDisk opens a copy of what a node has on its disk, as its next start would: nothing there may be damaged, nor
// unknown to the catalogue. It says what is.
func (n *Node) checkDisk() error {
	disk := n.disk.Snapshot()
	if _, err := disk.Stat(path.Join(n.Config.DataDir, "identity")); errors.Is(err, fs.ErrNotExist) {
		return nil // ended before it was anybody
	}
	id, lock, err := store.OpenIdentity(disk, n.Config.DataDir, n.Config.MetaDir, store.IdentityRequest{})
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	var problems []error
	st, err := store.Open(store.Options{
		FS: disk, DataDir: n.Config.DataDir, CacheBytes: n.Config.CacheBudgetBytes, ReserveBytes: -1,
		OnFatal: func(err error) { problems = append(problems, err) },
		OnEvent: func(e store.Event) {
			if e.Kind == store.EventDamage || e.Kind == store.EventQuarantined {
				problems = append(problems, fmt.Errorf("%s: %s: %s", e.Kind, e.Path, e.Detail))
			}
		},
	}, *id)
	if err != nil {
		return errors.Join(fmt.Errorf("store: %w", err), lock.Close())
	}
	return errors.Join(errors.Join(problems...), st.Close(), lock.Close())
}
