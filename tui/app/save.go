package app

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/eastguard/eastguard/tui/styles"
)

// save writes the screen as text, and what is behind it as JSON, beside each other.
func (m *model) save() {
	base := "eg-top-" + m.at.Format("20060102-150405")
	text := strings.Join(m.canvas.Plain(), "\n") + "\n"
	doc, err := encode(newSnapshot(m.view, m.at))
	if err == nil {
		err = m.env.save(base+".txt", text)
	}
	if err == nil {
		err = m.env.save(base+".json", string(doc))
	}
	if err != nil {
		m.complain(err)
		return
	}
	m.say(styles.OK, "saved %s.txt and %s.json", base, base)
}

// encode is a document as programs read it.
func encode(s snapshot) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
