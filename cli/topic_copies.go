package cli

import (
	"fmt"
	"strconv"

	"github.com/eastguard/eastguard/internal/base"
	"github.com/eastguard/eastguard/sdk"
)

// copiesOf is how many copies the records of a topic get as its active segments are now, in the range with the fewest. A
// topic without a segment has what it asks for: nothing is known to be short.
func copiesOf(t sdk.TopicDetail, factor int) int {
	fewest := factor
	for _, r := range t.Ranges {
		if n := len(r.Segments); n > 0 && r.Segments[n-1].State == base.StateActive {
			fewest = min(fewest, len(r.Segments[n-1].Replicas))
		}
	}
	return fewest
}

// fewerCopies says what a topic begins with that fewer nodes can take than its factor; nothing where there are enough.
func fewerCopies(copies, factor int) string {
	if copies >= factor {
		return ""
	}
	return fmt.Sprintf("%d of %d copies: %s; the others are made as nodes join", copies, factor,
		pluralAs(int64(copies), "node can take one", "nodes can take one"))
}

// factorAfter is a topic's replication factor once a change of its settings is made.
func factorAfter(before sdk.TopicConfig, after map[string]string) int {
	if n, err := strconv.Atoi(after["replication_factor"]); err == nil {
		return n
	}
	return before.ReplicationFactor
}
