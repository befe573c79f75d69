package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/eastguard/eastguard/tui/styles"
)

// mostSaved bounds the screens that are saved of one second.
const mostSaved = 100

// save writes the screen as text, and what is behind it as JSON, beside each other, under names that are not taken yet.
func (m *model) save() {
	text := strings.Join(m.canvas.Plain(), "\n") + "\n"
	doc, err := encode(newSnapshot(m.view, m.at))
	if err != nil {
		m.complain(err)
		return
	}
	stem := "eg-top-" + m.at.Format("20060102-150405")
	base := stem
	for n := 2; ; n++ {
		err = m.env.save(base+".txt", text)
		if err == nil {
			err = m.env.save(base+".json", string(doc))
		}
		if !errors.Is(err, fs.ErrExist) || n > mostSaved {
			break
		}
		base = fmt.Sprintf("%s-%d", stem, n)
	}
	if err != nil {
		m.complain(err)
		return
	}
	m.say(styles.OK, "saved %s.txt and %s.json", base, base)
}

// writeNew writes a file that is not there yet, for the user's eyes alone. What is there already is left as it is, and a link
// is not followed: the directory may be one in which others write, and the name is easily guessed.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
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
