package wire

import "strings"

// toValid drops what is not UTF-8.
func toValid(s string) string { return strings.ToValidUTF8(s, "") }
