package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eastguard/eastguard/internal/term"
	"github.com/eastguard/eastguard/sdk"
)

// recordDocument is a record as JSON. What consume -o jsonl prints, publish --in jsonl reads back without loss:
// null, empty and bytes that are not UTF-8 stay what they are.
type recordDocument struct {
	Topic     string           `json:"topic" col:"TOPIC,wide"`
	Range     string           `json:"range" col:"RANGE"`
	Offset    int64            `json:"offset" col:"OFFSET"`
	Timestamp term.Time        `json:"timestamp" col:"TIME" as:"stamp"`
	Key       term.Text        `json:"key,omitzero" col:"KEY" doc:"null for a record without key; absent when key_b64 or key_hex is there"`
	KeyB64    string           `json:"key_b64,omitempty"`
	KeyHex    string           `json:"key_hex,omitempty"`
	Value     term.Text        `json:"value,omitzero" col:"VALUE" doc:"null for a tombstone; absent when value_b64 or value_hex is there"`
	ValueB64  string           `json:"value_b64,omitempty"`
	ValueHex  string           `json:"value_hex,omitempty"`
	Headers   []headerDocument `json:"headers"`
	Epoch     int32            `json:"leader_epoch"`
	Bytes     int              `json:"value_bytes" col:"BYTES,wide"`
}

type headerDocument struct {
	Key      string    `json:"key"`
	Value    term.Text `json:"value,omitzero"`
	ValueB64 string    `json:"value_b64,omitempty"`
	ValueHex string    `json:"value_hex,omitempty"`
}

// binaryForm is --binary: how bytes that are not text appear in JSON.
type binaryForm string

const (
	binaryAuto binaryForm = "auto" // text when it is UTF-8, else b64
	binaryB64  binaryForm = "b64"
	binaryHex  binaryForm = "hex"
)

func newRecordDocument(m *sdk.Message, form binaryForm) recordDocument {
	doc := recordDocument{
		Topic: m.Topic, Range: m.Range.String(), Offset: m.Offset, Timestamp: term.Time{Time: m.Timestamp},
		Epoch: int32(m.LeaderEpoch), Bytes: len(m.Value), Headers: make([]headerDocument, len(m.Headers)),
	}
	doc.Key, doc.KeyB64, doc.KeyHex = form.encode(m.Key)
	doc.Value, doc.ValueB64, doc.ValueHex = form.encode(m.Value)
	for i, h := range m.Headers {
		d := &doc.Headers[i]
		d.Key = h.Key
		d.Value, d.ValueB64, d.ValueHex = form.encode(h.Value)
	}
	return doc
}

func (f binaryForm) encode(b []byte) (text term.Text, b64, hexed string) {
	switch {
	case b == nil:
		return term.Null(), "", ""
	case len(b) == 0 || f == binaryAuto && utf8.Valid(b):
		return term.String(string(b)), "", ""
	case f == binaryHex:
		return term.Text{}, "", hex.EncodeToString(b)
	}
	return term.Text{}, base64.StdEncoding.EncodeToString(b), ""
}

// inputDocument is what publish --in jsonl takes: any subset of recordDocument.
type inputDocument struct {
	Timestamp  json.RawMessage `json:"timestamp"`
	Key        *string         `json:"key"`
	KeyB64     *string         `json:"key_b64"`
	KeyHex     *string         `json:"key_hex"`
	RoutingKey *string         `json:"routing_key"`
	Value      json.RawMessage `json:"value"`
	ValueB64   *string         `json:"value_b64"`
	ValueHex   *string         `json:"value_hex"`
	Headers    json.RawMessage `json:"headers"`
}

// parseRecordJSON reads one line of jsonl.
func parseRecordJSON(line []byte) (sdk.Record, error) {
	var in inputDocument
	var rec sdk.Record
	if err := json.Unmarshal(line, &in); err != nil {
		return rec, usagef("not a JSON record: %v", err)
	}
	var err error
	if rec.Key, err = pickBytes("key", in.Key, in.KeyB64, in.KeyHex); err != nil {
		return rec, err
	}
	value, err := valueText(in.Value)
	if err != nil {
		return rec, err
	}
	if rec.Value, err = pickBytes("value", value, in.ValueB64, in.ValueHex); err != nil {
		return rec, err
	}
	if in.RoutingKey != nil {
		rec.RoutingKey = []byte(*in.RoutingKey)
	}
	if rec.Timestamp, err = parseJSONTime(in.Timestamp); err != nil {
		return rec, err
	}
	rec.Headers, err = parseHeaders(in.Headers)
	return rec, err
}

// valueText is a JSON string's text; any other JSON value stands for itself, so that {"value":{"a":1}} works.
func valueText(raw json.RawMessage) (*string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, usagef("value: %v", err)
		}
	}
	return &text, nil
}

func pickBytes(what string, text, b64, hexed *string) ([]byte, error) {
	var out []byte
	var err error
	switch {
	case b64 != nil:
		out, err = base64.StdEncoding.DecodeString(*b64)
	case hexed != nil:
		out, err = hex.DecodeString(*hexed)
	case text != nil:
		out = []byte(*text)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, usagef("%s: %v", what, err)
	}
	if out == nil {
		out = []byte{}
	}
	return out, nil
}

// parseJSONTime takes RFC 3339 or milliseconds.
func parseJSONTime(raw json.RawMessage) (time.Time, error) {
	s := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	if s == "" || s == "null" {
		return time.Time{}, nil
	}
	t, err := term.ParseTime(s, time.Now().UTC())
	if err != nil {
		return t, usagef("timestamp: %v", err)
	}
	return t, nil
}

// parseHeaders takes the list form, which keeps order and repeats, or a plain object.
func parseHeaders(raw json.RawMessage) ([]sdk.Header, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		return headersOfObject(raw)
	}
	var list []struct {
		Key      string  `json:"key"`
		Value    *string `json:"value"`
		ValueB64 *string `json:"value_b64"`
		ValueHex *string `json:"value_hex"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, usagef("headers: %v", err)
	}
	headers := make([]sdk.Header, len(list))
	for i, h := range list {
		v, err := pickBytes("header "+h.Key, h.Value, h.ValueB64, h.ValueHex)
		if err != nil {
			return nil, err
		}
		headers[i] = sdk.Header{Key: h.Key, Value: v}
	}
	return headers, nil
}

// headersOfObject keeps the order of members as written, which a Go map would not.
func headersOfObject(raw []byte) ([]sdk.Header, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, usagef("headers: %v", err)
	}
	var headers []sdk.Header
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, usagef("headers: %v", err)
		}
		var value *string
		if err := dec.Decode(&value); err != nil {
			return nil, usagef("header %v: %v", key, err)
		}
		h := sdk.Header{Key: key.(string)}
		if value != nil {
			h.Value = []byte(*value)
		}
		headers = append(headers, h)
	}
	return headers, nil
}
