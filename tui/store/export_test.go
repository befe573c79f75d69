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
		logsOf(v).into(back)
	}
	return back, err
}
