//go:build !race

package store_test

import "os"

const raceFactor = 1

var soak = os.Getenv("EASTGUARD_SOAK") != ""
