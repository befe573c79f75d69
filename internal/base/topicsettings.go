package base

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LabelPrefix begins the setting of one label: "label.team".
const LabelPrefix = "label."

// Bounds of what a topic may be set to. They keep a typing error from costing a cluster its memory or its disk.
const (
	MaxReplicationFactor = 9
	MinSegmentBytes      = 64 << 10
	MaxSegmentBytes      = 4095 << 20 // positions in a segment have 32 bits
	MinSegmentAge        = time.Second
	MaxLabels            = 32
	MaxLabelBytes        = 256
)

// TopicSetting is one row of the table of what a topic can be told: its key, what it means, and whether it may
// change after the topic exists.
type TopicSetting struct {
	Key       string
	Help      string // one sentence, lower case
	Example   string
	Alterable bool

	get func(*TopicConfig) string // "" = at its default
	set func(*TopicConfig, string) error
}

// topicSettings is the one table: flags of create-topic, keys of topic alter and the config section of topic
// describe all come from it. Labels are settings too, under keys of their own.
var topicSettings = []TopicSetting{
	{
		Key: "replication_factor", Help: "copies of each segment; an altered factor holds from each range's next segment on", Example: "3", Alterable: true,
		get: func(c *TopicConfig) string { return strconv.Itoa(c.ReplicationFactor) },
		set: func(c *TopicConfig, v string) (err error) {
			c.ReplicationFactor, err = parseCount(v, MaxReplicationFactor)
			return err
		},
	},
	{
		Key: "min_replicas", Help: "copies without which a segment is not opened; 0 means a majority of the factor", Example: "2", Alterable: true,
		get: func(c *TopicConfig) string { return strconv.Itoa(c.MinReplicas) },
		set: func(c *TopicConfig, v string) (err error) {
			c.MinReplicas, err = parseCount(v, MaxReplicationFactor)
			return err
		},
	},
	{
		Key: "strategy", Help: "auto splits and merges ranges with load, fixed keeps them", Example: "auto",
		get: func(c *TopicConfig) string { return c.Strategy.String() },
		set: func(c *TopicConfig, v string) (err error) {
			c.Strategy, err = parseEnum(v, StrategyAuto, StrategyFixed)
			return err
		},
	},
	{
		Key: "durability", Help: "fsync acks what every replica has on disk, replicated what every replica has in memory", Example: "fsync", Alterable: true,
		get: func(c *TopicConfig) string { return c.Durability.String() },
		set: func(c *TopicConfig, v string) (err error) {
			c.Durability, err = parseEnum(v, DurabilityFsync, DurabilityReplicated)
			return err
		},
	},
	{
		Key: "on_total_loss", Help: "what a range does when no copy of its active segment is left: wait, or replace it", Example: "wait", Alterable: true,
		get: func(c *TopicConfig) string { return c.OnTotalLoss.String() },
		set: func(c *TopicConfig, v string) (err error) {
			c.OnTotalLoss, err = parseEnum(v, OnTotalLossWait, OnTotalLossReplace)
			return err
		},
	},
	{
		Key: "retention", Help: "how long records are kept after they were appended; 0 means for ever", Example: "7d", Alterable: true,
		get: func(c *TopicConfig) string { return FormatDuration(c.Retention) },
		set: func(c *TopicConfig, v string) (err error) {
			c.Retention, err = parseLimit(v)
			return err
		},
	},
	{
		Key: "retention_bytes", Help: "how many bytes each range keeps; 0 means no limit", Example: "10GiB", Alterable: true,
		get: func(c *TopicConfig) string { return FormatSize(c.RetentionBytes) },
		set: func(c *TopicConfig, v string) (err error) {
			c.RetentionBytes, err = ParseSize(v)
			return err
		},
	},
	{
		Key: "segment_bytes", Help: "size at which a segment is sealed; 0 means the brokers' segment_size_limit_bytes", Example: "1GiB", Alterable: true,
		get: func(c *TopicConfig) string { return FormatSize(c.SegmentBytes) },
		set: func(c *TopicConfig, v string) (err error) {
			c.SegmentBytes, err = ParseSize(v)
			return err
		},
	},
	{
		Key: "segment_age", Help: "age at which a segment is sealed; 0 means the brokers' max_segment_age_secs", Example: "1h", Alterable: true,
		get: func(c *TopicConfig) string { return FormatDuration(c.SegmentAge) },
		set: func(c *TopicConfig, v string) (err error) {
			c.SegmentAge, err = parseLimit(v)
			return err
		},
	},
	{
		Key: "compression", Help: "what producers compress with unless told otherwise: none, lz4 or zstd", Example: "lz4", Alterable: true,
		get: func(c *TopicConfig) string { return c.Compression },
		set: func(c *TopicConfig, v string) error {
			c.Compression = v
			return nil
		},
	},
	{
		Key: "spread_by", Help: "copies of a segment are spread over different values of this: rack, or a node label", Example: "rack", Alterable: true,
		get: func(c *TopicConfig) string { return c.SpreadBy },
		set: func(c *TopicConfig, v string) error {
			c.SpreadBy = v
			return nil
		},
	},
	{
		Key: "split_rate", Help: "write rate of a range, in bytes a second, above which it is split; 0 means the default", Example: "20MB", Alterable: true,
		get: func(c *TopicConfig) string { return FormatSize(c.SplitRate) },
		set: func(c *TopicConfig, v string) (err error) {
			c.SplitRate, err = ParseSize(strings.TrimSuffix(v, "/s"))
			return err
		},
	},
}

// TopicSettings lists the table, in the order people should see it.
func TopicSettings() []TopicSetting { return slices.Clone(topicSettings) }

func findTopicSetting(key string) (TopicSetting, error) {
	if i := slices.IndexFunc(topicSettings, func(s TopicSetting) bool { return s.Key == key }); i >= 0 {
		return topicSettings[i], nil
	}
	if label, ok := strings.CutPrefix(key, LabelPrefix); ok {
		return labelSetting(label), nil
	}
	return TopicSetting{}, Errorf(CodeInvalidArgument, "topic setting", "there is no setting %q", key).
		WithHint("settings are %s and label.NAME", strings.Join(TopicConfig{}.settingKeys(), ", "))
}

// labelSetting makes the row of one label. Its set copies the map, so that copies of a TopicConfig stay apart.
func labelSetting(label string) TopicSetting {
	return TopicSetting{
		Key: LabelPrefix + label, Help: "a label", Alterable: true,
		get: func(c *TopicConfig) string { return c.Labels[label] },
		set: func(c *TopicConfig, v string) error {
			labels := maps.Clone(c.Labels)
			if labels == nil {
				labels = make(map[string]string)
			}
			labels[label] = v
			c.Labels = labels
			return nil
		},
	}
}

// Set parses value and gives it to the setting named key, leaving c as it was on an error. It judges the value
// alone; Validate judges the settings together.
func (c *TopicConfig) Set(key, value string) error {
	setting, err := findTopicSetting(key)
	if err != nil {
		return err
	}
	next := *c
	if err := setting.set(&next, value); err != nil {
		return refusedSetting(key, err)
	}
	*c = next
	return nil
}

// refusedSetting names the setting in the message: "retention: "soon" is not a duration".
func refusedSetting(key string, err error) error {
	var cause *Error
	if !errors.As(err, &cause) {
		return Wrap(CodeInvalidArgument, "set "+key, err)
	}
	named := *cause
	named.Op, named.Msg, named.Err = "set topic setting", key+": "+cause.Msg, err
	return &named
}

// Unset returns the setting named key to its default; a label is removed.
func (c *TopicConfig) Unset(key string) error {
	setting, err := findTopicSetting(key)
	if err != nil {
		return err
	}
	if label, ok := strings.CutPrefix(key, LabelPrefix); ok {
		c.Labels = maps.Clone(c.Labels)
		delete(c.Labels, label)
		if len(c.Labels) == 0 {
			c.Labels = nil
		}
		return nil
	}
	return setting.set(c, setting.get(&defaultTopicConfig))
}

// defaultTopicConfig is what Unset returns to: it must be settable through the table, so its factor is 1.
var defaultTopicConfig = TopicConfig{ReplicationFactor: 1, Compression: "none"}

// Alter is Set and Unset of many keys at once, refusing those that cannot change after creation. The result is
// validated; on an error c is as it was.
func (c *TopicConfig) Alter(set map[string]string, unset []string) error {
	const op = "alter topic"
	next := c.Clone()
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if setting, err := findTopicSetting(key); err == nil && !setting.Alterable {
			return Errorf(CodeInvalidArgument, op, "%s is fixed when the topic is created", key).WithHint("create a new topic with the other %s", key)
		}
		if slices.Contains(unset, key) {
			return Errorf(CodeInvalidArgument, op, "%s is both set and unset", key)
		}
		if err := next.Set(key, set[key]); err != nil {
			return err
		}
	}
	for _, key := range unset {
		if setting, err := findTopicSetting(key); err == nil && !setting.Alterable {
			return Errorf(CodeInvalidArgument, op, "%s is fixed when the topic is created", key)
		}
		if err := next.Unset(key); err != nil {
			return err
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

// Get prints the setting named key in the form Set reads. ok is false for an unknown key or an absent label.
func (c TopicConfig) Get(key string) (value string, ok bool) {
	if label, isLabel := strings.CutPrefix(key, LabelPrefix); isLabel {
		value, ok = c.Labels[label]
		return value, ok
	}
	setting, err := findTopicSetting(key)
	if err != nil {
		return "", false
	}
	return setting.get(&c), true
}

// Keys lists every setting c can print: the table's in its order, then its labels sorted.
func (c TopicConfig) Keys() []string {
	keys := c.settingKeys()
	for _, label := range slices.Sorted(maps.Keys(c.Labels)) {
		keys = append(keys, LabelPrefix+label)
	}
	return keys
}

func (TopicConfig) settingKeys() []string {
	keys := make([]string, len(topicSettings))
	for i, s := range topicSettings {
		keys[i] = s.Key
	}
	return keys
}

// Settings prints every setting, by key.
func (c TopicConfig) Settings() map[string]string {
	m := make(map[string]string)
	for _, key := range c.Keys() {
		m[key], _ = c.Get(key)
	}
	return m
}

// Validate reports the first setting that is out of bounds or does not fit the others.
func (c TopicConfig) Validate() error {
	const op = "check topic settings"
	bad := func(format string, args ...any) error { return Errorf(CodeInvalidArgument, op, format, args...) }
	switch {
	case c.ReplicationFactor < 1 || c.ReplicationFactor > MaxReplicationFactor:
		return bad("replication_factor %d is not between 1 and %d", c.ReplicationFactor, MaxReplicationFactor)
	case c.MinReplicas < 0 || c.MinReplicas > c.ReplicationFactor:
		return bad("min_replicas %d is not between 0 and the replication factor %d", c.MinReplicas, c.ReplicationFactor)
	case c.Strategy > StrategyFixed:
		return bad("strategy %d is not known", c.Strategy)
	case c.Durability > DurabilityReplicated:
		return bad("durability %d is not known", c.Durability)
	case c.OnTotalLoss > OnTotalLossReplace:
		return bad("on_total_loss %d is not known", c.OnTotalLoss)
	case c.Retention < 0 || c.RetentionBytes < 0 || c.SplitRate < 0:
		return bad("retention, retention_bytes and split_rate cannot be negative")
	case c.Retention > 0 && c.Retention < time.Second:
		return bad("retention %s is shorter than a second", c.Retention)
	case c.SegmentBytes != 0 && (c.SegmentBytes < MinSegmentBytes || c.SegmentBytes > MaxSegmentBytes):
		return bad("segment_bytes %d is not between %s and %s", c.SegmentBytes, FormatSize(MinSegmentBytes), FormatSize(MaxSegmentBytes))
	case c.SegmentAge != 0 && c.SegmentAge < MinSegmentAge:
		return bad("segment_age %s is shorter than %s", c.SegmentAge, FormatDuration(MinSegmentAge))
	case !slices.Contains([]string{"", "none", "lz4", "zstd"}, c.Compression):
		return bad("compression %q is not none, lz4 or zstd", c.Compression)
	case len(c.SpreadBy) > MaxLabelBytes || strings.IndexFunc(c.SpreadBy, notNameRune) >= 0:
		return bad("spread_by %q is not rack or the name of a label", c.SpreadBy)
	case len(c.Labels) > MaxLabels:
		return bad("%d labels, at most %d are allowed", len(c.Labels), MaxLabels)
	}
	return c.validateLabels()
}

func (c TopicConfig) validateLabels() error {
	const op = "check topic settings"
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		switch value := c.Labels[name]; {
		case name == "" || len(name) > MaxLabelBytes || strings.IndexFunc(name, notNameRune) >= 0:
			return Errorf(CodeInvalidArgument, op, "label name %q must have 1 to %d letters, digits, '.', '_' or '-'", name, MaxLabelBytes)
		case len(value) > MaxLabelBytes:
			return Errorf(CodeInvalidArgument, op, "label %s has %d bytes, at most %d are allowed", name, len(value), MaxLabelBytes)
		case strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) >= 0:
			return Errorf(CodeInvalidArgument, op, "label %s has a control character or is not UTF-8", name)
		}
	}
	return nil
}

// MinReplicasOrDefault resolves MinReplicas: a majority of the factor unless set.
func (c TopicConfig) MinReplicasOrDefault() int {
	if c.MinReplicas > 0 {
		return c.MinReplicas
	}
	return c.ReplicationFactor/2 + 1
}

// NarrowsRetention reports whether going from c to next lets records be deleted earlier, which people confirm.
func (c TopicConfig) NarrowsRetention(next TopicConfig) bool {
	narrower := func(before, after int64) bool { return after != 0 && (before == 0 || after < before) }
	return narrower(int64(c.Retention), int64(next.Retention)) || narrower(c.RetentionBytes, next.RetentionBytes)
}

func parseCount(v string, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > most {
		return 0, Errorf(CodeInvalidArgument, "parse number", "%q is not a whole number between 0 and %d", v, most)
	}
	return n, nil
}

// parseEnum reads one of the names that options print.
func parseEnum[E interface{ String() string }](v string, options ...E) (E, error) {
	names := make([]string, len(options))
	for i, o := range options {
		if names[i] = o.String(); names[i] == v {
			return o, nil
		}
	}
	var none E
	return none, Errorf(CodeInvalidArgument, "parse word", "%q is not one of %s", v, strings.Join(names, ", "))
}

// parseLimit reads a duration; forever and unlimited are other names of 0.
func parseLimit(v string) (time.Duration, error) {
	if v == "forever" || v == "unlimited" {
		return 0, nil
	}
	return ParseDuration(v)
}
