package store

import (
	"math"
	"time"
)

const (
	// smoothOver is the time over which what is told once a second is averaged: what lies further back than that counts
	// little.
	smoothOver = 3 * time.Second
	// settledAt is how near a smoothed rate comes to what is told again and again before it is that; as a part of it, and at
	// least: half of one a second is nothing.
	settledAt      = 1.0 / 500
	settledAtLeast = 0.5
	// steadyBand is how far, as a part of it, a steady value may be off. It is less than a step of the heat ramp.
	steadyBand = 1.0 / 10
)

// Steady is a value that wobbles as it is drawn and sorted by: it stays where it was shown until it is off by more than
// a tenth. So a load that is the same to within a few per cent gives the same picture, and no work to the terminal.
func Steady(shown, now float64) float64 {
	if shown > 0 && math.Abs(now-shown) <= steadyBand*shown {
		return shown
	}
	return now
}

// weight is how much of a smoothed rate the newest value makes, so long after the one before.
func weight(passed time.Duration) float64 {
	return 1 - math.Exp(-max(passed, 0).Seconds()/smoothOver.Seconds())
}

// smooth moves a rate towards the newest value. It gets there: a rate that does not change is told as it is. What has
// stopped goes three times as fast: a node that takes nothing any more does not seem to for half a minute.
func smooth(rate *float64, newest, weight float64) {
	if newest == 0 {
		weight = 1 - math.Pow(1-weight, 3)
	}
	*rate += weight * (newest - *rate)
	if math.Abs(*rate-newest) <= max(settledAt*math.Abs(newest), settledAtLeast) {
		*rate = newest
	}
}
