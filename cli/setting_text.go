package cli

import "strings"

// zeroMeans says what 0 stands for in the settings where it is not a number.
var zeroMeans = map[string]string{
	"retention":       "for ever",
	"retention_bytes": "no limit",
	"segment_bytes":   "brokers' default",
	"segment_age":     "brokers' default",
	"split_rate":      "default",
	"min_replicas":    "a majority",
}

// settingText is a setting's value as people see it. Machine output has the value itself.
func settingText(key, value string) string {
	if text, ok := zeroMeans[key]; ok && strings.HasPrefix(value, "0") && !strings.ContainsAny(value, "123456789") {
		return text
	}
	return value
}

// inWords are the settings for a table that people read.
func inWords(rows []settingRow) []settingRow {
	out := make([]settingRow, len(rows))
	for i, r := range rows {
		r.Value, r.Default = settingText(r.Key, r.Value), settingText(r.Key, r.Default)
		out[i] = r
	}
	return out
}

func changesInWords(rows []settingDif) []settingDif {
	out := make([]settingDif, len(rows))
	for i, r := range rows {
		out[i] = settingDif{Key: r.Key, Before: settingText(r.Key, r.Before), After: settingText(r.Key, r.After)}
	}
	return out
}
