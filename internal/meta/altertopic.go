package meta

import (
	"slices"
	"strings"
)

func (a *applier) alterTopic(cmd *AlterTopic) Result {
	s := a.state
	t, err := s.find(cmd.Topic, cmd.Name, cmd.ExpectVersion)
	if err != nil {
		return refuse(err)
	}
	config := t.Config
	if err := config.Alter(cmd.Set, cmd.Unset); err != nil {
		return refuse(asError(err))
	}
	before, after := diffSettings(t.Config.Settings(), config.Settings())
	result := Result{TopicID: t.ID, Version: t.Version, Before: before, After: after, Topic: t}
	if len(before)+len(after) == 0 {
		return result
	}
	t = t.clone()
	t.Config = config
	t.Version++
	t.ConfigVersion = t.Version
	s.put(t)
	a.emit(Event{
		Type: EventTopicAltered, Topic: t.ID, Name: t.Name, Detail: describeChange(before, after),
		Before: listSettings(before), After: listSettings(after),
	})
	result.Version, result.Topic = t.Version, t
	return result
}

// diffSettings keeps what differs; a label that is absent on one side is absent there too.
func diffSettings(old, new map[string]string) (before, after map[string]string) {
	before, after = make(map[string]string), make(map[string]string)
	for k, v := range old {
		if w, ok := new[k]; !ok || w != v {
			before[k] = v
		}
	}
	for k, v := range new {
		if w, ok := old[k]; !ok || w != v {
			after[k] = v
		}
	}
	return before, after
}

// listSettings prints settings by name.
func listSettings(settings map[string]string) string {
	var list []string
	for k, v := range settings {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func describeChange(before, after map[string]string) string {
	var lines []string
	for k, v := range before {
		if w, ok := after[k]; ok {
			lines = append(lines, k+" "+v+" -> "+w)
		} else {
			lines = append(lines, k+" "+v+" removed")
		}
	}
	for k, v := range after {
		if _, ok := before[k]; !ok {
			lines = append(lines, k+" "+v+" added")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}
