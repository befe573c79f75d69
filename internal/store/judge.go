package store

import (
	"errors"
	"path/filepath"
)

// judgeDamage decides what it means that something is not there.
func (r *recovery) judgeDamage() error {
	for g, causes := range r.suspects {
		if g.dropped {
			continue // its files were to be removed anyway
		}
		if err := r.convict(g, errors.Join(causes...)); err != nil {
			return err
		}
	}
	// Any segment that could take appends while the log was written that cannot be read may have lost its last batches, and
	// one that was listed then may be missing altogether. Without such a stretch, batches that do not follow are of a
	// segment that lost one to a full disk: never acked, void.
	for _, d := range r.recovery.WAL.Damage {
		r.event(Event{Kind: EventDamage, Path: filepath.Join(r.file(walName), filepath.Base(d.File)), Detail: d.Detail})
		if uint64(d.End) <= r.included || d.LSN == d.End {
			continue
		}
		r.lossy, r.dirtied = true, true
		for _, g := range r.allSegments() {
			whole := g.sealed.Load() >= 0 && g.durable.Load() >= g.sealed.Load()
			if !whole && !g.damaged && r.openedAt[g] <= d.End {
				g.damaged, g.intact = true, g.durable.Load()
				r.reportDamage(g, "the log lost records of this time: "+d.Detail)
			}
		}
	}
	return nil
}

// convict deals with a segment whose files are not what they were: what is left of them is kept, the bad ones and the
// batches that have lost their place are put aside.
func (r *recovery) convict(g *segmentLog, cause error) error {
	r.reportDamage(g, cause.Error())
	if r.forgot[g] {
		if err := r.quarantine(r.path(g) + stateSuffix); err != nil {
			return err
		}
	}
	return r.salvage(g, r.homeless[g])
}

// reportDamage says that this copy has lost something. The next start finds it in the catalogue.
func (r *recovery) reportDamage(g *segmentLog, detail string) {
	r.dirtied = true
	r.recovery.Damaged = append(r.recovery.Damaged, g.spec.Segment)
	r.event(Event{Kind: EventDamage, Ref: g.spec.Ref, Segment: g.spec.Segment, Path: r.path(g), Detail: detail})
}
