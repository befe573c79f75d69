// Package record builds and reads whole v2 batches.
package record
