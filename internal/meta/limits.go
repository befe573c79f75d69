package meta

import (
	"time"

	"github.com/eastguard/eastguard/internal/base"
)

// retentionShare is the part of its retention that a topic's segments may be old before they roll: with 20, data
// outlives its retention by at most a twentieth.
const retentionShare = 20

// resolve fills in what the topic leaves to the brokers. An age roll comes at max(segment age, retention/20), so a
// trickle expires in time and 100,000 topics do not roll hourly; a retention shorter than the age is the exception,
// since its data would live for the age instead.
func (l Limits) resolve(c base.TopicConfig) base.TopicConfig {
	if c.SegmentBytes == 0 {
		c.SegmentBytes = l.SegmentBytes
	}
	if c.SegmentAge == 0 {
		age := time.Duration(l.SegmentAgeMs) * time.Millisecond
		share := c.Retention / retentionShare
		if c.Retention > 0 && c.Retention < age {
			age = share
		}
		c.SegmentAge = max(age, share, base.MinSegmentAge)
	}
	return c
}
