package store

import "bytes"

// ThroughImage is a view as it is after it was kept for a while.
func ThroughImage(v *View) (*View, error) {
	var b bytes.Buffer
	if err := freeze(&b, v); err != nil {
		return nil, err
	}
	back, err := thaw(&b)
	if err == nil {
		back.Seals, back.Changes, back.Gaps, back.Events, back.Logs = v.Seals, v.Changes, v.Gaps, v.Events, v.Logs
	}
	return back, err
}
